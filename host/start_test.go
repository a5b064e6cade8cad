//go:build linux || darwin

package host_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/synapse-module/workers/host"
	"github.com/synapse-module/workers/internal/puppet"
	"github.com/synapse-module/workers/protocol"
)

// A worker that does not shake hands as it must fails typed, is dead and leaves
// nothing in the socket's directory.
func TestStartFails(t *testing.T) {
	script := func(steps ...puppet.Step) puppet.Script { return steps }
	connect, hello := puppet.Step{Do: "connect"}, puppet.Step{Do: "hello"}
	die := func(how string) puppet.Step { return puppet.Step{Do: "die", Text: how} }
	for name, c := range map[string]struct {
		script puppet.Script
		cause  host.Cause
		says   string
	}{
		"never connects":         {script(die("hang")), host.CauseTimeout, "deadline"},
		"stopped":                {script(die("stop")), host.CauseTimeout, "deadline"},
		"connects, says nothing": {script(connect, die("hang")), host.CauseTimeout, "deadline"},
		"drips its hello":        {script(connect, puppet.Step{Do: "drip", N: 20}, hello, die("hang")), host.CauseTimeout, "deadline"},
		"exits":                  {script(die("exit:7")), host.CauseExit, "exit status 7"},
		"exits after connecting": {script(connect, die("exit:9")), host.CauseExit, "exit status 9"},
		"aborts":                 {script(connect, die("signal:SIGABRT")), host.CauseSignal, "SIGABRT"},
		"closes":                 {script(connect, die("close")), host.CauseEOF, "EOF"},
		"another nonce":          {script(connect, puppet.Step{Do: "hello", Text: `{"nonce":"00000000000000000000000000000000"}`}, die("hang")), host.CauseViolation, "nonce"},
		"empty nonce":            {script(connect, puppet.Step{Do: "hello", Text: `{"nonce":""}`}, die("hang")), host.CauseViolation, "nonce"},
		"version 2":              {script(connect, puppet.Step{Do: "hello", Text: `{"v":2}`}, die("hang")), host.CauseViolation, "version 2"},
		"another pid":            {script(connect, puppet.Step{Do: "hello", Text: `{"pid":1}`}, die("hang")), host.CauseViolation, "pid 1"},
		"max_frame too small":    {script(connect, puppet.Step{Do: "hello", Text: `{"max_frame":1}`}, die("hang")), host.CauseViolation, "max_frame"},
		"PONG first":             {script(connect, puppet.Step{Do: "json", Text: `{"type":"PONG","req_id":1,"rss_mb":1,"models_loaded":0}`}, die("hang")), host.CauseViolation, "due is HELLO"},
		"not JSON":               {script(connect, puppet.Step{Do: "json", Text: "HELLO"}, die("hang")), host.CauseViolation, "JSON"},
		"length 0":               {script(connect, puppet.Step{Do: "length", N: 0}, die("hang")), host.CauseViolation, "length 0"},
		"64 KiB and one byte":    {script(connect, puppet.Step{Do: "length", N: protocol.HandshakeMaxFrame + 1}, die("hang")), host.CauseViolation, "over the limit"},
		"length 2^32-1":          {script(connect, puppet.Step{Do: "length", N: 1<<32 - 1}, die("hang")), host.CauseViolation, "over the limit"},
		"half a hello, closes":   {script(connect, puppet.Step{Do: "budget", N: 20, Text: "close"}, hello), host.CauseViolation, "ended inside"},
		"half a hello, killed":   {script(connect, puppet.Step{Do: "budget", N: 20, Text: "signal:SIGKILL"}, hello), host.CauseSignal, "SIGKILL"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := puppetSpec(t, c.script)
			ctx := patient(t)
			if c.cause == host.CauseTimeout {
				ctx, s.Deadlines.Start = t.Context(), short
			}
			_, err := host.Start(ctx, s)
			crashed := wantCrash(t, err, host.StageHello, c.cause)
			if !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v does not say %q", err, c.says)
			}
			if errors.Is(err, context.DeadlineExceeded) != (c.cause == host.CauseTimeout) {
				t.Errorf("cause %s unwraps to %v", c.cause, errors.Unwrap(err))
			}
			dead(t, crashed.PID)
			empty(t, s.RuntimeDir)
		})
	}
}

