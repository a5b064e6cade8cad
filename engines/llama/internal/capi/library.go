package capi

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unsafe"

	"github.com/ebitengine/purego"
)

// Versions are the versions of llama.cpp whose structs are laid out as in this
// package.
var Versions = []string{"0.4.0-dev", "0.5.0-dev"}

// ReadsHeadPooling says whether this version reads from a ModernBERT reranker's
// file which states its head takes. Others give it the mean of all.
func (l *Library) ReadsHeadPooling() bool { return l.LlamaCPP != "0.4.0-dev" }

// Library is llama.cpp in this process.
type Library struct {
	Functions
	Dir      string   // where the files lie
	LlamaCPP string   // llama.cpp's version
	GGML     string   // ggml's version
	Variant  string   // the CPU variant in force; "" where the build has only one
	Backends []string // names of the backends in force, in order of their loading
	Features []string // what the CPU variant was compiled with, "AVX2", "OPENMP", ...

	rpc    func(endpoint string) Reg // nil where the build has no RPC backend
	strlen uintptr                   // C's, see Abort
}

// Open loads llama.cpp's libraries from an absolute directory, and nothing from
// elsewhere. emit gets llama.cpp's log, line by line, from any thread.
//
// What cannot be undone stays: llama.cpp holds its state in globals, so a
// process opens it once.
func Open(dir string, emit func(Level, string)) (*Library, error) {
	if !filepath.IsAbs(dir) {
		return nil, fmt.Errorf("the library directory %q is not absolute", dir)
	}
	// On an abort ggml forks a debugger, where one is installed, for a backtrace
	// that nobody reads and that keeps the worker from dying for seconds.
	if err := os.Setenv("GGML_NO_BACKTRACE", "1"); err != nil {
		return nil, fmt.Errorf("set GGML_NO_BACKTRACE: %w", err)
	}
	l := &Library{Dir: dir}
	handles := map[string]uintptr{}
	for _, lib := range []string{"ggml-base", "ggml", "llama"} { // each needs the ones before it
		path, err := names.path(dir, lib)
		if err != nil {
			return nil, err
		}
		if handles[lib], err = open(path); err != nil {
			return nil, fmt.Errorf("load %s: %w", path, err)
		}
	}
	if err := l.checkVersion(handles["llama"]); err != nil {
		return nil, err
	}
	if err := l.bind(handles); err != nil {
		return nil, fmt.Errorf("the libraries in %s call themselves llama.cpp %s, but %w", dir, l.LlamaCPP, err)
	}
	if err := checkLayout(l.ModelDefaultParams(), l.ContextDefaultParams()); err != nil {
		return nil, fmt.Errorf("the library in %s calls itself llama.cpp %s, but %w", dir, l.LlamaCPP, err)
	}
	if err := l.bindAbort(); err != nil {
		return nil, err
	}
	if err := l.readGELU(); err != nil {
		return nil, fmt.Errorf("the library in %s calls itself llama.cpp %s, but %w", dir, l.LlamaCPP, err)
	}
	l.GGML = l.GGMLVersion()
	sink.mu.Lock()
	sink.emit = emit
	sink.mu.Unlock()
	l.LogSet(logCallback(), 0)
	if err := l.loadBackends(); err != nil {
		return nil, fmt.Errorf("llama.cpp in %s: %w", dir, err)
	}
	l.BackendInit()
	return l, nil
}

// checkVersion asks the library what it is before anything else of it is used.
func (l *Library) checkVersion(handle uintptr) error {
	wanted := strings.Join(Versions, " or ")
	addr, err := symbol(handle, "llama_version")
	if err != nil {
		return fmt.Errorf("the library llama in %s does not say its version (it has no llama_version), wanted is %s: install the libraries that this worker was released with", l.Dir, wanted)
	}
	var version func() string
	purego.RegisterFunc(&version, addr)
	l.LlamaCPP = version()
	if !slices.Contains(Versions, l.LlamaCPP) {
		return fmt.Errorf("the library llama in %s is version %q, wanted is %s: install the libraries that this worker was released with", l.Dir, l.LlamaCPP, wanted)
	}
	return nil
}

// loadBackends loads the best CPU variant, and the GPU and RPC backends where
// the build has them. llama.cpp's own search is not used: it would also load
// what an environment variable names. The BLAS backend is left out, since it
// halves the speed of the models that this engine is for.
func (l *Library) loadBackends() error {
	for _, backend := range []string{"metal", "cuda", "vulkan", "rpc"} {
		files, err := names.backends(l.Dir, backend)
		if err != nil {
			return err
		}
		for _, path := range files {
			reg := l.BackendLoad(path)
			if reg == 0 {
				return fmt.Errorf("the backend %s did not load; the log above says why", path)
			}
			if backend == "rpc" {
				if err := l.bindRPC(reg); err != nil {
					return fmt.Errorf("the backend %s: %w", path, err)
				}
			}
		}
	}
	files, err := names.backends(l.Dir, "cpu")
	if err != nil {
		return err
	}
	best, err := bestVariant(files)
	if err != nil {
		return err
	}
	reg := l.BackendLoad(best)
	if reg == 0 {
		return fmt.Errorf("the backend %s did not load; the log above says why", best)
	}
	l.Variant = names.variant(best, "cpu")
	l.Features = l.features(reg)
	for i := range l.RegCount() {
		l.Backends = append(l.Backends, l.RegName(l.RegGet(i)))
	}
	return nil
}

// HasRPC says whether the build has the RPC backend.
func (l *Library) HasRPC() bool { return l.rpc != nil }

func (l *Library) bindRPC(reg Reg) error {
	const name = "ggml_backend_rpc_add_server"
	addr := l.RegProcAddress(reg, name)
	if addr == 0 {
		return fmt.Errorf("it has no function %s", name)
	}
	purego.RegisterFunc(&l.rpc, addr)
	return nil
}

// RPCDevices connects to the RPC server at HOST:PORT and returns its devices. A
// server that does not answer as one is an abort, so it must have been asked
// before.
func (l *Library) RPCDevices(endpoint string) []Device {
	reg := l.rpc(endpoint)
	if reg == 0 {
		return nil
	}
	var devices []Device
	for i := range l.RegDevCount(reg) {
		devices = append(devices, l.RegDevGet(reg, i))
	}
	return devices
}

// LocalGPUs are the devices of this machine that compute besides the CPU.
func (l *Library) LocalGPUs() []Device {
	var devices []Device
	for i := range l.DevCount() {
		d := l.DevGet(i)
		if t := l.DevType(d); t == DeviceGPU || t == DeviceIGPU {
			devices = append(devices, d)
		}
	}
	return devices
}

// features asks a backend what it was compiled with.
func (l *Library) features(reg Reg) []string {
	addr := l.RegProcAddress(reg, "ggml_backend_get_features")
	if addr == 0 {
		return nil
	}
	type feature struct{ name, value *byte } // struct ggml_backend_feature, ended by a NULL name
	var get func(Reg) *feature
	purego.RegisterFunc(&get, addr)
	var out []string
	for f := get(reg); f != nil && f.name != nil; f = (*feature)(unsafe.Add(unsafe.Pointer(f), unsafe.Sizeof(*f))) {
		name, value := goString(f.name), goString(f.value)
		switch value {
		case "1":
			out = append(out, name)
		case "0", "":
		default:
			out = append(out, name+"="+value)
		}
	}
	return out
}

func goString(p *byte) string {
	if p == nil {
		return ""
	}
	return string(unsafe.Slice(p, cStringLen(p)))
}
