package workerkit

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// leastLandlock is the oldest Landlock ABI that is worth the name: from version 3
// on a file cannot be emptied by way of truncate(2).
const leastLandlock = 3

// confine gives up, in this order, the file system (Landlock), the system calls
// that start programs and open sockets (seccomp), and core dumps. Each step binds
// all threads of the process, the engine's own among them.
func confine(c confinement) (done string, missing error) {
	var have []string
	version, err := restrictFiles(c)
	if err == nil {
		have = append(have, fmt.Sprintf("landlock-v%d", version))
	}
	missing = err
	if err := denyCalls(); err == nil {
		have = append(have, "seccomp")
	} else {
		missing = errors.Join(missing, fmt.Errorf("seccomp: %w", err))
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		missing = errors.Join(missing, fmt.Errorf("PR_SET_DUMPABLE: %w", err))
	}
	if len(have) == 0 {
		return "none", missing
	}
	return strings.Join(have, "+"), missing
}

// sandboxOffer is what --version says.
func sandboxOffer() string {
	version, err := ll.LandlockGetABIVersion()
	if err != nil || version < leastLandlock {
		return sandboxFlag + "seccomp"
	}
	return fmt.Sprintf("%slandlock-v%d+seccomp", sandboxFlag, version)
}

// restrictFiles leaves reading where a worker has to read, writing in its cache,
// and executing nowhere. Where the kernel can, TCP and signals to other processes
// go too.
func restrictFiles(c confinement) (version int, err error) {
	version, err = ll.LandlockGetABIVersion()
	if err != nil {
		return 0, errors.New("landlock: this kernel has it not, or it was not enabled at boot")
	}
	if version < leastLandlock {
		return 0, fmt.Errorf("landlock: this kernel has version %d, the least that protects is %d", version, leastLandlock)
	}
	rules := []landlock.Rule{
		landlock.PathAccess(ll.AccessFSReadFile|ll.AccessFSReadDir, readableDirs(c)...).IgnoreIfMissing(),
		landlock.PathAccess(ll.AccessFSReadFile, readableFiles...).IgnoreIfMissing(),
		landlock.PathAccess(ll.AccessFSReadFile|ll.AccessFSWriteFile, os.DevNull),
	}
	if c.cache != "" {
		const all = ll.AccessFSReadFile | ll.AccessFSReadDir | ll.AccessFSWriteFile | ll.AccessFSTruncate |
			ll.AccessFSMakeReg | ll.AccessFSMakeDir | ll.AccessFSRemoveFile | ll.AccessFSRemoveDir | ll.AccessFSRefer
		rules = append(rules, landlock.PathAccess(all, c.cache))
	}
	// A build without cgo that loads C libraries all the same (purego) cannot reach
	// all its threads on a kernel before Landlock v8: the runtime panics.
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("landlock: %v", r)
		}
	}()
	if err := landlock.V11.BestEffort().Restrict(rules...); err != nil {
		return 0, fmt.Errorf("landlock: %w", err)
	}
	return version, everyThreadBound()
}

// readableDirs is what a worker reads after HELLO: artifacts, libraries that its
// engine loads late, and what the kernel tells of memory and processors.
func readableDirs(c confinement) []string {
	if len(c.readable) == 0 {
		return []string{"/"}
	}
	dirs := append([]string{}, c.readable...)
	if c.libs != "" {
		dirs = append(dirs, c.libs)
	}
	return append(dirs,
		"/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/share/zoneinfo",
		"/proc/self", "/sys/devices/system", "/sys/fs/cgroup")
}

var readableFiles = []string{
	"/etc/ld.so.cache", "/etc/localtime", "/proc/meminfo", "/proc/cpuinfo", "/proc/stat", "/dev/urandom", "/dev/zero",
}

// everyThreadBound checks that Landlock was entered by every thread: each entered
// it together with no_new_privs, which /proc tells of.
func everyThreadBound() error {
	tasks, err := filepath.Glob("/proc/self/task/*/status")
	if err != nil || len(tasks) == 0 {
		return fmt.Errorf("landlock: the threads of this process cannot be listed: %w", err)
	}
	for _, path := range tasks {
		status, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH) {
			continue // it has ended
		}
		if err != nil {
			return fmt.Errorf("landlock: %w", err)
		}
		if !strings.Contains(string(status), "\nNoNewPrivs:\t1\n") {
			name, _, _ := strings.Cut(string(status), "\n")
			return fmt.Errorf("landlock: the thread %q was not reached: it was started by a library before the sandbox", strings.TrimPrefix(name, "Name:\t"))
		}
	}
	return nil
}
