//go:build unix

package diskcache

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// diskFull is the system's error of a disk without space.
const diskFull = syscall.ENOSPC

// noWait opens a lock that somebody made a FIFO without waiting for its other end.
const noWait = syscall.O_NONBLOCK

// The bits by which others than the owner, and by which all, can put entries into
// a directory.
const (
	othersWrite    fs.FileMode = 0o022
	everybodyWrite fs.FileMode = 0o002
)

// mineAlone refuses a directory into which somebody else could put entries.
func mineAlone(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && int(stat.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to the user %d, this process runs as %d", dir, stat.Uid, os.Geteuid())
	}
	if mode := info.Mode().Perm(); mode&othersWrite != 0 {
		return fmt.Errorf("others may write into %s (mode %v)", dir, mode)
	}
	return nil
}

func everybodyWrites(dir string) bool {
	info, err := os.Stat(dir)
	return err == nil && info.Mode().Perm()&everybodyWrite != 0
}
