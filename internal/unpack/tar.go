package unpack

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/synapse-module/workers/internal/diskcache"
	"github.com/synapse-module/workers/protocol"
)

// Tar writes the files of the tar archive in the zstd stream of size packed bytes in
// src to a new directory dst. Its digest is the tree's of the bytes as they were
// decompressed. Modes, owners and times are not restored.
func Tar(dst string, src io.Reader, packed int64) (diskcache.Content, error) {
	r, err := decompress(src, packed)
	if err != nil {
		return diskcache.Content{}, err
	}
	defer r.Close()
	return untar(dst, r)
}

// untar is Tar of the archive itself.
func untar(dst string, r io.Reader) (diskcache.Content, error) {
	if err := os.Mkdir(dst, privateDir); err != nil {
		return diskcache.Content{}, &WriteError{err}
	}
	root, err := os.OpenRoot(dst)
	if err != nil {
		return diskcache.Content{}, &WriteError{err}
	}
	defer root.Close()
	t := tree{root: root, names: names{}, digests: map[string]protocol.Digest{}}
	if err := t.unpack(r); err != nil {
		return diskcache.Content{}, err
	}
	return diskcache.Content{Digest: protocol.TreeDigestOf(t.digests), Bytes: t.bytes}, nil
}

// tree is a directory that is being unpacked.
type tree struct {
	root    *os.Root
	names   names
	digests map[string]protocol.Digest
	bytes   int64
}

func (t *tree) unpack(r io.Reader) error {
	archive := tar.NewReader(r)
	for n := 0; ; n++ {
		h, err := archive.Next()
		switch {
		case errors.Is(err, io.EOF):
			if len(t.digests) == 0 {
				return errors.New("the archive holds no file")
			}
			return onlyPadding(r)
		case err != nil:
			return fmt.Errorf("tar: %w", err)
		case n == maxEntries:
			return fmt.Errorf("the archive has over %d entries", maxEntries)
		}
		if err := t.add(h, archive); err != nil {
			return err
		}
	}
}

// add unpacks one entry.
func (t *tree) add(h *tar.Header, content io.Reader) error {
	if err := plain(h); err != nil {
		return err
	}
	name := strings.TrimPrefix(h.Name, "./")
	if h.Typeflag == tar.TypeDir {
		if name = strings.TrimSuffix(name, "/"); name == "" || name == "." {
			return nil // the top itself
		}
	}
	if err := t.names.add(name, h.Typeflag == tar.TypeDir); err != nil {
		return err
	}
	local, err := filepath.Localize(name)
	if err != nil {
		return fmt.Errorf("the archive holds %.128q, which is no name of a file here", name)
	}
	if h.Typeflag == tar.TypeDir {
		return made(t.root.MkdirAll(local, privateDir), name)
	}
	if err := made(t.root.MkdirAll(filepath.Dir(local), privateDir), path.Dir(name)); err != nil {
		return err
	}
	w, err := t.root.OpenFile(local, os.O_WRONLY|os.O_CREATE|os.O_EXCL, privateFile)
	if err := made(err, name); err != nil {
		return err
	}
	c, err := store(w, content)
	if err != nil {
		return tarError(name, err)
	}
	t.digests[name] = c.Digest
	t.bytes += c.Bytes
	return nil
}

// plain refuses what is no file and no directory, and files that are not stored as
// they are.
func plain(h *tar.Header) error {
	kinds := map[byte]string{
		tar.TypeLink: "hard link", tar.TypeSymlink: "symbolic link", tar.TypeChar: "device", tar.TypeBlock: "device",
		tar.TypeFifo: "named pipe", tar.TypeGNUSparse: "sparse file", tar.TypeXGlobalHeader: "global header",
	}
	switch {
	case h.Typeflag == tar.TypeDir && h.Size != 0:
		return fmt.Errorf("the archive holds the directory %.128q with %d bytes", h.Name, h.Size)
	case h.Typeflag == tar.TypeDir:
		return nil
	case h.Typeflag == tar.TypeReg:
		for key := range h.PAXRecords {
			if strings.HasPrefix(key, "GNU.sparse.") {
				return refused(h, kinds[tar.TypeGNUSparse])
			}
		}
		return nil
	}
	kind, ok := kinds[h.Typeflag]
	if !ok {
		kind = fmt.Sprintf("entry of type %q", h.Typeflag)
	}
	return refused(h, kind)
}

func refused(h *tar.Header, kind string) error {
	return fmt.Errorf("the archive holds the %s %.128q; only directories and regular files are allowed", kind, h.Name)
}

// made tells a name that this file system takes for another one's from a failure
// to write.
func made(err error, name string) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrExist):
		return fmt.Errorf("the archive holds %.128q and another name that is the same on this file system", name)
	}
	return &WriteError{err}
}

func tarError(name string, err error) error {
	var failed *WriteError
	if errors.As(err, &failed) {
		return err
	}
	return fmt.Errorf("tar: %.128q: %w", name, err)
}

// onlyPadding reads to the stream's end. Behind an archive's last entry there are
// zeros; a second archive there would be another directory for some readers.
func onlyPadding(r io.Reader) error {
	if _, err := io.Copy(zeros{}, r); err != nil {
		return fmt.Errorf("tar: behind the archive's end: %w", err)
	}
	return nil
}

type zeros struct{}

func (zeros) Write(p []byte) (int, error) {
	for _, b := range p {
		if b != 0 {
			return 0, errors.New("something follows that is no padding: make one archive of it")
		}
	}
	return len(p), nil
}
