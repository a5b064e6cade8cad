//go:build linux

package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/synapse-module/workers/host"
)

// Config says which campaign to run.
type Config struct {
	Seed     uint64
	Faults   int    // how many
	Only     int    // run this one alone; negative for all
	Parallel int    // how many at once
	Fake     string // the worker-fake binary
	Engines  []Engine
	Progress func(done int)
}

// Engine is a real worker with a model to serve.
type Engine struct {
	Name  string
	Spec  host.Spec
	Model host.LoadRequest
}

const (
	// watchdog bounds one fault. All deadlines inside are far shorter, so whatever
	// reaches it is a hang.
	watchdog = 90 * time.Second

	// patience is the deadline of a request that is expected to end by itself.
	patience = 30 * time.Second

	// impatience is the deadline of a request that is expected to be ended by it.
	// A sound answer takes a millisecond.
	impatience = 200 * time.Millisecond
)

// errHang says that a fault was not over when the watchdog came.
var errHang = errors.New("hang")

// bench is what the faults of one campaign share.
type bench struct {
	Config
	self     string // this executable, which can be a puppet
	dir      string // for sockets, models and caches
	model    host.LoadRequest
	pool     *host.Pool
	wrappers map[string]string // limits -> a script that starts worker-fake under them

	full   string             // a full disk; empty where this user may not mount one
	copied []host.LoadRequest // models that a worker writes to its cache: a directory, a packed one
}

// fault is one thing that goes wrong, and what must come of it. Its error says
// what came instead.
type fault struct {
	name string // what goes wrong, with its parameters
	run  func(ctx context.Context) error
}

// Run runs a campaign.
func Run(c Config) (*Report, error) {
	b, err := newBench(c)
	if err != nil {
		return nil, err
	}
	defer b.remove()
	before, err := takeStock()
	if err != nil {
		return nil, err
	}
	if err := b.openPool(); err != nil {
		return nil, err
	}
	report := newReport(c)
	began := time.Now()
	b.runAll(report)
	report.Took = time.Since(began)
	ctx, cancel := context.WithTimeout(context.Background(), watchdog)
	defer cancel()
	if err := b.pool.Close(ctx); err != nil {
		report.leak(fmt.Errorf("the pool did not close: %w", err))
	}
	for _, leak := range before.compare(filepath.Join(b.dir, "rt", "synapse", "workers")) {
		report.leak(leak)
	}
	return report, nil
}

func newBench(c Config) (*bench, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "chaos")
	if err != nil {
		return nil, err
	}
	b := &bench{Config: c, self: self, dir: dir}
	if b.model, err = fakeModel(dir); err != nil {
		return nil, err
	}
	for _, make := range []func(dir string) (host.LoadRequest, error){treeModel, packedModel} {
		m, err := make(dir)
		if err != nil {
			return nil, err
		}
		b.copied = append(b.copied, m)
	}
	if b.full, err = fullDiskAt(filepath.Join(dir, "full")); err != nil {
		return nil, err
	}
	b.wrappers, err = wrappers(dir, c.Fake)
	return b, err
}

func (b *bench) remove() {
	if b.full != "" {
		_ = unix.Unmount(b.full, 0)
	}
	os.RemoveAll(b.dir)
}

// runAll runs the faults, Parallel at a time, in the order of their numbers.
func (b *bench) runAll(report *Report) {
	first, end := 0, b.Faults
	if b.Only >= 0 {
		first, end = b.Only, b.Only+1
	}
	numbers := make(chan int)
	var all sync.WaitGroup
	for range max(b.Parallel, 1) {
		all.Go(func() {
			for i := range numbers {
				b.runOne(i, report)
			}
		})
	}
	for i := first; i < end; i++ {
		numbers <- i
		if b.Progress != nil {
			b.Progress(i - first + 1)
		}
	}
	close(numbers)
	all.Wait()
}

// runOne makes fault i out of the seed and runs it under the watchdog.
func (b *bench) runOne(i int, report *Report) {
	r := rand.New(rand.NewPCG(b.Seed, uint64(i)))
	kind := b.pick(r)
	f := kind.make(b, r)
	ctx, cancel := context.WithTimeout(context.Background(), watchdog)
	defer cancel()
	result := make(chan error, 1)
	go func() { result <- f.run(ctx) }()
	var err error
	select {
	case err = <-result:
	case <-ctx.Done():
		err = errHang
	}
	report.add(kind.name, i, f.name, err)
}
