package workerkit

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/synapse-module/workers/internal/diskcache"
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
