//go:build linux || darwin

package host

import (
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// neutralDir is the worker's working directory: readable, holding nothing that a
// library would pick up by a relative name, and not writable for a module that
// is not root.
func neutralDir() string { return "/" }

// group is a process group, named by its leader's id.
type group struct{ pgid int }

// startInGroup starts cmd as the leader of a new process group.
func startInGroup(cmd *exec.Cmd) (group, error) {
	cmd.SysProcAttr = processAttributes()
	if err := cmd.Start(); err != nil {
		return group{}, err
	}
	return group{pgid: cmd.Process.Pid}, nil
}

// kill ignores its error: the only ones possible are that nothing of the group
// is left, and that only a zombie is.
func (g group) kill() { _ = unix.Kill(-g.pgid, unix.SIGKILL) }

func (g group) release() {}

func endingOf(s *os.ProcessState) ending {
	ws, ok := s.Sys().(syscall.WaitStatus)
	if ok && ws.Signaled() {
		return ending{code: NoExitCode, signal: unix.SignalName(ws.Signal())}
	}
	return ending{code: s.ExitCode()}
}
