//go:build linux

package chaos

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// stock is what a process holds.
type stock struct {
	goroutines  int
	descriptors int
}

func takeStock() (stock, error) {
	fds, err := os.ReadDir("/proc/self/fd")
	return stock{goroutines: runtime.NumGoroutine(), descriptors: len(fds)}, err
}

// compare says what is there more than before, once what is ending has ended.
func (before stock) compare(sockets string) (leaks []error) {
	const settle = 10 * time.Second // goroutines that were told to end need a turn each
	var now stock
	var children []string
	for end := time.Now().Add(settle); ; time.Sleep(10 * time.Millisecond) {
		var err error
		if now, err = takeStock(); err != nil {
			return []error{err}
		}
		children = childProcesses()
		if now.goroutines <= before.goroutines && now.descriptors <= before.descriptors && len(children) == 0 || time.Now().After(end) {
			break
		}
	}
	if now.goroutines > before.goroutines {
		stacks := make([]byte, 1<<16)
		stacks = stacks[:runtime.Stack(stacks, true)]
		leaks = append(leaks, fmt.Errorf("%d goroutines more than before:\n%s", now.goroutines-before.goroutines, stacks))
	}
	if now.descriptors > before.descriptors {
		leaks = append(leaks, fmt.Errorf("%d descriptors more than before", now.descriptors-before.descriptors))
	}
	for _, c := range children {
		leaks = append(leaks, fmt.Errorf("a process is left: %s", c))
	}
	left, err := os.ReadDir(sockets)
	if err != nil {
		return append(leaks, err)
	}
	for _, e := range left {
		leaks = append(leaks, fmt.Errorf("a socket's directory is left: %s", e.Name()))
	}
	return leaks
}

// childProcesses lists the processes whose parent is this one, zombies included.
func childProcesses() (children []string) {
	parent := fmt.Sprintf("\nPPid:\t%d\n", os.Getpid())
	all, _ := filepath.Glob("/proc/[0-9]*/status")
	for _, path := range all {
		if status, err := os.ReadFile(path); err == nil && strings.Contains(string(status), parent) {
			name, _, _ := strings.Cut(string(status), "\n")
			children = append(children, filepath.Base(filepath.Dir(path))+" "+name)
		}
	}
	return children
}
