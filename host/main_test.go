//go:build linux || darwin

package host_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/synapse-module/workers/engines/fake"
	"github.com/synapse-module/workers/host"
	"github.com/synapse-module/workers/internal/puppet"
	"github.com/synapse-module/workers/internal/wiretest"
	"github.com/synapse-module/workers/protocol"
)

func TestMain(m *testing.M) {
	puppet.Main()
	moduleMain()
	goleak.VerifyTestMain(m)
}

// short is a deadline that is meant to pass: a worker that should have answered
// would have done so long before.
const short = 300 * time.Millisecond

// patient is a context that only a hang outlives.
func patient(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), wiretest.Patience)
	t.Cleanup(cancel)
	return ctx
}

// runtimeDir is a directory whose path is short enough for a socket.
func runtimeDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "rt")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// puppetSpec starts this test binary as a puppet.
func puppetSpec(t testing.TB, s puppet.Script) host.Spec {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return host.Spec{Path: exe, Env: s.Env(), RuntimeDir: runtimeDir(t)}
}

func fakeSpec(t testing.TB) host.Spec {
	t.Helper()
	return host.Spec{Path: wiretest.Build(t, "cmd/worker-fake"), RuntimeDir: runtimeDir(t), Args: []string{"--cache-dir", t.TempDir()}}
}

// start starts a worker that the test's end kills if nothing else did.
func start(t testing.TB, s host.Spec) *host.Worker {
	t.Helper()
	w, err := host.Start(patient(t), s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		w.Kill()
		<-w.Done()
	})
	return w
}

// artifact is a fake model with a runtime_config.
func artifact(t testing.TB, config map[string]any) host.LoadRequest {
	t.Helper()
	path := filepath.Join(t.TempDir(), "model.fake")
	text := fake.Magic + "\nof " + t.Name()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	digest, err := protocol.FileDigest(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return host.LoadRequest{Path: path, Digest: digest, Format: fake.Format, Config: config}
}

// load loads a fake model and returns its reference.
func load(t testing.TB, w *host.Worker, config map[string]any) string {
	t.Helper()
	m, err := w.Load(patient(t), artifact(t, config))
	if err != nil {
		t.Fatal(err)
	}
	return m.Ref
}

// good proves that a worker serves.
func good(t testing.TB, w *host.Worker, ref string) {
	t.Helper()
	v, err := w.Embed(patient(t), host.EmbedRequest{Model: ref, Rows: [][]int32{{5}}})
	if err != nil {
		t.Fatalf("a good request: %v", err)
	}
	if got, want := v.Row(0)[0], float32(fake.State(5, 0)); got != want {
		t.Fatalf("a good request gives %v, want %v", got, want)
	}
}

// crash is err as the EngineCrashed that it must be.
func crash(t testing.TB, err error) host.EngineCrashed {
	t.Helper()
	var c *host.EngineCrashed
	if !errors.As(err, &c) {
		t.Fatalf("got %T %v, want an EngineCrashed", err, err)
	}
	if c.Worker == "" || len(c.LogTail) > host.LogTailBytes {
		t.Fatalf("the crash has worker %q and %d bytes of log", c.Worker, len(c.LogTail))
	}
	return *c
}

// wantCrash holds err to a stage and a cause.
func wantCrash(t testing.TB, err error, stage host.Stage, cause host.Cause) host.EngineCrashed {
	t.Helper()
	c := crash(t, err)
	if c.Stage != stage || c.Cause != cause {
		t.Fatalf("got stage %s and cause %s, want %s and %s: %v", c.Stage, c.Cause, stage, cause, err)
	}
	return c
}

// dead proves that a process is gone, reaped and all.
func dead(t testing.TB, pid int) {
	t.Helper()
	if err := unix.Kill(pid, 0); !errors.Is(err, unix.ESRCH) {
		t.Fatalf("process %d is still there", pid)
	}
}
