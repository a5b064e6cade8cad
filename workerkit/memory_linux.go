package workerkit

import (
	"bufio"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// groupAvailable is the smallest room left under the memory limits of this
// process's control group (v2) and of the groups above it. Page cache that can be
// dropped at once does not count as used.
func groupAvailable() (uint64, bool) {
	membership, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return 0, false
	}
	path, ok := "", false
	for line := range strings.Lines(string(membership)) {
		if path, ok = strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			break
		}
	}
	if !ok {
		return 0, false
	}
	const mount = "/sys/fs/cgroup"
	room, found := uint64(0), false
	for dir := filepath.Join(mount, path); strings.HasPrefix(dir, mount); dir = filepath.Dir(dir) {
		limit, ok := readCount(filepath.Join(dir, "memory.max"))
		used, okUsed := readCount(filepath.Join(dir, "memory.current"))
		if !ok || !okUsed {
			continue // "max", or a group without the controller
		}
		used -= min(used, inactiveFile(filepath.Join(dir, "memory.stat")))
		left := limit - min(limit, used)
		if !found || left < room {
			room, found = left, true
		}
	}
	return room, found
}

func readCount(path string) (uint64, bool) {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseUint(strings.TrimSpace(string(b)), 10, 64)
	return n, err == nil
}

func inactiveFile(path string) uint64 {
	f, err := os.Open(path)
	if err != nil {
		return 0
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if v, ok := strings.CutPrefix(lines.Text(), "inactive_file "); ok {
			n, _ := strconv.ParseUint(v, 10, 64)
			return n
		}
	}
	return 0
}
