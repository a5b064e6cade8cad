package workerkit

import (
	"fmt"
	"os"

	"github.com/synapse-module/workers/protocol"
)

// openFile hashes a file through a descriptor and hands that out.
func (s *store) openFile(a *Artifact, want protocol.Digest) (release func(), err error) {
	f, before, err := openVerified(a.Name, want)
	if err != nil {
		return nil, err
	}
	a.Path, a.File, a.Size = pathOf(f), f, before.Size()
	// The change time would tell of writers that set the other back, but also of a file
	// that was replaced by renaming meanwhile, which is the right way to do it.
	a.unchanged = func() error {
		now, err := f.Stat()
		if err == nil && (now.Size() != before.Size() || !now.ModTime().Equal(before.ModTime())) {
			return ArtifactInvalid("%s was written to while it was loaded, so what was loaded may not be what was hashed: replace artifacts by renaming", a.Name)
		}
		return err
	}
	return func() { f.Close() }, nil
}

// pathOf is an open descriptor's name under /proc: opening it gives the same file,
// whatever its old name leads to by then.
func pathOf(f *os.File) string { return fmt.Sprintf("/proc/self/fd/%d", f.Fd()) }
