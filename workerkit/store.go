package workerkit

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/synapse-module/workers/internal/diskcache"
	"github.com/synapse-module/workers/internal/regular"
	"github.com/synapse-module/workers/internal/unpack"
	"github.com/synapse-module/workers/protocol"
)

// store opens artifacts so that the bytes which are hashed are the bytes which
// the engine loads, whatever happens to their names meanwhile.
type store struct {
	dir   string // the worker's cache directory
	cache *diskcache.Cache
}

// artifactsDir is where the store's cache lies in the worker's cache directory.
const artifactsDir = "artifacts"

// newStore uses dir, or a directory of the user's cache where it is empty. Over
// limit bytes of unpacked artifacts the longest unused go.
func newStore(dir string, limit int64, log *slog.Logger) (*store, error) {
	if dir == "" {
		dir = defaultCacheDir()
	}
	dir, err := filepath.Abs(dir)
	return &store{dir: dir, cache: diskcache.New(filepath.Join(dir, artifactsDir), limit, log)}, err
}

func defaultCacheDir() string {
	const name = "synapse-workers"
	cache, err := os.UserCacheDir()
	if err != nil { // no HOME: a worker started with an empty environment
		// That directory is everybody's: users must not meet in one name.
		return filepath.Join(os.TempDir(), name+"-"+strconv.Itoa(os.Getuid()))
	}
	return filepath.Join(cache, name)
}

// formatSeparator stands between a format and how the artifact is packed.
const formatSeparator = "+"

// packings are the ways in which an artifact can be packed into one file.
var packings = map[string]func(dst string, src io.Reader, packed int64) (diskcache.Content, error){
	"zstd":    unpack.File,
	"tar.zst": unpack.Tar,
}

// open verifies the artifact at path. release frees what the artifact holds; the
// caller calls it once, when the model that was made of it is gone. Errors are of
// artifact_invalid, but for the cache's own.
func (s *store) open(path string, want protocol.Digest, format string) (a Artifact, release func(), err error) {
	format, packing, packed := strings.Cut(format, formatSeparator)
	a = Artifact{Format: format, Digest: string(want), Name: path}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return a, nil, ArtifactInvalid("%v", err)
	case packed && want.IsTree():
		return a, nil, ArtifactInvalid("%s: the digest of a packed artifact (%s%s%s) is the packed file's (sha256:), not a directory's", path, format, formatSeparator, packing)
	case want.IsTree() && !info.IsDir():
		return a, nil, ArtifactInvalid("%s is no directory, but its digest is a directory's (sha256-tree:)", path)
	case !want.IsTree() && info.IsDir():
		return a, nil, ArtifactInvalid("%s is a directory, but its digest is a file's (sha256:)", path)
	case !want.IsTree() && !info.Mode().IsRegular():
		return a, nil, ArtifactInvalid("%s is neither a file nor a directory", path)
	case packed:
		release, err = s.openPacked(&a, want, packing)
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

// openVerified opens the file at path and hashes it through the descriptor that
// it returns, read to its end. info is of before it was hashed.
func openVerified(path string, want protocol.Digest) (f *os.File, info fs.FileInfo, err error) {
	if f, err = regular.Open(path); err != nil {
		return nil, nil, err
	}
	if info, err = f.Stat(); err == nil {
		var got protocol.Digest
		if got, err = protocol.FileDigest(f); err == nil && got != want {
			err = mismatch(path, want, got)
		}
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// openPacked gives the artifact's content out of the cache, or unpacks it there.
// The packed file is hashed either way, so that what the cache holds changes how
// long a LOAD takes and never its answer; the content is hashed where it lies,
// against what was written there when it was unpacked.
func (s *store) openPacked(a *Artifact, want protocol.Digest, packing string) (release func(), err error) {
	unpackTo, ok := packings[packing]
	if !ok {
		return nil, EngineFailed("this engine names %q as a way of packing, which is none: a fault of this worker", packing)
	}
	src, info, err := openVerified(a.Name, want)
	if err != nil {
		return nil, err
	}
	defer src.Close()
	e, err := s.cache.Open(want.Hex()+"-"+packing, func(content string) (diskcache.Content, error) {
		head := make([]byte, unpack.HeadBytes)
		n, _ := src.ReadAt(head, 0) // a shorter file is refused below
		if err := CheckMemory(unpack.Window(head[:n]), "unpacking "+a.Name); err != nil {
			return diskcache.Content{}, err
		}
		// The window is garbage afterwards, and counts as this worker's memory until it
		// is given back.
		defer debug.FreeOSMemory()
		if _, err := src.Seek(0, io.SeekStart); err != nil { // it may be the second attempt
			return diskcache.Content{}, err
		}
		h := sha256.New()
		made, err := unpackTo(content, io.TeeReader(src, h), info.Size())
		if err != nil {
			return made, s.notWritten(err)
		}
		// A file that somebody writes to between its two readings.
		if got := fmt.Sprintf("%x", h.Sum(nil)); got != want.Hex() {
			return made, ArtifactInvalid("%s was changed while it was unpacked: its bytes had the digest sha256:%s", a.Name, got)
		}
		return made, nil
	})
	if err != nil {
		return nil, err
	}
	a.Path, a.File, a.Size = e.Path, e.File, e.Bytes
	if e.File != nil {
		a.Path = pathOf(e.File)
	}
	return e.Release, nil
}

// notWritten makes an error of the cache's of one that is no fault of the
// artifact.
func (s *store) notWritten(err error) error {
	var failed *unpack.WriteError
	if errors.As(err, &failed) {
		return s.cache.Failed(failed.Err)
	}
	return err
}

// openTree copies a directory into a private one while it is hashed, since no
// descriptor pins what lies inside a directory.
func (s *store) openTree(a *Artifact, want protocol.Digest) (release func(), err error) {
	root, err := os.OpenRoot(a.Name)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	private, err := s.cache.Private()
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			private.Release()
		}
	}()
	tee := func(name string) (io.WriteCloser, error) {
		dst := filepath.Join(private.Dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(dst), privateDir); err != nil {
			return nil, s.cache.Failed(err)
		}
		return s.create(dst, &a.Size)
	}
	got, err := protocol.TreeDigest(regular.FS(root), tee)
	if err != nil {
		return nil, err
	}
	if got != want {
		return nil, mismatch(a.Name, want, got)
	}
	a.Path = private.Dir
	return private.Release, nil
}

// create makes a new file of a private copy, whose bytes are added to n.
func (s *store) create(path string, n *int64) (io.WriteCloser, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, privateFile)
	if err != nil {
		return nil, s.cache.Failed(err)
	}
	return &copied{f, s.cache, n}, nil
}

// copied is a file of a private copy: what fails is the cache's, not the
// artifact's.
type copied struct {
	f     *os.File
	cache *diskcache.Cache
	n     *int64
}

func (c *copied) Write(p []byte) (int, error) {
	n, err := c.f.Write(p)
	*c.n += int64(n)
	if err != nil {
		err = c.cache.Failed(err)
	}
	return n, err
}

func (c *copied) Close() error {
	if err := c.f.Close(); err != nil {
		return c.cache.Failed(err)
	}
	return nil
}

// Modes of private copies: nobody else may read weights or swap them.
const (
	privateDir  fs.FileMode = 0o700
	privateFile fs.FileMode = 0o600
)
