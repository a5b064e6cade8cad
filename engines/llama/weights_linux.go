package llama

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// newCopied keeps the file in memory without a name: nobody else reaches it, no
// disk is needed, and mapped it is in memory once.
func (e *engine) newCopied() (*copied, error) {
	// A system may demand that such files say that they are no programs; before Linux
	// 6.3 none could.
	fd, err := unix.MemfdCreate("weights", unix.MFD_CLOEXEC|unix.MFD_NOEXEC_SEAL)
	if errors.Is(err, unix.EINVAL) {
		fd, err = unix.MemfdCreate("weights", unix.MFD_CLOEXEC)
	}
	if err != nil {
		return nil, notCopied(fmt.Errorf("memfd_create: %w", err))
	}
	path := fmt.Sprintf("/proc/self/fd/%d", fd)
	f := os.NewFile(uintptr(fd), path)
	return &copied{Writer: f, finish: func() (string, error) { return path, nil }, release: func() { f.Close() }}, nil
}
