//go:build !linux

package fake

import "runtime/debug"

// die ends the process as the Go runtime does after a native fault. Only Linux
// lets a Go program take the runtime's handler off and die by the signal itself.
func die(fault string) {
	debug.SetTraceback("crash")
	panic("the scripted " + fault + " of the fake engine")
}
