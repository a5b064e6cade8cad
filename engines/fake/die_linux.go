package fake

import (
	"golang.org/x/sys/unix"

	"github.com/synapse-module/workers/internal/signaldeath"
)

// die ends the process by the signal that the native fault of that name raises.
func die(fault string) {
	signaldeath.By(map[string]unix.Signal{"abort": unix.SIGABRT, "segv": unix.SIGSEGV, "ill": unix.SIGILL}[fault])
}
