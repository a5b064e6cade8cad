//go:build !linux

package host

// ownMemory is what the worker says is resident, in bytes: these systems do not
// tell another process's anonymous and swapped memory cheaply.
func ownMemory(_ *Worker, pong Pong) int64 { return pong.RSSMB << 20 }
