package diskcache

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/synapse-module/workers/protocol"
)

// mount makes dir a file system of its own for the test, or skips where this user
// may not.
func mount(t *testing.T, dir, options string) {
	t.Helper()
	if err := os.MkdirAll(dir, privateDir); err != nil {
		t.Fatal(err)
	}
	err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, options+",mode=0700")
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
		t.Skip("this user may not mount a file system")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}

func refused(t *testing.T, err error, says string) {
	t.Helper()
	var refusal *protocol.Error
	if !errors.As(err, &refusal) || refusal.Code != protocol.CodeEngineFailed || !strings.Contains(refusal.Msg, says) || strings.Contains(refusal.Msg, "\n") {
		t.Errorf("got %v, want engine_failed that says %q in one line", err, says)
	}
}

// On a disk that nobody can write to, what is there serves.
func TestReadOnly(t *testing.T) {
	r := newRig(t, DefaultLimit)
	mount(t, r.dir, "size=1m")
	r.use("k", r.file("text"), 1)
	if err := unix.Mount("", r.dir, "", unix.MS_REMOUNT|unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV, ""); err != nil {
		t.Fatal(err)
	}
	r.use("k", r.file("text"), 1)
	_, err := r.Open("other", r.file("text"))
	refused(t, err, "read-only file system")
	_, err = r.Private()
	refused(t, err, "read-only file system")
}

// A full disk is said, and what was half written goes.
func TestFullDisk(t *testing.T) {
	r := newRig(t, DefaultLimit)
	mount(t, r.dir, "size=64k")
	_, err := r.Open("k", func(content string) (Content, error) {
		err := os.WriteFile(content, make([]byte, 1<<20), privateFile)
		return Content{}, r.Failed(err)
	})
	refused(t, err, "no space left")
	r.wantKeys()
	// Where room can be made, it is; what is held stays.
	half := strings.Repeat("x", 30<<10)
	r.use("first", r.file(half), 1)
	held := r.open("small", r.file("text"), 2)
	r.use("second", func(content string) (Content, error) {
		c, err := r.file(half + half[:10<<10])(content)
		if err != nil {
			err = r.Failed(err)
		}
		return c, err
	}, 4)
	r.wantKeys("second", "small")
	held.Release()
	r.Drop(func(string) bool { return true })
	r.use("small", r.file("text"), 5)
	if _, err := os.Stat(filepath.Join(r.dir, r.names()[0], contentName)); err != nil {
		t.Error(err)
	}
}

// A FIFO of the lock's name does not hold a LOAD up for ever.
func TestLockThatIsAFIFO(t *testing.T) {
	r := newRig(t, DefaultLimit)
	if err := os.MkdirAll(r.dir, privateDir); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(filepath.Join(r.dir, lockName), uint32(privateFile)); err != nil {
		t.Fatal(err)
	}
	r.use("k", r.file("text"), 1)
}
