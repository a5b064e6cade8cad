package coreml

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/synapse-module/workers/engines/coreml/internal/bridge"
	"github.com/synapse-module/workers/engines/coreml/internal/objc"
	"github.com/synapse-module/workers/engines/coreml/internal/stubcoreml"
	"github.com/synapse-module/workers/protocol"
	"github.com/synapse-module/workers/workerkit"
)

func compiles(t *testing.T) int32 {
	t.Helper()
	_, n := stubcoreml.Counters(t)
	return n
}

// entries lists the cache.
func (r *rig) entries() []string {
	r.Helper()
	list, err := filepath.Glob(filepath.Join(r.cache, cacheDir, "*.*"))
	if err != nil {
		r.Fatal(err)
	}
	return slices.DeleteFunc(list, func(path string) bool { return strings.HasSuffix(path, ".lock") })
}

// A package is compiled once a machine, whatever path it comes from and however
// often it is loaded.
func TestCompiledOnce(t *testing.T) {
	r := newRig(t)
	before := compiles(t)
	for range 3 {
		r.must(pooled(1, 8), "")
	}
	r.must(pooled(1, 8), `{"compute_units":"cpu_only"}`)
	if n := compiles(t) - before; n != 1 {
		t.Errorf("compiled %d times", n)
	}
	r.must(pooled(1, 16), "")
	if n := compiles(t) - before; n != 2 {
		t.Errorf("another package: compiled %d times in all", n)
	}
	entries := r.entries()
	if len(entries) != 2 {
		t.Fatalf("the cache holds %v", entries)
	}
	for _, e := range entries {
		if info, err := os.Stat(e); err != nil || info.Mode().Perm() != privateDir {
			t.Errorf("%s has the mode %v, %v", e, info.Mode(), err)
		}
		if held, err := filepath.Glob(filepath.Join(e, "*")); err != nil || len(held) != 2 {
			t.Errorf("%s holds %v, %v", e, held, err)
		}
	}
}

// A compiled model comes from the one place each time: the system caches what it
// makes of it.
func TestCompiledModelsAreKeptToo(t *testing.T) {
	r := newRig(t)
	for range 2 {
		m, err := r.load(stubcoreml.WriteCompiled(t, t.TempDir(), "m.mlmodelc", pooled(1, 8)), formatCompiled, "")
		if err != nil {
			t.Fatal(err)
		}
		m.Close()
	}
	if len(r.entries()) != 1 || strings.Count(r.log.String(), "found in the cache") != 1 {
		t.Errorf("the cache holds %v; log:\n%s", r.entries(), r.log)
	}
}

// What lies in the cache is hashed before it is loaded.
func TestSpoiltEntryIsCompiledAnew(t *testing.T) {
	for name, spoil := range map[string]func(entry string) error{
		"a flipped byte": func(e string) error {
			return os.WriteFile(filepath.Join(e, "content", "model.mlmodelc", "coremldata.bin"), []byte("Stub"), 0o600)
		},
		"a file more": func(e string) error {
			return os.WriteFile(filepath.Join(e, "content", "model.mlmodelc", "more"), nil, 0o600)
		},
		"a symbolic link": func(e string) error {
			return os.Symlink("/etc/hostname", filepath.Join(e, "content", "model.mlmodelc", "link"))
		},
		"no models": func(e string) error { return os.RemoveAll(filepath.Join(e, "content")) },
		"no record": func(e string) error { return os.Remove(filepath.Join(e, "record")) },
		"a file in its place": func(e string) error {
			if err := os.RemoveAll(e); err != nil {
				return err
			}
			return os.WriteFile(e, nil, 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.served(pooled(1, 8))
			if err := spoil(r.entries()[0]); err != nil {
				t.Fatal(err)
			}
			before := compiles(t)
			r.must(pooled(1, 8), "")
			if n := compiles(t) - before; n != 1 {
				t.Errorf("compiled %d times", n)
			}
			if len(r.entries()) != 1 {
				t.Errorf("the cache holds %v", r.entries())
			}
		})
	}
}

