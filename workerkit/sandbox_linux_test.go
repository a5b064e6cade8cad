package workerkit_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/sys/unix"

	"github.com/synapse-module/workers/internal/wiretest"
	"github.com/synapse-module/workers/protocol"
	"github.com/synapse-module/workers/workerkit"
)

// TestMain makes this test binary a worker where it is started as one.
func TestMain(m *testing.M) {
	if slices.Contains(os.Args, "--socket") {
		workerkit.Main(workerkit.Worker{Name: "worker-probe", Open: func(workerkit.Setup) (workerkit.Engine, error) { return probe{}, nil }})
	}
	m.Run()
}

// probe is an engine whose LOAD tries what a sandbox forbids and fails as that
// does.
type probe struct{}

func (probe) Info() workerkit.Info {
	return workerkit.Info{
		Name: "probe", Version: "1", Formats: []string{"probe"},
		Options: []workerkit.Option{
			{Name: "try", Kind: workerkit.KindString, Help: "what to try"},
			{Name: "at", Kind: workerkit.KindString, Help: "where"},
		},
	}
}

func (probe) Load(_ context.Context, a workerkit.Artifact, c workerkit.Config) (workerkit.Model, error) {
	if _, err := os.ReadFile(a.Path); err != nil {
		return nil, fmt.Errorf("the artifact itself: %w", err)
	}
	if err := tries[c.String("try")](c.String("at")); err != nil {
		return nil, workerkit.EngineFailed("%v", err)
	}
	return probed{}, nil
}

type probed struct{}

func (probed) Describe() workerkit.Description {
	return workerkit.Description{Arch: "probe", MaxTokens: 1, VocabSize: 1}
}
func (probed) Close() error { return nil }

// tries is what a probe does. Each succeeds outside a sandbox.
var tries = map[string]func(at string) error{
	"read": func(at string) error { _, err := os.ReadFile(at); return err },
	"list": func(at string) error { _, err := os.ReadDir(filepath.Dir(at)); return err },
	"write": func(at string) error {
		return os.WriteFile(at+".new", []byte("x"), 0o600)
	},
	"overwrite": func(at string) error {
		f, err := os.OpenFile(at, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return f.Close()
	},
	"empty":  func(at string) error { return os.Truncate(at, 0) },
	"remove": os.Remove,
	"exec":   func(string) error { return exec.Command("/bin/true").Run() },
	// A process that is started without a program of its own.
	"fork": func(string) error {
		pid, _, errno := unix.RawSyscall(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0)
		if errno != 0 {
			return errno
		}
		if pid == 0 {
			_, _, _ = unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
		}
		_, err := unix.Wait4(int(pid), nil, 0, nil)
		return err
	},
	"tcp": func(at string) error {
		c, err := net.Dial("tcp", at)
		if err != nil {
			return err
		}
		return c.Close()
	},
	"listen": func(string) error {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		return l.Close()
	},
	"udp": func(string) error {
		c, err := net.Dial("udp", "127.0.0.1:9")
		if err != nil {
			return err
		}
		return c.Close()
	},
	"socketpair": func(string) error {
		fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		if err != nil {
			return err
		}
		unix.Close(fds[0])
		return unix.Close(fds[1])
	},
	"core": func(string) error {
		if v, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0); err != nil || v != 1 {
			return fmt.Errorf("the process is not dumpable (%d): %w", v, err)
		}
		return nil
	},
	"privilege": func(string) error {
		if v, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0); err != nil || v != 0 {
			return fmt.Errorf("no new privileges (%d): %w", v, err)
		}
		return nil
	},
	// What must go on in every thread: the sandbox is of no use to one alone.
	"every thread": func(at string) error {
		failures := make(chan error)
		const threads = 16
		for range threads {
			go func() {
				_, err := os.ReadFile(at)
				failures <- err
			}()
		}
		var all error
		for range threads {
			all = errors.Join(all, <-failures)
		}
		return all
	},
}

