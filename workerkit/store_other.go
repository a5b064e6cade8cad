//go:build !linux

package workerkit

import (
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/synapse-module/workers/protocol"
)

// openFile hashes a file while it is copied into a private directory: these
// systems have no name for an open descriptor that a library could be given.
func (s *store) openFile(a *Artifact, want protocol.Digest) (release func(), err error) {
	src, err := os.Open(a.Name)
	if err != nil {
		return nil, err
	}
	defer src.Close()
	private, err := s.private()
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			os.RemoveAll(private)
		}
	}()
	name := filepath.Join(private, filepath.Base(a.Name))
	got, err := copyHashing(name, src, &a.Size)
	if err == nil && got != want {
		err = mismatch(a.Name, want, got)
	}
	if err != nil {
		return nil, err
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	a.Path, a.File = name, f
	return func() {
		f.Close()
		os.RemoveAll(private)
	}, nil
}

// copyHashing writes a new file and returns the digest of what it wrote. The file
// is closed: Windows lets no library open one that somebody still has open for
// writing.
func copyHashing(name string, src io.Reader, size *int64) (protocol.Digest, error) {
	dst, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, privateFile)
	if err != nil {
		return "", err
	}
	got, err := protocol.FileDigest(io.TeeReader(src, &counted{WriteCloser: dst, n: size}))
	return got, errors.Join(err, dst.Close())
}
