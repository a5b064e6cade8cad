//go:build unix

package regular_test

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/synapse-module/workers/internal/regular"
	"github.com/synapse-module/workers/protocol"
)

// patience is far over what opening a file takes: only a hang reaches it.
const patience = 30 * time.Second

// within fails the test where f hangs.
func within(t *testing.T, f func() error) error {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		return err
	case <-time.After(patience):
		t.Fatal("it hangs")
		return nil
	}
}

func fifo(t *testing.T, path string) {
	t.Helper()
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestPipesAreRefusedNotWaitedFor(t *testing.T) {
	dir := t.TempDir()
	fifo(t, filepath.Join(dir, "pipe"))
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for name, open := range map[string]func() (*os.File, error){
		"Open":        func() (*os.File, error) { return regular.Open(filepath.Join(dir, "pipe")) },
		"OpenIn":      func() (*os.File, error) { return regular.OpenIn(root, "pipe") },
		"a directory": func() (*os.File, error) { return regular.Open(dir) },
	} {
		err := within(t, func() error { _, err := open(); return err })
		if err == nil || !strings.Contains(err.Error(), "no regular file") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := regular.OpenIn(root, "file")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if b, err := io.ReadAll(f); err != nil || string(b) != "x" {
		t.Errorf("the file holds %q, %v", b, err)
	}
}

// A file of a tree that becomes a pipe between the listing and the hashing.
func TestPipeSwappedIntoATree(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a", "b"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	swap := func(string) (io.WriteCloser, error) { // both are listed, one is being hashed
		for _, name := range []string{"a", "b"} {
			if os.Remove(filepath.Join(dir, name)) != nil {
				continue // it is there no more
			}
			if err := syscall.Mkfifo(filepath.Join(dir, name), 0o600); err != nil {
				return nil, err
			}
		}
		return discard{io.Discard}, nil
	}
	err = within(t, func() error { _, err := protocol.TreeDigest(regular.FS(root), swap); return err })
	if err == nil || !strings.Contains(err.Error(), "has become a named pipe") {
		t.Errorf("got %v", err)
	}
}

type discard struct{ io.Writer }

func (discard) Close() error { return nil }
