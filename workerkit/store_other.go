//go:build !linux

package workerkit

import (
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/synapse-module/workers/internal/regular"
	"github.com/synapse-module/workers/protocol"
)

// openFile hashes a file while it is copied into a private directory: these
// systems have no name for an open descriptor that a library could be given.
func (s *store) openFile(a *Artifact, want protocol.Digest) (release func(), err error) {
	src, err := regular.Open(a.Name)
	if err != nil {
		return nil, err
	}
	defer src.Close()
	private, err := s.cache.Private()
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			private.Release()
		}
	}()
	name := filepath.Join(private.Dir, filepath.Base(a.Name))
	got, err := s.copyHashing(name, src, &a.Size)
	if err == nil && got != want {
		err = mismatch(a.Name, want, got)
	}
	if err != nil {
		return nil, err
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, s.cache.Failed(err)
	}
	a.Path, a.File = name, f
	return func() {
		f.Close()
		private.Release()
	}, nil
}

// copyHashing writes a new file and returns the digest of what it wrote. The file
// is closed: Windows lets no library open one that somebody still has open for
// writing.
func (s *store) copyHashing(name string, src io.Reader, size *int64) (protocol.Digest, error) {
	dst, err := s.create(name, size)
	if err != nil {
		return "", err
	}
	got, err := protocol.FileDigest(io.TeeReader(src, dst))
	return got, errors.Join(err, dst.Close())
}

// pathOf is the name of an open file that lies in the cache, where nobody else
// writes.
func pathOf(f *os.File) string { return f.Name() }
