package stubcoreml

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"

	"github.com/synapse-module/workers/engines/coreml/internal/objc"
)

// headers are where Debian's libgnustep-base-dev puts its own.
const headers = "/usr/include/GNUstep"

var build = sync.OnceValues(func() (string, error) {
	_, here, _, _ := runtime.Caller(0)
	sources, err := filepath.Glob(filepath.Join(filepath.Dir(here), "testdata", "*.m"))
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "stubcoreml-")
	if err != nil {
		return "", err
	}
	args := []string{
		"-std=gnu11", "-x", "objective-c", "-shared", "-fPIC", "-O1", "-g", "-Wall", "-Werror",
		"-DGNUSTEP", "-DGNUSTEP_BASE_LIBRARY=1", "-DGNU_RUNTIME=1", "-fobjc-exceptions", "-fexceptions",
		"-fconstant-string-class=NSConstantString", "-isystem", headers,
		"-o", filepath.Join(dir, objc.StubLibrary),
	}
	args = append(append(args, sources...), "-x", "none", "-lgnustep-base", "-lobjc", "-lpthread", "-lm")
	out, err := exec.Command("gcc", args...).CombinedOutput()
	if err != nil {
		return "", &buildError{err, out}
	}
	return dir, nil
})

type buildError struct {
	err error
	out []byte
}

func (e *buildError) Error() string { return "gcc: " + e.err.Error() + "\n" + string(e.out) }

// Dir builds the stub once a test binary and returns its directory, as
// --engine-lib takes it. Without GNUstep's headers the test is skipped; CI has
// them, and fails on a skip.
func Dir(t testing.TB) string {
	t.Helper()
	if _, err := os.Stat(headers); err != nil {
		t.Skip("GNUstep is not installed (apt-get install gobjc libgnustep-base-dev)")
	}
	dir, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// Live are the stub's objects in this process that were made and not yet freed.
type Live struct{ Arrays, Values, Configurations, Models, Plans int32 }

// Counters reads the stub's counts in this process; compiles only grows.
func Counters(t testing.TB) (live Live, compiles int32) {
	t.Helper()
	library, err := purego.Dlopen(filepath.Join(Dir(t), objc.StubLibrary), purego.RTLD_NOW)
	if err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]*int32{
		"stub_live_arrays": &live.Arrays, "stub_live_values": &live.Values,
		"stub_live_configurations": &live.Configurations,
		"stub_live_models":         &live.Models, "stub_live_plans": &live.Plans, "stub_compiles": &compiles,
	} {
		address, err := purego.Dlsym(library, name)
		if err != nil {
			t.Fatal(err)
		}
		*to = atomic.LoadInt32(*(**int32)(unsafe.Pointer(&address))) // other threads count on
	}
	return live, compiles
}
