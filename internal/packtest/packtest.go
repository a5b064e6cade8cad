// Package packtest packs artifacts for tests, as the zstd and tar commands do.
package packtest

import (
	"archive/tar"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/synapse-module/workers/protocol"
)

// Zstd compresses b.
func Zstd(t testing.TB, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	pack(t, &out, func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	})
	return out.Bytes()
}

// Tar packs entries as they are given, the content of each behind its header.
func Tar(t testing.TB, entries ...Entry) []byte {
	t.Helper()
	var out bytes.Buffer
	pack(t, &out, func(w io.Writer) error {
		archive := tar.NewWriter(w)
		for _, e := range entries {
			h := e.Header
			if h.Typeflag == 0 {
				h.Typeflag = tar.TypeReg
			}
			if h.Typeflag == tar.TypeReg {
				h.Mode, h.Size = 0o644, int64(len(e.Content))
			}
			if err := archive.WriteHeader(&h); err != nil {
				return err
			}
			if _, err := io.WriteString(archive, e.Content); err != nil {
				return err
			}
		}
		return archive.Close()
	})
	return out.Bytes()
}

// Entry is one of an archive's. A header without a type is a file's, whose size is
// the content's.
type Entry struct {
	tar.Header
	Content string
}

// File writes a new file that holds the file at path, compressed, and returns its
// path and its digest.
func File(t testing.TB, path string) (packed string, digest protocol.Digest) {
	t.Helper()
	return write(t, "packed.zst", func(w io.Writer) error {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = io.Copy(w, f)
		return err
	})
}

// Dir is File of a directory's files, as "tar -C path -c ." lists them.
func Dir(t testing.TB, path string) (packed string, digest protocol.Digest) {
	t.Helper()
	return write(t, "packed.tar.zst", func(w io.Writer) error {
		archive := tar.NewWriter(w)
		if err := archive.AddFS(os.DirFS(path)); err != nil {
			return err
		}
		return archive.Close()
	})
}

// Write writes b to a new file and returns its path and its digest.
func Write(t testing.TB, b []byte) (path string, digest protocol.Digest) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "packed")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path, digestOf(t, path)
}

func write(t testing.TB, name string, content func(io.Writer) error) (path string, digest protocol.Digest) {
	t.Helper()
	path = filepath.Join(t.TempDir(), name)
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	pack(t, f, content)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return path, digestOf(t, path)
}

func digestOf(t testing.TB, path string) protocol.Digest {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	d, err := protocol.FileDigest(f)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func pack(t testing.TB, to io.Writer, content func(io.Writer) error) {
	t.Helper()
	w, err := zstd.NewWriter(to)
	if err != nil {
		t.Fatal(err)
	}
	if err := content(w); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}
