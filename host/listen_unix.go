//go:build linux || darwin

package host

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/synapse-module/workers/protocol"
)

const (
	// socketName is short because the whole path is: see protocol.CheckSocketPath.
	socketName = "s"

	// rendezvousBytes of randomness name the directory of one start. Guessing the
	// name gains nothing (the parent is closed to others and a peer must be the
	// spawned process), so 64 bits keep the path short.
	rendezvousBytes = 8

	// listenAttempts bounds the retries after a name was swept away by another
	// module between being made and being locked. One retry is already rare.
	listenAttempts = 8
)

// listen makes <runtimeDir>/synapse/workers/<random>/s. The random directory is
// locked (flock) as long as this process lives, which is how a later module knows
// a leftover of a dead one.
func listen(runtimeDir string) (*rendezvous, error) {
	parent := filepath.Join(runtimeDir, "synapse", "workers")
	path := filepath.Join(parent, randomHex(rendezvousBytes), socketName)
	if err := protocol.CheckSocketPath(path); err != nil {
		return nil, fmt.Errorf("host: Spec.RuntimeDir: %w", err)
	}
	if err := privateDir(parent); err != nil {
		return nil, err
	}
	sweep(parent)
	for range listenAttempts {
		dir := filepath.Dir(path)
		lock, err := makeLocked(dir)
		if errors.Is(err, errSwept) {
			path = filepath.Join(parent, randomHex(rendezvousBytes), socketName)
			continue
		}
		if err != nil {
			return nil, err
		}
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		if err != nil {
			os.Remove(dir)
			lock.Close()
			return nil, fmt.Errorf("host: listen for the worker: %w", err)
		}
		l.SetUnlinkOnClose(false) // remove does it, once
		remove := sync.OnceFunc(func() {
			os.Remove(path)
			os.Remove(dir)
			lock.Close()
		})
		return &rendezvous{address: path, l: l, remove: remove}, nil
	}
	return nil, fmt.Errorf("host: something removes new directories under %s as fast as they are made", parent)
}

// privateDir makes dir and sees to it that nobody but this user can enter it.
func privateDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("host: make the directory for sockets, set Spec.RuntimeDir to one that this user can write: %w", err)
	}
	for _, d := range []string{filepath.Dir(dir), dir} {
		info, err := os.Lstat(d)
		if err != nil {
			return fmt.Errorf("host: look at the directory for sockets: %w", err)
		}
		owner, _ := info.Sys().(*syscall.Stat_t)
		switch {
		case !info.IsDir():
			return fmt.Errorf("host: %s is a %s, not a directory of this user: remove it or set Spec.RuntimeDir", d, info.Mode().Type())
		case owner == nil || int(owner.Uid) != os.Geteuid():
			return fmt.Errorf("host: %s belongs to another user: set Spec.RuntimeDir to a directory of this user", d)
		case info.Mode().Perm()&0o022 != 0 || d == dir && info.Mode().Perm()&0o077 != 0:
			return fmt.Errorf("host: %s is open to others (mode %04o): make it 0700 or set Spec.RuntimeDir", d, info.Mode().Perm())
		}
	}
	return nil
}

var errSwept = errors.New("swept")

// makeLocked makes a directory and locks it. errSwept says that a sweep came
// between the two.
func makeLocked(dir string) (*os.File, error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, fmt.Errorf("host: make the worker's directory: %w", err)
	}
	lock, err := openLocked(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.EWOULDBLOCK):
		return nil, errSwept
	case err != nil:
		os.Remove(dir)
		return nil, fmt.Errorf("host: lock the worker's directory: %w", err)
	}
	opened, err := lock.Stat()
	named, lerr := os.Lstat(dir)
	if err != nil || lerr != nil || !os.SameFile(opened, named) {
		lock.Close()
		return nil, errSwept
	}
	return lock, nil
}

func openLocked(dir string) (*os.File, error) {
	f, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// sweep removes what modules left that were killed between listening and their
// worker's connecting. What is locked is alive and stays. It removes only a
// socket of our name and then an empty directory, so nothing else is ever lost;
// its errors mean that there was nothing to sweep, or not for us.
func sweep(parent string) {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return
	}
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		dir := filepath.Join(parent, e.Name())
		lock, err := openLocked(dir)
		if err != nil {
			continue
		}
		sock := filepath.Join(dir, socketName)
		if info, err := os.Lstat(sock); err == nil && info.Mode().Type() == fs.ModeSocket {
			os.Remove(sock)
		}
		os.Remove(dir)
		lock.Close()
	}
}

// ofSocket asks something of a connection's descriptor.
func ofSocket(conn net.Conn, ask func(fd int) (int, error)) (int, error) {
	raw, err := conn.(*net.UnixConn).SyscallConn()
	if err != nil {
		return 0, err
	}
	var answer int
	var askErr error
	if err := raw.Control(func(fd uintptr) { answer, askErr = ask(int(fd)) }); err != nil {
		return 0, err
	}
	return answer, askErr
}
