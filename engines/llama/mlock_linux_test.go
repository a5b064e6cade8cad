package llama

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/synapse-module/workers/protocol"
)

// TestMemoryThatCannotBeLockedIsRefused: the library only warns, and the weights
// would be swapped out in silence.
func TestMemoryThatCannotBeLockedIsRefused(t *testing.T) {
	if _, err := loadBytes(t, tinyBERT().file.Bytes(), `{"mlock": true}`); err != nil {
		t.Fatalf("with the limit of this process: %v", err)
	}
	withoutLocking(t)
	for _, config := range []string{`{"mlock": true}`, `{"mlock": true, "mmap": false}`} {
		_, err := loadBytes(t, tinyBERT().file.Bytes(), config)
		wantCode(t, err, protocol.CodeConfigInvalid, "mlock", "ulimit -l")
	}
	if _, err := loadBytes(t, tinyBERT().file.Bytes(), ""); err != nil {
		t.Errorf("unlocked: %v", err)
	}
}

// withoutLocking lets nobody lock memory on the library's thread until the test is
// over: by the limit, and where this is root by the capability that goes over it.
func withoutLocking(t *testing.T) {
	t.Helper()
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &limit); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_MEMLOCK, &unix.Rlimit{Cur: 0, Max: limit.Max}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Setrlimit(unix.RLIMIT_MEMLOCK, &limit); err != nil {
			t.Error(err)
		}
	})
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var had, less [2]unix.CapUserData
	set := func(data *[2]unix.CapUserData) (err error) {
		open(t).(*engine).thread.do(func() { err = unix.Capset(&header, &data[0]) })
		return err
	}
	if err := unix.Capget(&header, &had[0]); err != nil {
		t.Fatal(err)
	}
	less = had
	less[0].Effective &^= 1 << unix.CAP_IPC_LOCK
	if err := set(&less); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := set(&had); err != nil {
			t.Error(err)
		}
	})
}
