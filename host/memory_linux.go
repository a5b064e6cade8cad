package host

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// ownMemory is what a worker would give back by ending, in bytes: RssAnon and
// VmSwap. Resident memory alone counts the pages of a mapped model, which the
// system takes back by itself, and forgets what was swapped out. The pid is the
// worker's own: it is asked while the worker is in use and cannot be reaped.
func ownMemory(w *Worker, pong Pong) int64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", w.PID()))
	if err != nil {
		return pong.RSSMB << 20 // it died; what it was matters to nobody
	}
	var total int64
	for lines := bufio.NewScanner(bytes.NewReader(status)); lines.Scan(); {
		name, value, _ := bytes.Cut(lines.Bytes(), []byte(":"))
		if s := string(name); s == "RssAnon" || s == "VmSwap" {
			kib, _ := strconv.ParseInt(string(bytes.TrimSpace(bytes.TrimSuffix(value, []byte("kB")))), 10, 64)
			total += kib << 10
		}
	}
	return total
}
