package coreml

import (
	"errors"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/synapse-module/workers/engines/coreml/internal/objc"
	"github.com/synapse-module/workers/engines/coreml/internal/stubcoreml"
	"github.com/synapse-module/workers/protocol"
	"github.com/synapse-module/workers/workerkit"
)

type stub = stubcoreml.Model

// rig is an engine over the stub, with a cache of its own.
type rig struct {
	*testing.T
	engine workerkit.Engine
	cache  string
	log    *strings.Builder
}

// onMac is the stub's runtime on another macOS.
type onMac struct {
	objc.Runtime
	system objc.System
}

func (r onMac) System() objc.System { return r.system }

func newRig(t *testing.T) *rig { return newRigOn(t, objc.System{}) }

func newRigOn(t *testing.T, system objc.System) *rig {
	t.Helper()
	rt, err := objc.Open(stubcoreml.Dir(t))
	if err != nil {
		t.Fatal(err)
	}
	if system.Version != "" {
		rt = onMac{rt, system}
	}
	r := &rig{T: t, cache: t.TempDir(), log: &strings.Builder{}}
	r.engine, err = over(rt, workerkit.Setup{CacheDir: r.cache, CacheLimit: workerkit.DefaultCacheLimit, Log: slog.New(slog.NewTextHandler(r.log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// load loads a directory of a format, from a copy without its ending as workerkit
// makes it.
func (r *rig) load(path, format, config string) (workerkit.Model, error) {
	r.Helper()
	digest, err := protocol.TreeDigest(os.DirFS(path), nil)
	if err != nil {
		r.Fatal(err)
	}
	private := filepath.Join(r.TempDir(), "load")
	if err := os.CopyFS(private, os.DirFS(path)); err != nil {
		r.Fatal(err)
	}
	c, err := workerkit.DecodeConfig(r.engine.Info().Options, jsontext.Value(config))
	if err != nil {
		r.Fatal(err)
	}
	return r.engine.Load(r.Context(), workerkit.Artifact{Path: private, Format: format, Digest: string(digest), Name: "the artifact"}, c)
}

// loadPackage loads a model as a package.
func (r *rig) loadPackage(m stub, config string) (workerkit.Model, error) {
	r.Helper()
	return r.load(stubcoreml.WritePackage(r, r.TempDir(), "m.mlpackage", m), formatPackage, config)
}

// must is loadPackage of a model that loads, closed at the test's end.
func (r *rig) must(m stub, config string) workerkit.Model {
	r.Helper()
	loaded, err := r.loadPackage(m, config)
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { loaded.Close() })
	return loaded
}

// served loads a model as a package and closes it again.
func (r *rig) served(m stub) {
	r.Helper()
	loaded, err := r.loadPackage(m, "")
	if err != nil {
		r.Fatal(err)
	}
	loaded.Close()
}

// refusal wants an error of the code that says this.
func refusal(t *testing.T, err error, code protocol.Code, says string) {
	t.Helper()
	var e *protocol.Error
	got := protocol.CodeArtifactInvalid // what workerkit makes of any other error
	if errors.As(err, &e) {
		got = e.Code
	}
	if err == nil || got != code || !strings.Contains(err.Error(), says) {
		t.Errorf("got %v, wanted %s that says %q", err, code, says)
	}
}

// pooled is an encoder of fixed shape that pools by itself.
func pooled(rows, tokens int) stub {
	return stub{
		Inputs:   map[string]stubcoreml.Feature{"input_ids": stubcoreml.IDs(rows, tokens), "attention_mask": stubcoreml.IDs(rows, tokens)},
		Outputs:  map[string]stubcoreml.Feature{"embedding": {Type: stubcoreml.Float32, Shape: []int{rows, 6}, Gap: 32}},
		Metadata: map[string]string{keyVocabSize: "1000", keyPooling: "mean", keyArch: "bert"},
	}
}

// hidden is an encoder of fixed shape that gives hidden states.
func hidden(rows, tokens int) stub {
	m := pooled(rows, tokens)
	m.Outputs = map[string]stubcoreml.Feature{"last_hidden_state": {Type: stubcoreml.Float16, Shape: []int{rows, tokens, 6}}}
	return m
}

// ranker is a cross-encoder of BERT's layout.
func ranker(rows, tokens int) stub {
	m := pooled(rows, tokens)
	m.Inputs["token_type_ids"] = stubcoreml.IDs(rows, tokens)
	m.Outputs = map[string]stubcoreml.Feature{"score": {Type: stubcoreml.Float32, Shape: []int{rows, 1}, Score: true}}
	m.Metadata = map[string]string{keyVocabSize: "1000", keyArch: "bert", keyPair: "101 $A 102 $B:1 102:1"}
	return m
}

// with adds metadata.
func with(m stub, keysAndValues ...string) stub {
	m.Metadata = maps.Clone(m.Metadata)
	for i := 0; i < len(keysAndValues); i += 2 {
		m.Metadata[keysAndValues[i]] = keysAndValues[i+1]
	}
	return m
}

// without removes metadata.
func without(m stub, keys ...string) stub {
	m.Metadata = maps.Clone(m.Metadata)
	for _, k := range keys {
		delete(m.Metadata, k)
	}
	return m
}

// failing has a fault.
func failing(m stub, fault string) stub {
	m.Fault = fault
	return m
}

// meanOf is what the stub's encoders answer for a row.
func meanOf(ids []int32) []float32 {
	v := make([]float32, 6)
	for j := range v {
		var sum float64
		for _, id := range ids {
			sum += stubcoreml.State(id, 0, j)
		}
		v[j] = float32(sum / float64(len(ids)))
	}
	return v
}

// stateOf is the stub's state of one token.
func stateOf(id int32) []float32 { return meanOf([]int32{id}) }

// ids makes a row of n ids that differ from seed to seed, none of them 0.
func ids(n, seed int) []int32 {
	row := make([]int32, n)
	for i := range row {
		row[i] = int32(1 + (i*31+seed*17)%900)
	}
	return row
}