// empty proves that the directory of sockets holds nothing.
func empty(t *testing.T, runtimeDir string) {
	t.Helper()
	left, err := os.ReadDir(filepath.Join(runtimeDir, "synapse", "workers"))
	if err != nil || len(left) != 0 {
		t.Errorf("left in the directory of sockets: %v, %v", left, err)
	}
}

func TestSpawnFails(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte("not a program"), 0o600); err != nil {
		t.Fatal(err)
	}
	junk := filepath.Join(dir, "junk")
	if err := os.WriteFile(junk, []byte("\x7fELF but no more"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{"missing": filepath.Join(dir, "no"), "directory": dir, "not executable": text, "no program": junk} {
		t.Run(name, func(t *testing.T) {
			s := host.Spec{Path: path, RuntimeDir: runtimeDir(t)}
			_, err := host.Start(patient(t), s)
			c := wantCrash(t, err, host.StageSpawn, host.CauseExit)
			if c.ExitCode != host.NoExitCode || c.PID != 0 || !strings.Contains(err.Error(), path) {
				t.Errorf("%+v: %v", c, err)
			}
			if name == "missing" && !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%v is not fs.ErrNotExist", err)
			}
			empty(t, s.RuntimeDir)
		})
	}
}

func TestStartCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := puppetSpec(t, puppet.Script{{Do: "stderr", Text: "up\n"}, {Do: "die", Text: "hang"}})
	s.Log = func(host.LogLine) { cancel() } // the process runs
	_, err := host.Start(ctx, s)
	var canceled *host.RequestCanceled
	if !errors.As(err, &canceled) || canceled.Stage != host.StageHello || !canceled.Killed || !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	if _, err := host.Start(ctx, s); !errors.Is(err, context.Canceled) {
		t.Fatalf("canceled before the start: %v", err)
	}
	empty(t, s.RuntimeDir)
}

func TestSpecIsChecked(t *testing.T) {
	for says, s := range map[string]host.Spec{
		"Spec.Path":         {},
		"Spec.Env":          {Path: "x", Env: []string{"NOVALUE"}},
		"Spec.ID":           {Path: "x", ID: "two\nlines"},
		"Spec.Sandbox":      {Path: "x", Sandbox: "maybe"},
		"Spec.MaxFrame":     {Path: "x", MaxFrame: 1},
		"Deadlines.Embed":   {Path: "x", Deadlines: host.Deadlines{Embed: -1}},
		"Deadlines.Start":   {Path: "x", Deadlines: host.Deadlines{Start: -time.Second}},
		"is 1 bytes, legal": {Path: "x", MaxFrame: 1},
	} {
		if _, err := host.Start(t.Context(), s); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("got %v, want it to name %s", err, says)
		}
	}
}

