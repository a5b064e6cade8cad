package llama

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/synapse-module/workers/workerkit"
)

// What is read in /proc: threads and resident memory.

// TestLoadAndCloseGiveMemoryBack, and descriptors: expanded weights lie in a file of
// the process's own.
func TestLoadAndCloseGiveMemoryBack(t *testing.T) {
	for _, c := range []struct{ asset, config string }{
		{"minilm-gguf-f16", ""}, {"minilm-gguf-q8_0", ""}, {"minilm-gguf-q8_0", `{"mmap": false}`},
	} {
		t.Run(c.asset+c.config, func(t *testing.T) { testLoadAndClose(t, c.asset, c.config) })
	}
}

func testLoadAndClose(t *testing.T, name, config string) {
	path := asset(t, name)
	e := open(t)
	c, err := workerkit.DecodeConfig(e.Info().Options, quiet(config))
	if err != nil {
		t.Fatal(err)
	}
	cycle := func() {
		a := artifactOf(t, path)
		defer a.File.Close()
		m, err := e.Load(t.Context(), a, c)
		if err != nil {
			t.Fatal(err)
		}
		embed(t, m, workerkit.PoolingMean, row(100, 1))
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		cycle()
	}
	before, open := resident(t), descriptors(t)
	for range 15 {
		cycle()
	}
	// The allocator keeps some tens of MiB; a leak would be 30 to 44 a load.
	if grown := resident(t) - before; grown > 80<<20 {
		t.Errorf("%d MiB more after 15 loads", grown>>20)
	}
	if n := descriptors(t); n > open {
		t.Errorf("%d descriptors before, %d after 15 loads", open, n)
	}
}

func descriptors(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

// TestCallsFromManyGoroutinesKeepOneThreadPool: an OpenMP build would make a pool
// of threads for each thread that calls it.
func TestCallsFromManyGoroutinesKeepOneThreadPool(t *testing.T) {
	m, err := loadBytes(t, tinyBERT().file.Bytes(), `{"threads": 2}`)
	if err != nil {
		t.Fatal(err)
	}
	row := []int32{1, 5, 39, 2}
	embed(t, m, workerkit.PoolingMean, row)
	before := threads(t)
	for range 20 {
		done := make(chan error)
		go func() {
			runtime.LockOSThread() // a thread of its own, which ends with it
			_, err := m.(workerkit.Embedder).Embed(t.Context(), [][]int32{row}, workerkit.PoolingMean)
			done <- err
		}()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	if after := threads(t); after > before+10 {
		t.Errorf("%d threads before, %d after 20 calls", before, after)
	}
}

func threads(t *testing.T) (n int) {
	t.Helper()
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if _, err := fmt.Sscanf(line, "Threads: %d", &n); err == nil {
			return n
		}
	}
	t.Fatal("no Threads in /proc/self/status")
	return 0
}

// resident is this process's resident memory, bytes.
func resident(t *testing.T) (n int64) {
	t.Helper()
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	var total int64
	if _, err := fmt.Sscan(string(b), &total, &n); err != nil {
		t.Fatal(err)
	}
	return n * int64(os.Getpagesize())
}
