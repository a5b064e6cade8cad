package workerkit

import (
	"fmt"
	"os"

	"github.com/synapse-module/workers/protocol"
)

// openFile hashes a file through a descriptor and hands that out.
func (s *store) openFile(a *Artifact, want protocol.Digest) (release func(), err error) {
	f, err := openVerified(a.Name, want)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, err
	}
	a.Path, a.File, a.Size = pathOf(f), f, info.Size()
	return func() { f.Close() }, nil
}

// pathOf is an open descriptor's name under /proc: opening it gives the same file,
// whatever its old name leads to by then.
func pathOf(f *os.File) string { return fmt.Sprintf("/proc/self/fd/%d", f.Fd()) }
