//go:build !unix

package diskcache

import "syscall"

// diskFull is ERROR_DISK_FULL of Windows.
const diskFull = syscall.Errno(112)

// noWait is nothing here: no name among files is a pipe's.
const noWait = 0

// A user's directories are shut to others by what they inherit from the profile's
// folder.
func mineAlone(string) error      { return nil }
func everybodyWrites(string) bool { return false }
