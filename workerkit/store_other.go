//go:build !linux

package workerkit

import (
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
	dst, err := os.OpenFile(filepath.Join(private, filepath.Base(a.Name)), os.O_RDWR|os.O_CREATE|os.O_EXCL, privateFile)
	if err != nil {
		os.RemoveAll(private)
		return nil, err
	}
	release = func() {
		dst.Close()
		os.RemoveAll(private)
	}
	got, err := protocol.FileDigest(io.TeeReader(src, &counted{WriteCloser: dst, n: &a.Size}))
	if err == nil && got != want {
		err = mismatch(a.Name, want, got)
	}
	if err != nil {
		release()
		return nil, err
	}
	a.Path, a.File = dst.Name(), dst
	return release, nil
}
