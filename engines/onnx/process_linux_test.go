//go:build cgo

package onnx

import (
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/synapse-module/workers/engines/onnx/internal/onnxtest"
)

// pinnedVariable marks this test binary as the child of the test below.
const pinnedVariable = "ONNX_TEST_PINNED"

// The library's own default is a thread for each of the host's cores: pinned to
// one, it hangs or fails. The number of threads is always ours.
func TestReport35_PinnedToOneCPU(t *testing.T) {
	if os.Getenv(pinnedVariable) != "" {
		if n := usableCPUs(); n != 1 {
			t.Errorf("%d CPUs are taken for usable, 1 is", n)
		}
		e := onnxtest.BERT()
		wantVectors(t, mustLoad(t, e.Model(), ""), e, 1e-5)
		return
	}
	// The child inherits the affinity of the thread that starts it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var all, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		t.Fatal(err)
	}
	for cpu := 0; one.Count() == 0; cpu++ {
		if all.IsSet(cpu) {
			one.Set(cpu)
		}
	}
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.SchedSetaffinity(0, &all); err != nil {
			t.Error(err)
		}
	}()
	child := exec.Command(os.Args[0], "-test.run=^TestReport35_PinnedToOneCPU$", "-test.v")
	child.Env = append(os.Environ(), pinnedVariable+"=1")
	out, err := child.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "PASS: TestReport35_PinnedToOneCPU") {
		t.Fatalf("%v: %s", err, out)
	}
}

// An idle model burns nothing: what counts is the CPU's time, not the clock's.
func TestReport36_IdleThreadsDoNotSpin(t *testing.T) {
	m := mustLoad(t, onnxtest.BERT().Model(), `{"threads": 4}`)
	embed(t, m, "mean", []int32{1, 2, 3})
	before := cpuTime(t)
	time.Sleep(2 * time.Second)
	if used := cpuTime(t) - before; used > time.Second {
		t.Errorf("an idle model used %v of CPU time in 2 s", used)
	}
}

func cpuTime(t *testing.T) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
