package host

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
)

// process is one worker process and all that it started: its process group
// (Windows: its Job Object). The platform files say how a group is made, killed
// and waited for; this file holds the one rule that all share: nothing is
// signalled once it was reaped, because from then on its id may be another's.
type process struct {
	started chan struct{} // closed once the start succeeded or failed
	reaped  chan struct{} // closed once nothing of the process is left

	// Set before started is closed.
	startErr error
	pid      int

	// Set before reaped is closed.
	end ending

	mu      sync.Mutex
	running bool // started and not reaped: pid is ours
	doomed  bool // kill was called, perhaps before there was anything to kill
	group   group
}

// ending is how a process ended.
type ending struct {
	code   int    // exit status, NoExitCode where a signal ended it
	signal string // "SIGSEGV"; empty where it exited
}

func (e ending) String() string {
	if e.signal != "" {
		return "ended by " + e.signal
	}
	return fmt.Sprintf("exit status %d", e.code)
}

// spawn starts cmd, whose stdout and stderr go to output, which it closes. The
// process is waited for by the thread that started it: Linux sends the
// parent-death signal when the thread that started a process ends, so that
// thread must live exactly as long as the process.
func spawn(cmd *exec.Cmd, output *os.File) *process {
	p := &process{started: make(chan struct{}), reaped: make(chan struct{}), end: ending{code: NoExitCode}}
	cmd.Stdout, cmd.Stderr = output, output
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(p.reaped)
		err := p.start(cmd)
		output.Close() // the child has its own; ours would hide the end of the log
		close(p.started)
		if err == nil {
			p.reap(cmd)
		}
	}()
	return p
}

func (p *process) start(cmd *exec.Cmd) error {
	group, err := startInGroup(cmd)
	if err != nil {
		p.startErr = err
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pid, p.group, p.running = cmd.Process.Pid, group, true
	if p.doomed {
		p.group.kill()
	}
	return nil
}

// reap waits until the leader has exited, kills what is left of its group while
// the group's id is still held by the unreaped leader, and only then reaps.
func (p *process) reap(cmd *exec.Cmd) {
	awaitExit(p.pid)
	p.mu.Lock()
	p.group.kill()
	p.running = false
	p.mu.Unlock()
	_ = cmd.Wait() // its error is the exit status, which is read below
	p.group.release()
	if cmd.ProcessState != nil {
		p.end = endingOf(cmd.ProcessState)
	}
}

// kill sends SIGKILL to the whole group, unless it was reaped.
func (p *process) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.doomed = true
	if p.running {
		p.group.kill()
	}
}
