package signaldeath

import (
	"os"

	"golang.org/x/sys/unix"
)

// By ends the process by sig; those that the Go runtime handles end in exit status 2 here.
func By(sig unix.Signal) {
	_ = unix.Kill(os.Getpid(), sig)
	select {} // the signal is on its way
}