// A directory that others can write, or that is a link, is no place for a socket.
func TestRuntimeDirIsPrivate(t *testing.T) {
	open, link := runtimeDir(t), runtimeDir(t)
	if err := os.MkdirAll(filepath.Join(open, "synapse", "workers"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(open, "synapse", "workers"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(link, "synapse"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(t.TempDir(), filepath.Join(link, "synapse", "workers")); err != nil {
		t.Fatal(err)
	}
	for dir, says := range map[string]string{open: "open to others", link: "not a directory"} {
		s := fakeSpec(t)
		s.RuntimeDir = dir
		if _, err := host.Start(patient(t), s); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("got %v, want %q", err, says)
		}
	}
}

// Report 39: a path that does not fit the kernel's address is an error with path,
// length and limit, before anything is started.
func TestReport39_LongRuntimeDir(t *testing.T) {
	s := fakeSpec(t)
	s.RuntimeDir = filepath.Join(s.RuntimeDir, strings.Repeat("x", 150))
	_, err := host.Start(patient(t), s)
	var long *protocol.SocketPathError
	if !errors.As(err, &long) || !strings.HasPrefix(long.Path, s.RuntimeDir) || !strings.Contains(err.Error(), "107") {
		t.Fatalf("got %v", err)
	}
	if _, err := os.Stat(s.RuntimeDir); err == nil {
		t.Error("the directory was made all the same")
	}
}

// Report 42: a start that failed leaves nothing that hinders the next.
func TestReport42_StartAfterFailedStart(t *testing.T) {
	s := puppetSpec(t, puppet.Script{{Do: "die", Text: "hang"}})
	s.Deadlines.Start = short
	_, err := host.Start(t.Context(), s)
	wantCrash(t, err, host.StageHello, host.CauseTimeout)
	s.Env, s.Deadlines.Start = puppet.Handshake(puppet.Step{Do: "serve"}).Env(), 0
	if _, err := start(t, s).Ping(patient(t)); err != nil {
		t.Fatal(err)
	}
}

// Another process that finds the socket, and even knows the nonce, is sent away
// and does not keep the worker out.
func TestStrangersAreRefused(t *testing.T) {
	s := puppetSpec(t, append(puppet.Script{{Do: "stranger", N: 50}, {Do: "stranger", N: 50}}, puppet.Handshake(puppet.Step{Do: "serve"})...))
	w := start(t, s)
	if w.Hello().PID != w.PID() {
		t.Fatalf("HELLO came from %d, the worker is %d", w.Hello().PID, w.PID())
	}
	if _, err := w.Ping(patient(t)); err != nil {
		t.Fatal(err)
	}
}

// Once the worker is connected nobody else can.
func TestSecondConnectionIsRefused(t *testing.T) {
	w := start(t, puppetSpec(t, puppet.Handshake(
		puppet.Step{Do: "request"}, puppet.Step{Do: "connect"}, puppet.Step{Do: "die", Text: "hang"})))
	_, err := w.Ping(patient(t))
	c := wantCrash(t, err, host.StagePing, host.CauseExit)
	if !strings.Contains(c.LogTail, "no such file") && !strings.Contains(c.LogTail, "refused") {
		t.Errorf("the second connection was not refused: %q", c.LogTail)
	}
}

// The worker gets the environment and directory that it was given, and nothing of
// the module's.
func TestNothingReachesTheWorkerByAccident(t *testing.T) {
	t.Setenv("SECRET_OF_THE_MODULE", "x")
	s := puppetSpec(t, append(puppet.Script{{Do: "environment"}}, puppet.Handshake(puppet.Step{Do: "serve"})...))
	s.ID = "w-1"
	w := start(t, s)
	if _, err := w.Ping(patient(t)); err != nil {
		t.Fatal(err)
	}
	log := w.LogTail()
	fds := "fds=" + strings.ReplaceAll(strings.Trim(fmt.Sprint(puppet.Inheritable()), "[]"), " ", ",") + "\n"
	if !strings.Contains(log, "SYNAPSE_WORKER_ID=w-1") || strings.Contains(log, "SECRET") || !strings.Contains(log, "dir=/\n") || !strings.Contains(log, fds) {
		t.Errorf("the worker sees:\n%s", log)
	}
}

// The worker's sandbox keeps to the roots that the host passes.
func TestArtifactRoots(t *testing.T) {
	inside, outside := artifact(t, nil), artifact(t, nil)
	s := fakeSpec(t)
	s.ArtifactRoots, s.Sandbox = []string{filepath.Dir(inside.Path)}, host.SandboxRequire
	w, err := host.Start(patient(t), s)
	if runtime.GOOS != "linux" {
		wantCrash(t, err, host.StageHello, host.CauseExit)
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer w.Kill()
	if flags := w.Hello().Engine.BuildFlags; !slices.ContainsFunc(flags, func(f string) bool { return strings.HasPrefix(f, "sandbox=landlock-v") }) {
		t.Errorf("the build flags are %q", flags)
	}
	m, err := w.Load(patient(t), inside)
	if err != nil {
		t.Fatal(err)
	}
	good(t, w, m.Ref)
	if _, err := w.Load(patient(t), outside); !errors.Is(err, &protocol.Error{Code: protocol.CodeArtifactInvalid}) {
		t.Errorf("an artifact outside the roots: %v", err)
	}
}
