package host

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// processAttributes asks the kernel to kill the worker when the thread that
// starts it ends: the second line against orphans, for a worker that cannot
// watch its socket because it is stopped. The first line is that watch.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// awaitExit blocks until the process has exited, and leaves it unreaped. An
// error means that something else in the module has reaped it already.
func awaitExit(pid int) {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}
