//go:build !linux

package workerkit

import (
	"fmt"
	"runtime"
)

// confine: macOS has no documented call with which a process confines itself, and
// Windows confines a process from outside, when it is made.
func confine(confinement) (done string, missing error) {
	return "none", fmt.Errorf("%s has none that a process can enter by itself", runtime.GOOS)
}

// sandboxOffer is what --version says.
func sandboxOffer() string { return sandboxFlag + "none" }
