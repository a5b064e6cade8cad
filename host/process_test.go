//go:build linux || darwin

package host

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Report 43: a process id that was reaped may be anybody's. A kill that comes late
// must not reach whoever has it now.
func TestReport43_NoSignalAfterReap(t *testing.T) {
	innocent := exec.Command("/bin/sleep", "1000")
	innocent.SysProcAttr = &unix.SysProcAttr{Setpgid: true}
	if err := innocent.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = innocent.Process.Kill()
		_ = innocent.Wait()
	}()
	log, output, err := newWorkerLog()
	if err != nil {
		t.Fatal(err)
	}
	go log.drain(newLineFeed(nil, nil))
	p := spawn(exec.Command("/bin/true"), output)
	<-p.reaped
	log.finish()
	if p.end != (ending{}) {
		t.Fatalf("true ended with %v", p.end)
	}
	p.group = group{pgid: innocent.Process.Pid} // the system gave the id away
	p.kill()
	time.Sleep(10 * time.Millisecond) // a signal, had one been sent, has arrived
	if err := innocent.Process.Signal(unix.Signal(0)); err != nil {
		t.Fatalf("the innocent process is dead: %v", err)
	}
	var status unix.WaitStatus
	if pid, _ := unix.Wait4(innocent.Process.Pid, &status, unix.WNOHANG, nil); pid != 0 {
		t.Fatalf("the innocent process was signalled: %v", status)
	}
}

// A kill that comes before the process exists reaches it as soon as it does.
func TestKillBeforeStart(t *testing.T) {
	_, output, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{started: make(chan struct{}), reaped: make(chan struct{})}
	p.kill()
	cmd := exec.Command("/bin/sleep", "1000")
	cmd.Stdout, cmd.Stderr = output, output
	if err := p.start(cmd); err != nil {
		t.Fatal(err)
	}
	output.Close()
	p.reap(cmd)
	if p.end.signal != "SIGKILL" {
		t.Fatalf("ended with %v", p.end)
	}
}
