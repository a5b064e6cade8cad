package llama

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"unsafe"

	"github.com/synapse-module/workers/engines/llama/internal/capi"
	"github.com/synapse-module/workers/engines/llama/internal/gguf"
	"github.com/synapse-module/workers/protocol"
	"github.com/synapse-module/workers/workerkit"
)

type engine struct {
	setup  workerkit.Setup
	lib    *capi.Library
	thread *thread
	log    *libraryLog
	info   workerkit.Info

	rpcClients map[string]bool // RPC servers that this process is a client of
}

// Open loads llama.cpp from the directory of native libraries. It implements
// [workerkit.Open].
func Open(s workerkit.Setup) (workerkit.Engine, error) {
	e := &engine{setup: s, thread: newThread(), log: newLibraryLog(s.Log), rpcClients: map[string]bool{}}
	var err error
	e.thread.do(func() { e.lib, err = capi.Open(s.LibDir, e.log.write) })
	if err != nil {
		return nil, err
	}
	e.info = workerkit.Info{
		Name:       "llama",
		Version:    e.lib.LlamaCPP,
		BuildFlags: buildFlags(e.lib),
		Formats:    []string{"gguf", "gguf+zstd"},
		Options:    options(),
	}
	s.Log.Info("llama.cpp is open", "version", e.lib.LlamaCPP, "ggml", e.lib.GGML, "build_flags", e.info.BuildFlags)
	return e, nil
}

// buildFlags are what changes the numbers: which build, for which processor, with
// what in force.
func buildFlags(l *capi.Library) []string {
	return []string{
		"llama.cpp=" + l.LlamaCPP,
		"ggml=" + l.GGML,
		"cpu_variant=" + l.Variant,
		"backends=" + strings.Join(l.Backends, "+"),
		"features=" + strings.Join(l.Features, "+"),
	}
}

func (e *engine) Info() workerkit.Info { return e.info }

// Load implements [workerkit.Engine].
func (e *engine) Load(ctx context.Context, a workerkit.Artifact, c workerkit.Config) (workerkit.Model, error) {
	if a.File == nil {
		return nil, workerkit.ArtifactInvalid("%s is a directory, wanted is one GGUF file", a.Name)
	}
	s, err := newSettings(c)
	if err != nil {
		return nil, err
	}
	header, err := gguf.Parse(a.File, a.Size)
	if err != nil {
		return nil, workerkit.ArtifactInvalid("%s is no GGUF file that can be loaded: %v", a.Name, err)
	}
	p, err := newPlan(header, s)
	if err != nil {
		return nil, prefixed(a.Name, err)
	}
	weights, err := p.retype(header, s)
	if err != nil {
		return nil, workerkit.ArtifactInvalid("%s: %v", a.Name, err)
	}
	if err := workerkit.CheckMemory(p.loadBytes(weights, s), fmt.Sprintf("loading %s with %s %d and rows of up to %d tokens", a.Name, optBatchTokens, s.batchTokens, p.maxTokens)); err != nil {
		return nil, err
	}
	release := func() {}
	if weights.Changed > 0 {
		if a.Path, release, err = e.written(ctx, a.Name, weights); err != nil {
			return nil, err
		}
		e.setup.Log.Info("weights were expanded", "tensors", weights.Changed, "model", a.Name)
	}
	b := &base{engine: e, plan: p, settings: s, release: release}
	var m workerkit.Model
	e.thread.do(func() {
		if m, err = b.load(a); err != nil {
			b.free()
		}
	})
	return m, err
}

// prefixed puts the artifact's name before a refusal's text.
func prefixed(name string, err error) error {
	if refusal, ok := err.(*protocol.Error); ok && refusal.Code == protocol.CodeArtifactInvalid { //nolint:errorlint // it is made by newPlan and never wrapped
		return protocol.Errorf(refusal.Code, "%s: %s", name, refusal.Msg)
	}
	return err
}

// load has the library load the model and makes the first context, so that what
// is wrong with either shows here and not in a request.
func (b *base) load(a workerkit.Artifact) (workerkit.Model, error) {
	lib := b.engine.lib
	devices, err := b.engine.devices(b.settings)
	if err != nil {
		return nil, err
	}
	devices = append(devices, 0) // the list's end
	params := lib.ModelDefaultParams()
	params.Devices = unsafe.SliceData(devices)
	params.LoadMode = b.settings.loadMode
	params.NGPULayers = b.settings.gpuLayers
	b.engine.log.begin()
	b.model = lib.ModelLoad(a.Path, params)
	runtime.KeepAlive(devices)
	if b.model == 0 {
		return nil, notLoaded(a.Name, b.engine.log.reason())
	}
	if !b.engine.log.locked() {
		return nil, workerkit.ConfigInvalid("runtime_config.%s is true, and this system does not let the worker lock so much memory: raise its limit (ulimit -l) over the size of the weights, or leave %s out", optMlock, optMlock)
	}
	if !b.settings.mapped() {
		b.releaseFile()
	}
	b.abort = lib.NewAbort()
	return b.finish()
}

// notLoaded is the error of a model that the library did not load. Its words tell
// the two cases in which the system is at fault and not the file.
func notLoaded(name, reason string) error {
	switch {
	case strings.Contains(reason, "Cannot allocate memory"), strings.Contains(reason, "insufficient memory"), strings.Contains(reason, "std::bad_alloc"):
		return workerkit.OOM("%s: llama.cpp could not get the memory, which a limit on this process may hold back (ulimit -v): %s", name, reason)
	case strings.Contains(reason, "Too many open files"):
		return workerkit.EngineFailed("%s: llama.cpp could not open it: unload other models, or raise the limit on open files (ulimit -n): %s", name, reason)
	}
	return workerkit.ArtifactInvalid("%s: llama.cpp refused it: %s", name, reason)
}
