package workerkit

import (
	"bytes"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/synapse-module/workers/internal/diskcache"
	"github.com/synapse-module/workers/internal/packtest"
	"github.com/synapse-module/workers/internal/unpack"
	"github.com/synapse-module/workers/protocol"
)

func digestOf(t *testing.T, b string) protocol.Digest {
	t.Helper()
	d, err := protocol.FileDigest(strings.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func storeIn(t *testing.T, dir string) *store {
	t.Helper()
	s, err := newStore(dir, diskcache.DefaultLimit, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A file that is swapped after the check changes nothing: the engine reads the
// bytes that were hashed.
func TestSwappedFileChangesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "model")
	write(t, path, "checked")
	s := storeIn(t, t.TempDir())
	a, release, err := s.open(path, digestOf(t, "checked"), "fake")
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	write(t, path+".new", "swapped")
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(a.Path)
	if err != nil || !bytes.Equal(got, []byte("checked")) {
		t.Fatalf("the engine would read %q, %v", got, err)
	}
	if a.Size != int64(len("checked")) {
		t.Fatalf("size %d", a.Size)
	}
}

func TestTreeIsACopyOfWhatWasHashed(t *testing.T) {
	dir, cache := t.TempDir(), t.TempDir()
	write(t, filepath.Join(dir, "model.onnx"), "graph")
	write(t, filepath.Join(dir, "sub", "weights.bin"), "weights")
	want, err := protocol.TreeDigest(os.DirFS(dir), nil)
	if err != nil {
		t.Fatal(err)
	}
	s := storeIn(t, cache)
	a, release, err := s.open(dir, want, "onnx")
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "model.onnx"), "swapped")
	got, err := protocol.TreeDigest(os.DirFS(a.Path), nil)
	if err != nil || got != want {
		t.Fatalf("the copy has the digest %s, %v; want %s", got, err, want)
	}
	if a.Size != int64(len("graph")+len("weights")) {
		t.Fatalf("size %d", a.Size)
	}
	if info, err := os.Stat(a.Path); err != nil || info.Mode().Perm() != privateDir {
		t.Fatalf("the copy's mode is %v, %v", info.Mode(), err)
	}
	release()
	if _, _, err := s.open(dir, want, "onnx"); err == nil || !strings.Contains(err.Error(), "has the digest") {
		t.Fatalf("the changed directory: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(cache, artifactsDir, "*")); len(left) != 1 || filepath.Base(left[0]) != "lock" {
		t.Fatalf("copies left behind: %v", left)
	}
}

func TestTreeWithASymlinkIsRefused(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a"), "x")
	if err := os.Symlink("/etc/hostname", filepath.Join(dir, "b")); err != nil {
		t.Fatal(err)
	}
	s := storeIn(t, t.TempDir())
	_, _, err := s.open(dir, "sha256-tree:"+protocol.Digest(strings.Repeat("0", 64)), "onnx")
	if err == nil || !strings.Contains(err.Error(), "symbolic link") {
		t.Fatalf("got %v", err)
	}
}

// A packed file that is written to after it was hashed, and before it is unpacked,
// is not unpacked to what nobody has vouched for.
func TestPackedFileThatChangesMeanwhile(t *testing.T) {
	packed, other := packtest.Zstd(t, []byte("checked")), packtest.Zstd(t, []byte("swapped"))
	path, digest := packtest.Write(t, packed)
	packings["changing"] = func(dst string, src io.Reader, size int64) (diskcache.Content, error) {
		if err := os.WriteFile(path, other, 0o600); err != nil { // the same file, other bytes
			t.Fatal(err)
		}
		return unpack.File(dst, src, size)
	}
	defer delete(packings, "changing")
	cache := t.TempDir()
	s := storeIn(t, cache)
	if _, _, err := s.open(path, digest, "fake+changing"); err == nil || !strings.Contains(err.Error(), "was changed while it was unpacked") {
		t.Fatalf("got %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(cache, artifactsDir, "*.*")); len(left) != 0 {
		t.Fatalf("the cache holds %v", left)
	}
}

// The engine gets the content, with its own size and format.
func TestPackedFileIsItsContent(t *testing.T) {
	path, digest := packtest.Write(t, packtest.Zstd(t, []byte("checked")))
	s := storeIn(t, t.TempDir())
	for range 2 {
		a, release, err := s.open(path, digest, "fake+zstd")
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(a.Path); err != nil || string(got) != "checked" || a.Size != 7 || a.Format != "fake" {
			t.Errorf("the engine would read %q (%d bytes of %s), %v", got, a.Size, a.Format, err)
		}
		release()
	}
}
