//go:build linux

package host_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"golang.org/x/sys/unix"

	"github.com/synapse-module/workers/host"
	"github.com/synapse-module/workers/internal/puppet"
	"github.com/synapse-module/workers/internal/wiretest"
)

// moduleVariable makes this test binary a module of its own that can be killed.
const moduleVariable = "SYNAPSE_TEST_MODULE"

// module is what such a process does: start a worker, send it a request, and wait
// to be killed.
type module struct {
	Spec struct {
		Path       string
		Args, Env  []string
		RuntimeDir string
	}
	Load  host.LoadRequest
	Stage host.Stage // the last request, which is not expected to come back
}

func moduleMain() {
	text := os.Getenv(moduleVariable)
	if text == "" {
		return
	}
	var m module
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		panic(err)
	}
	s := host.Spec{Path: m.Spec.Path, Args: m.Spec.Args, Env: m.Spec.Env, RuntimeDir: m.Spec.RuntimeDir}
	said := false
	s.Log = func(l host.LogLine) {
		if !said {
			fmt.Println("pid", l.PID)
			said = true
		}
	}
	ctx := context.Background()
	w, err := host.Start(ctx, s)
	if err != nil {
		panic(err)
	}
	fmt.Println("pid", w.PID())
	if m.Stage == host.StageLoad {
		fmt.Println("now")
		_, _ = w.Load(ctx, m.Load)
	}
	if m.Stage != host.StageIdle {
		loaded, err := w.Load(ctx, m.Load)
		if err != nil {
			panic(err)
		}
		fmt.Println("now")
		_, _ = w.Embed(ctx, host.EmbedRequest{Model: loaded.Ref, Rows: [][]int32{{1}}})
	}
	fmt.Println("now")
	select {}
}

// killModule runs a module until it says that it is where it should be, gives the
// last request a moment to be in hand, kills it with SIGKILL, and returns the
// worker's pid.
func killModule(t *testing.T, m module, lastSign string) (worker int) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), moduleVariable+"="+string(text), "GORACE=atexit_sleep_ms=0")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(wiretest.Patience, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		_, _ = fmt.Sscanf(lines.Text(), "pid %d", &worker)
		if strings.HasPrefix(lines.Text(), lastSign) {
			break
		}
	}
	time.Sleep(50 * time.Millisecond) // the request is on its way to the worker
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if worker == 0 {
		t.Fatal("the module never had a worker")
	}
	return worker
}

// Report 37: a module that is killed leaves no worker, whatever either was doing.
func TestReport37_NoOrphan(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		script puppet.Script // nil for worker-fake
		config map[string]any
		stage  host.Stage
		sign   string
	}{
		"before it connects":  {script: puppet.Script{{Do: "stderr", Text: "up\n"}, {Do: "die", Text: "hang"}}, stage: host.StageIdle, sign: "pid"},
		"in the handshake":    {script: puppet.Script{{Do: "connect"}, {Do: "stderr", Text: "up\n"}, {Do: "die", Text: "hang"}}, stage: host.StageIdle, sign: "pid"},
		"deaf to its socket":  {script: puppet.Handshake(puppet.Step{Do: "die", Text: "hang"}), stage: host.StageIdle, sign: "now"},
		"stopped":             {script: puppet.Handshake(puppet.Step{Do: "die", Text: "stop"}), stage: host.StageIdle, sign: "now"},
		"idle":                {stage: host.StageIdle, sign: "now"},
		"in LOAD":             {config: map[string]any{"fault": "hang", "fault_stage": "load"}, stage: host.StageLoad, sign: "now"},
		"in a call that ends": {config: map[string]any{"fault": "sleep", "fault_ms": 60000}, stage: host.StageEmbed, sign: "now"},
		"in a call for ever":  {config: map[string]any{"fault": "hang"}, stage: host.StageEmbed, sign: "now"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := module{Stage: c.stage, Load: artifact(t, c.config)}
			m.Spec.RuntimeDir = runtimeDir(t)
			if c.script != nil {
				m.Spec.Path, m.Spec.Env = exe, c.script.Env()
			} else {
				f := fakeSpec(t)
				m.Spec.Path, m.Spec.Args = f.Path, f.Args
			}
			gone(t, killModule(t, m, c.sign))
		})
	}
}

// gone proves that an orphan is dead within the three seconds that are promised.
func gone(t *testing.T, pid int) {
	t.Helper()
	const promised = 3 * time.Second
	for end := time.Now().Add(promised); unix.Kill(pid, 0) == nil && !zombie(pid); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			_ = unix.Kill(pid, unix.SIGKILL)
			t.Fatalf("worker %d lives %v after its module was killed", pid, promised)
		}
	}
}

// Report 38: modules that are killed while they wait for a worker leave a socket
// each; the next start in the same directory removes them all and is not disturbed
// by them. One that is killed later leaves nothing.
func TestReport38_NoSocketLeft(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	m := module{Stage: host.StageIdle}
	m.Spec.Path, m.Spec.RuntimeDir = exe, runtimeDir(t)
	workers := filepath.Join(m.Spec.RuntimeDir, "synapse", "workers")
	m.Spec.Env = puppet.Handshake(puppet.Step{Do: "serve"}).Env()
	for range 10 {
		gone(t, killModule(t, m, "now"))
		empty(t, m.Spec.RuntimeDir)
	}
	m.Spec.Env = puppet.Script{{Do: "stderr", Text: "up\n"}, {Do: "die", Text: "hang"}}.Env()
	for range 10 {
		gone(t, killModule(t, m, "pid"))
	}
	if left, err := os.ReadDir(workers); err != nil || len(left) == 0 {
		t.Fatalf("nothing was left to remove, so this proves nothing: %v, %v", left, err)
	}
	s := host.Spec{Path: exe, RuntimeDir: m.Spec.RuntimeDir, Env: puppet.Handshake(puppet.Step{Do: "serve"}).Env()}
	w := start(t, s)
	empty(t, m.Spec.RuntimeDir)
	if _, err := w.Ping(patient(t)); err != nil {
		t.Fatal(err)
	}
}

// A sweep takes nothing from a module that is alive and waiting.
func TestSweepSparesTheLiving(t *testing.T) {
	s := puppetSpec(t, puppet.Handshake(puppet.Step{Do: "serve"}))
	slow := s
	slow.Env = append(puppet.Script{{Do: "stderr", Text: "up\n"}, {Do: "sleep", N: 1000}}, puppet.Handshake(puppet.Step{Do: "serve"})...).Env()
	up := make(chan struct{}, 1)
	slow.Log = func(host.LogLine) { up <- struct{}{} }
	started := make(chan error, 1)
	go func() {
		w, err := host.Start(patient(t), slow)
		if err == nil {
			_, err = w.Ping(patient(t))
			w.Kill()
			<-w.Done()
		}
		started <- err
	}()
	<-up
	for range 5 {
		w := start(t, s)
		w.Kill()
		<-w.Done()
	}
	if err := <-started; err != nil {
		t.Fatal(err)
	}
}