// The sandbox forbids each of these and nothing else does: outside it they work.
func TestSandbox(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for mode, confined := range map[string]bool{"off": false, "require": true} {
		root := t.TempDir()
		p := wiretest.Spawn(t, exe, "--sandbox="+mode, "--artifact-root", root).Accept(0)
		flags := strings.Join(p.Hello.Engine.BuildFlags, " ")
		if confined != (strings.Contains(flags, "sandbox=landlock-v") && strings.Contains(flags, "+seccomp")) {
			t.Fatalf("--sandbox=%s says %s", mode, flags)
		}
		for try := range tries {
			t.Run(mode+" "+try, func(t *testing.T) {
				at := filepath.Join(t.TempDir(), "outside")
				if err := os.WriteFile(at, []byte("secret"), 0o644); err != nil {
					t.Fatal(err)
				}
				if try == "tcp" {
					at = l.Addr().String()
				}
				p.Send(probeLoad(t, root, try, at))
				if confined {
					if e := p.ExpectErr(protocol.CodeEngineFailed); !strings.Contains(e.Msg, "denied") && !strings.Contains(e.Msg, "not permitted") && try != "core" && try != "privilege" {
						t.Errorf("refused for another reason: %s", e.Msg)
					}
					return
				}
				var loaded protocol.Loaded
				p.Expect(&loaded)
			})
		}
	}
}

// What a worker needs still works inside: its artifacts and its cache.
func TestSandboxLeavesWhatServingNeeds(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	first, second := t.TempDir(), t.TempDir()
	p := wiretest.Spawn(t, exe, "--sandbox=require", "--artifact-root", first, "--artifact-root", second).Accept(0)
	var loaded protocol.Loaded
	for i, at := range []string{"/proc/meminfo", filepath.Join(first, "model"), filepath.Join(second, "model")} {
		root := []string{first, first, second}[i]
		p.Send(probeLoad(t, root, "read", at))
		p.Expect(&loaded)
	}
	p.Send(protocol.Ping{ReqID: "9"})
	var pong protocol.Pong
	if p.Expect(&pong); pong.RSSMB < 1 {
		t.Errorf("rss_mb is %d", pong.RSSMB)
	}
	outside := probeLoad(t, t.TempDir(), "read", "/proc/meminfo")
	p.Send(outside)
	if e := p.ExpectErr(protocol.CodeArtifactInvalid); !strings.Contains(e.Msg, "denied") {
		t.Errorf("an artifact outside the roots: %s", e.Msg)
	}
	p.Send(protocol.Shutdown{})
	if got := p.Exit(); got != protocol.ExitOK {
		t.Errorf("exit status %d", got)
	}
}

func TestSandboxFlags(t *testing.T) {
	for _, args := range [][]string{{"--sandbox=maybe"}, {"--artifact-root", "/no/such/directory"}} {
		p, status := "", 0
		if strings.HasPrefix(args[0], "--sandbox") {
			status, p = run(t, append([]string{"--socket", "x", "--nonce", "00"}, args...)...)
		} else {
			exe, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			status, p = refusedStart(t, exe, args...)
		}
		if status != protocol.ExitUsage || !strings.Contains(p, strings.TrimLeft(strings.Split(args[0], "=")[0], "-")) {
			t.Errorf("%v: exit status %d, %s", args, status, p)
		}
	}
}

// refusedStart starts a worker that connects and ends before its HELLO.
func refusedStart(t *testing.T, exe string, args ...string) (status int, stderr string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "wt")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	cmd := exec.Command(exe, append([]string{"--socket", filepath.Join(dir, "s"), "--nonce", "00", "--cache-dir", dir}, args...)...)
	cmd.Env = []string{}
	out, _ := cmd.CombinedOutput()
	return cmd.ProcessState.ExitCode(), string(out)
}

func probeLoad(t *testing.T, root, try, at string) protocol.Load {
	t.Helper()
	text := "a model of " + t.Name()
	path := filepath.Join(root, "model")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	digest, err := protocol.FileDigest(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return protocol.Load{
		ReqID: protocol.NumberID(1), ArtifactPath: path, ArtifactDigest: digest, Format: "probe",
		RuntimeConfig: jsontext.Value(fmt.Sprintf(`{"try":%q,"at":%q}`, try, at)),
	}
}
