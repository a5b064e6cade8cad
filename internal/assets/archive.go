package assets

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
)

// Files of the store are read-only: nothing is meant to write to them, and a
// tool that tries by mistake fails at once instead of at the next check.
const filePerm = 0o444

// archiveFormat tells the format from the ending, "" for none that is read.
func archiveFormat(name string) string {
	for _, ending := range []string{".whl", ".jar", ".zip"} {
		if strings.HasSuffix(name, ending) {
			return "zip"
		}
	}
	if strings.HasSuffix(name, ".tgz") || strings.HasSuffix(name, ".tar.gz") {
		return "tar"
	}
	return ""
}

// visitor is called with each entry of an archive; open is good until it returns.
type visitor func(name string, mode fs.FileMode, open func() (io.ReadCloser, error)) error

// extract takes the listed files out of an archive into dir and verifies each
// while it is written. An archive that names anything outside of itself, or a
// wanted file twice, is refused whole.
func extract(archive *os.File, files []File, dir *os.Root) error {
	wanted := make(map[string]File, len(files))
	for _, f := range files {
		wanted[f.From] = f
	}
	seen := map[string]bool{}
	err := walk(archive, func(name string, mode fs.FileMode, open func() (io.ReadCloser, error)) error {
		if !local(strings.TrimSuffix(name, "/")) {
			return fmt.Errorf("entry %q points outside of the package", name)
		}
		f, ok := wanted[name]
		switch {
		case !ok:
			return nil
		case !mode.IsRegular():
			return fmt.Errorf("entry %q is no regular file", name)
		case seen[name]:
			return fmt.Errorf("entry %q stands twice", name)
		}
		seen[name] = true
		r, err := open()
		if err != nil {
			return fmt.Errorf("entry %q: %w", name, err)
		}
		defer r.Close()
		got, err := writeFile(dir, f.Path, r)
		if err != nil {
			return fmt.Errorf("entry %q: %w", name, err)
		}
		if got != f.SHA256 {
			return &DigestError{
				File: name, Want: f.SHA256, Got: got,
				Next: "the package is the pinned one, so the entry's own digest in the lock is wrong",
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, f := range files {
		if !seen[f.From] {
			return fmt.Errorf("no entry %q", f.From)
		}
	}
	return nil
}

func walk(archive *os.File, visit visitor) error {
	if archiveFormat(archive.Name()) == "zip" {
		return walkZip(archive, visit)
	}
	return walkTar(archive, visit)
}

func walkZip(archive *os.File, visit visitor) error {
	info, err := archive.Stat()
	if err != nil {
		return err
	}
	z, err := zip.NewReader(archive, info.Size())
	if err != nil {
		return err
	}
	for _, f := range z.File {
		if err := visit(f.Name, f.Mode(), f.Open); err != nil {
			return err
		}
	}
	return nil
}

func walkTar(archive *os.File, visit visitor) error {
	gz, err := gzip.NewReader(archive)
	if err != nil {
		return err
	}
	t := tar.NewReader(gz)
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		open := func() (io.ReadCloser, error) { return io.NopCloser(t), nil }
		if err := visit(h.Name, h.FileInfo().Mode(), open); err != nil {
			return err
		}
	}
}

// writeFile writes name under dir through to the disk and returns the SHA-256
// of what it wrote. The sync is for the rename that follows: after a power cut
// a name must not stand for bytes that never reached the disk.
func writeFile(dir *os.Root, name string, r io.Reader) (string, error) {
	if err := dir.MkdirAll(path.Dir(name), 0o755); err != nil {
		return "", err
	}
	w, err := dir.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, filePerm)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	_, err = io.Copy(io.MultiWriter(w, h), r)
	if err = errors.Join(err, w.Sync(), w.Close()); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
