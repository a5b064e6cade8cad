//go:build !linux

package workerkit

// groupAvailable: these systems have no control groups.
func groupAvailable() (uint64, bool) { return 0, false }
