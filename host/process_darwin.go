package host

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// processAttributes: macOS has no parent-death signal, so a worker's own watch
// on its socket is all that ends it when the module is killed.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// awaitExit blocks until the process has exited, and leaves it unreaped. It does
// not use waitid, which on macOS also returns for a stopped process. A process
// that cannot be watched any more has exited: it is our child and unreaped.
func awaitExit(pid int) {
	kq, err := unix.Kqueue()
	if err != nil {
		return // out of descriptors: cmd.Wait then blocks in our stead
	}
	defer unix.Close(kq)
	var watch unix.Kevent_t
	unix.SetKevent(&watch, pid, unix.EVFILT_PROC, unix.EV_ADD|unix.EV_ONESHOT)
	watch.Fflags = unix.NOTE_EXIT
	got := make([]unix.Kevent_t, 1)
	for {
		_, err := unix.Kevent(kq, []unix.Kevent_t{watch}, got, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}
