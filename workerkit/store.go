package workerkit

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/synapse-module/workers/protocol"
)

// store opens artifacts so that the bytes which are hashed are the bytes which
// the engine loads, whatever happens to their names meanwhile.
type store struct {
	dir string // for private copies; made when the first one is
}

// newStore uses dir, or a directory of the user's cache where it is empty.
func newStore(dir string) (*store, error) {
	if dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil { // no HOME: a worker started with an empty environment
			cache = os.TempDir()
		}
		dir = filepath.Join(cache, "synapse-workers")
	}
	dir, err := filepath.Abs(dir)
	return &store{dir: dir}, err
}

// open verifies the artifact at path. release frees what the artifact holds; the
// caller calls it once, when the model that was made of it is gone. Errors are of
// artifact_invalid.
func (s *store) open(path string, want protocol.Digest, format string) (a Artifact, release func(), err error) {
	a = Artifact{Format: format, Digest: string(want), Name: path}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return a, nil, ArtifactInvalid("%v", err)
	case want.IsTree() && !info.IsDir():
		return a, nil, ArtifactInvalid("%s is no directory, but its digest is a directory's (sha256-tree:)", path)
	case !want.IsTree() && info.IsDir():
		return a, nil, ArtifactInvalid("%s is a directory, but its digest is a file's (sha256:)", path)
	case !want.IsTree() && !info.Mode().IsRegular():
		return a, nil, ArtifactInvalid("%s is neither a file nor a directory", path)
	case want.IsTree():
		release, err = s.openTree(&a, want)
	default:
		release, err = s.openFile(&a, want)
	}
	if err != nil {
		var refusal *protocol.Error
		if !errors.As(err, &refusal) {
			err = ArtifactInvalid("%s: %v", path, err)
		}
		return a, nil, err
	}
	return a, release, nil
}

func mismatch(name string, want, got protocol.Digest) error {
	return ArtifactInvalid("%s has the digest %s, the LOAD says %s: the file was changed or cut, or the digest is another file's", name, got, want)
}

// openTree copies a directory into a private one while it is hashed, since no
// descriptor pins what lies inside a directory.
func (s *store) openTree(a *Artifact, want protocol.Digest) (release func(), err error) {
	root, err := os.OpenRoot(a.Name)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	private, err := s.private()
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			os.RemoveAll(private)
		}
	}()
	tee := func(name string) (io.WriteCloser, error) {
		dst := filepath.Join(private, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(dst), privateDir); err != nil {
			return nil, err
		}
		f, err := os.OpenFile(dst, os.O_WRONLY|os.O_CREATE|os.O_EXCL, privateFile)
		return &counted{WriteCloser: f, n: &a.Size}, err
	}
	got, err := protocol.TreeDigest(root.FS(), tee)
	if err != nil {
		return nil, err
	}
	if got != want {
		return nil, mismatch(a.Name, want, got)
	}
	a.Path = private
	return func() { os.RemoveAll(private) }, nil
}

// counted adds up what is written.
type counted struct {
	io.WriteCloser
	n *int64
}

func (c *counted) Write(p []byte) (int, error) {
	n, err := c.WriteCloser.Write(p)
	*c.n += int64(n)
	return n, err
}

// Modes of private copies: nobody else may read weights or swap them.
const (
	privateDir  fs.FileMode = 0o700
	privateFile fs.FileMode = 0o600
)

// private makes an empty directory that only this process knows.
func (s *store) private() (string, error) {
	if err := os.MkdirAll(s.dir, privateDir); err != nil {
		return "", fmt.Errorf("the cache directory: %w", err)
	}
	return os.MkdirTemp(s.dir, fmt.Sprintf("load-%d-", os.Getpid()))
}
