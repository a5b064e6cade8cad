//go:build unix

package workerkit

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/synapse-module/workers/internal/diskcache"
	"github.com/synapse-module/workers/internal/packtest"
	"github.com/synapse-module/workers/internal/unpack"
	"github.com/synapse-module/workers/protocol"
)

// A file of a directory that becomes a pipe while the directory is copied is
// refused, and nobody waits for it.
func TestPipeSwappedIntoADirectory(t *testing.T) {
	const (
		patience = 30 * time.Second
		tries    = 100 // the swap can come before the listing, or too late
		large    = 16 << 20
	)
	never := "sha256-tree:" + protocol.Digest(strings.Repeat("0", 64))
	for range tries {
		dir, cache := t.TempDir(), t.TempDir()
		pipe := filepath.Join(t.TempDir(), "pipe")
		if err := syscall.Mkfifo(pipe, 0o600); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, "a"), strings.Repeat("x", large))
		write(t, filepath.Join(dir, "b"), "x")
		s, done := storeIn(t, cache), make(chan error, 1)
		go func() {
			_, _, err := s.open(dir, never, "fake")
			done <- err
		}()
		for copying := false; !copying; {
			found, err := filepath.Glob(filepath.Join(cache, artifactsDir, "making-*", "a"))
			if err != nil {
				t.Fatal(err)
			}
			copying = len(found) > 0 || len(done) > 0
		}
		if err := os.Rename(pipe, filepath.Join(dir, "b")); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-done:
			if strings.Contains(err.Error(), "has become a named pipe") {
				return
			}
		case <-time.After(patience):
			t.Fatal("it hangs")
		}
	}
	t.Fatal("the swap never came at the right moment")
}

// A disk that is full of what nobody uses any more is no reason to refuse.
func TestFullDiskOfOldContent(t *testing.T) {
	path, digest := packtest.Write(t, packtest.Zstd(t, []byte("checked")))
	tries := 0
	packings["filling"] = func(dst string, src io.Reader, size int64) (diskcache.Content, error) {
		if tries++; tries > 1 {
			return unpack.File(dst, src, size)
		}
		if _, err := src.Read(make([]byte, 5)); err != nil {
			t.Fatal(err)
		}
		return diskcache.Content{}, &unpack.WriteError{Err: syscall.ENOSPC}
	}
	defer delete(packings, "filling")
	s := storeIn(t, t.TempDir())
	_, _, err := s.open(path, digest, "fake+filling")
	var refusal *protocol.Error
	if !errors.As(err, &refusal) || refusal.Code != protocol.CodeEngineFailed || !strings.Contains(refusal.Msg, "no space left") {
		t.Fatalf("with nothing to remove: %v", err)
	}
	old, oldDigest := packtest.Write(t, packtest.Zstd(t, []byte("old")))
	_, release, err := s.open(old, oldDigest, "fake+zstd")
	if err != nil {
		t.Fatal(err)
	}
	release()
	tries = 0
	a, release, err := s.open(path, digest, "fake+filling")
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	if got, err := os.ReadFile(a.Path); err != nil || string(got) != "checked" {
		t.Errorf("the engine would read %q, %v", got, err)
	}
}
