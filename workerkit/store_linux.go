package workerkit

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/synapse-module/workers/protocol"
)

// openFile hashes a file through a descriptor and hands out that descriptor's
// name under /proc: opening it gives the same file, whatever its old name leads
// to by then.
func (s *store) openFile(a *Artifact, want protocol.Digest) (release func(), err error) {
	// O_NONBLOCK: a name that has become a FIFO since it was looked at must not
	// hang the worker.
	f, err := os.OpenFile(a.Name, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, ArtifactInvalid("%s is no regular file", a.Name)
	}
	got, err := protocol.FileDigest(f)
	if err != nil {
		return nil, err
	}
	if got != want {
		return nil, mismatch(a.Name, want, got)
	}
	a.Path, a.File, a.Size = fmt.Sprintf("/proc/self/fd/%d", f.Fd()), f, info.Size()
	return func() { f.Close() }, nil
}
