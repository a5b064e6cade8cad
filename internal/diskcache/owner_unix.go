//go:build unix

package diskcache

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// othersWrite are the bits by which others than the owner can put entries into a
// directory.
const othersWrite fs.FileMode = 0o022

// mineAlone refuses a directory into which somebody else could put entries.
func mineAlone(info fs.FileInfo) error {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && int(stat.Uid) != os.Geteuid() {
		return fmt.Errorf("it belongs to the user %d, this process runs as %d", stat.Uid, os.Geteuid())
	}
	if info.Mode().Perm()&othersWrite != 0 {
		return fmt.Errorf("others may write into it (mode %v)", info.Mode().Perm())
	}
	return nil
}
