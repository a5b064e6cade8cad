package llama

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/synapse-module/workers/protocol"
	"github.com/synapse-module/workers/workerkit"
)

// TestMemoryThatCannotBeLockedIsRefused: the library only warns, and the weights
// would be swapped out in silence.
func TestMemoryThatCannotBeLockedIsRefused(t *testing.T) {
	if _, err := loadBytes(t, tinyBERT().file.Bytes(), `{"mlock": true}`); err != nil {
		t.Fatalf("with the limit of this process: %v", err)
	}
	withoutLocking(t)
	for _, config := range []string{`{"mlock": true}`, `{"mlock": true, "mmap": false}`} {
		_, err := loadBytes(t, tinyBERT().file.Bytes(), config)
		wantCode(t, err, protocol.CodeConfigInvalid, "mlock", "ulimit -l")
	}
	if _, err := loadBytes(t, tinyBERT().file.Bytes(), ""); err != nil {
		t.Errorf("unlocked: %v", err)
	}
}

// withoutLocking lets nobody lock memory on the library's thread until the test is
// over: by the limit, and where this is root by the capability that goes over it.
func withoutLocking(t *testing.T) {
	t.Helper()
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &limit); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_MEMLOCK, &unix.Rlimit{Cur: 0, Max: limit.Max}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Setrlimit(unix.RLIMIT_MEMLOCK, &limit); err != nil {
			t.Error(err)
		}
	})
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var had, less [2]unix.CapUserData
	set := func(data *[2]unix.CapUserData) (err error) {
		open(t).(*engine).thread.do(func() { err = unix.Capset(&header, &data[0]) })
		return err
	}
	if err := unix.Capget(&header, &had[0]); err != nil {
		t.Fatal(err)
	}
	less = had
	less[0].Effective &^= 1 << unix.CAP_IPC_LOCK
	if err := set(&less); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := set(&had); err != nil {
			t.Error(err)
		}
	})
}

// TestOpenFilesThatRunOutAreNoFaultOfTheArtifact: the library names the cause in its
// log alone.
func TestOpenFilesThatRunOutAreNoFaultOfTheArtifact(t *testing.T) {
	path := filepath.Join(t.TempDir(), "model.gguf")
	quantised := tinyBERT()
	quantize(quantised)
	for name, model := range map[string]*tinyModel{"by the library": tinyBERT(), "by the copy": quantised} {
		if err := os.WriteFile(path, model.file.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		err := withoutFiles(t, path)
		wantCode(t, err, protocol.CodeEngineFailed, "oo many open files")
		if _, err := loadFile(t, path, ""); err != nil {
			t.Errorf("%s: afterwards: %v", name, err)
		}
	}
}

// withoutFiles loads a model while no further file can be opened.
func withoutFiles(t *testing.T, path string) error {
	t.Helper()
	e := open(t)
	c, err := workerkit.DecodeConfig(e.Info().Options, nil)
	if err != nil {
		t.Fatal(err)
	}
	a := artifactOf(t, path)
	defer a.File.Close()
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	free, err := unix.Dup(int(a.File.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Close(free); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: uint64(free), Max: limit.Max}); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
			t.Error(err)
		}
	}()
	_, err = e.Load(t.Context(), a, c)
	return err
}

// TestMemoryThatRunsOutIsOOM, by the words of the library: where it runs out here,
// so does the test's own.
func TestMemoryThatRunsOutIsOOM(t *testing.T) {
	for _, reason := range []string{
		"llama_model_load: error loading model: mmap failed: Cannot allocate memory",
		"ggml_aligned_malloc: insufficient memory (attempted to allocate  53.25 MB)",
		"llama_model_load: error loading model: error loading model vocabulary: std::bad_alloc",
	} {
		wantCode(t, notLoaded("model.gguf", reason), protocol.CodeOOM, "model.gguf", reason)
	}
}