// What a live worker has loaded stays, though it has spoilt on the disk.
func TestSpoiltEntryThatIsLoadedStays(t *testing.T) {
	r := newRig(t)
	r.must(pooled(1, 8), "")
	held := r.entries()[0]
	if err := os.WriteFile(filepath.Join(held, "content", "model.mlmodelc", "more"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r.served(pooled(1, 8))
	if all := r.entries(); len(all) != 2 || !slices.Contains(all, held) {
		t.Errorf("%s is loaded, the cache holds %v", held, all)
	}
}

// Workers that load the same package at once all serve it, from one entry.
func TestWorkersThatCompileAtOnce(t *testing.T) {
	first := newRig(t)
	rigs := []*rig{first, newRig(t), newRig(t), newRig(t)}
	models := make([]workerkit.Model, len(rigs))
	errs := make([]error, len(rigs))
	var all sync.WaitGroup
	for i, r := range rigs {
		r.engine.(*engine).cache.entries = first.engine.(*engine).cache.entries
		all.Go(func() { models[i], errs[i] = r.loadPackage(pooled(1, 8), "") })
	}
	all.Wait()
	for i, err := range errs {
		if err != nil {
			t.Errorf("worker %d: %v", i, err)
			continue
		}
		models[i].Close()
	}
	if len(first.entries()) != 1 {
		t.Errorf("the cache holds %v", first.entries())
	}
}

// What another macOS compiled is not loaded, and goes.
func TestAnotherMacOSCompilesAnew(t *testing.T) {
	r := newRig(t)
	r.served(pooled(1, 8))
	old := r.entries()
	next := newRigOn(t, objc.System{Version: "15.2", Build: "24C101", Chip: "stub"})
	next.engine.(*engine).cache.entries = r.engine.(*engine).cache.entries
	before := compiles(t)
	next.must(pooled(1, 8), "")
	if n := compiles(t) - before; n != 1 {
		t.Errorf("compiled %d times", n)
	}
	if now := r.entries(); len(now) != 1 || now[0] == old[0] || !strings.Contains(now[0], "-24C101.") {
		t.Errorf("the cache held %v and holds %v", old, now)
	}
}

// A load that fails leaves nothing half made.
func TestFailedCompileLeavesNothing(t *testing.T) {
	r := newRig(t)
	if _, err := r.loadPackage(failing(pooled(1, 8), "compile_error"), ""); err == nil {
		t.Fatal("loaded")
	}
	if len(r.entries()) != 0 {
		t.Errorf("the cache holds %v", r.entries())
	}
}

func TestCacheThatCannotBeUsed(t *testing.T) {
	r := newRig(t)
	if err := os.WriteFile(filepath.Join(r.cache, cacheDir), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := r.loadPackage(pooled(1, 8), "")
	refusal(t, err, protocol.CodeEngineFailed, "--cache-dir")
}

// The bound is the system's, and of no concern to the other devices.
func TestSizeLimit(t *testing.T) {
	dir := t.TempDir()
	weights, err := os.Create(filepath.Join(dir, "weights.bin"))
	if err != nil {
		t.Fatal(err)
	}
	defer weights.Close()
	for _, c := range []struct {
		version string
		size    int64
		units   bridge.Units
		fits    bool
	}{
		{"15.1", engineLimit, bridge.CPUAndNeuralEngine, true},
		{"26.4", engineLimit + 1, bridge.CPUAndNeuralEngine, false},
		{"26.4", engineLimit + 1, bridge.AllUnits, false},
		{"26.4", engineLimit + 1, bridge.CPUOnly, true},
		{"26.4", engineLimit + 1, bridge.CPUAndGPU, true},
		{"27.0", laterEngineLimit, bridge.CPUAndNeuralEngine, true},
		{"27.0", laterEngineLimit + 1, bridge.CPUAndNeuralEngine, false},
	} {
		if err := weights.Truncate(c.size); err != nil {
			t.Fatal(err)
		}
		r := newRigOn(t, objc.System{Version: c.version, Build: "1", Chip: "stub"})
		err := r.engine.(*engine).cache.checkSizes([]part{{"model", dir}}, "big", c.units)
		if c.fits != (err == nil) {
			t.Errorf("%d bytes on macOS %s, units %d: %v", c.size, c.version, c.units, err)
		}
	}
}

func TestArtifactThatIsAFile(t *testing.T) {
	r := newRig(t)
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	c, err := workerkit.DecodeConfig(r.engine.Info().Options, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = r.engine.Load(t.Context(), workerkit.Artifact{File: f, Format: formatPackage, Name: "m"}, c)
	refusal(t, err, protocol.CodeArtifactInvalid, "is a file, a mlpackage is a directory")
}
