//go:build linux || darwin

package host_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/synapse-module/workers/engines/fake"
	"github.com/synapse-module/workers/host"
	"github.com/synapse-module/workers/internal/wiretest"
)

// clock is a clock that stands until it is moved.

type clock struct {
	mu     sync.Mutex
	now    time.Time
	timers map[chan time.Time]time.Time
}

func newClock() *clock {
	return &clock{now: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC), timers: map[chan time.Time]time.Time{}}
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Timer(d time.Duration) (<-chan time.Time, func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fire := make(chan time.Time, 1)
	if d <= 0 {
		fire <- c.now
		return fire, func() {}
	}
	c.timers[fire] = c.now.Add(d)
	return fire, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.timers, fire)
	}
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	for fire, at := range c.timers {
		if !at.After(c.now) {
			fire <- c.now
			delete(c.timers, fire)
		}
	}
}

// pool makes a pool that the test's end closes.

func pool(t testing.TB, s host.PoolSpec) *host.Pool {
	t.Helper()
	p, err := host.NewPool(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), wiretest.Patience)
		defer cancel()
		p.Close(ctx)
	})
	return p
}

func acquire(t testing.TB, p *host.Pool, m host.LoadRequest) *host.Lease {
	t.Helper()
	l, err := p.Acquire(patient(t), m)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Release)
	return l
}

// embed is one whole use of a pool, held to the fake engine's answer.

func embed(ctx context.Context, p *host.Pool, m host.LoadRequest, id int32) (pid int, err error) {
	l, err := p.Acquire(ctx, m)
	if err != nil {
		return 0, err
	}
	defer l.Release()
	v, err := l.Embed(ctx, host.EmbedRequest{Rows: [][]int32{{id}}})
	if err == nil && v.Row(0)[0] != float32(fake.State(id, 0)) {
		err = errors.New("wrong vector")
	}
	return l.PID(), err
}

// eventually waits for something that the pool does by itself.

func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for ctx := patient(t); !holds(); time.Sleep(time.Millisecond) {
		if ctx.Err() != nil {
			t.Fatalf("never: %s", what)
		}
	}
}

// Who gives up its wait leaves the queue; a load that it began serves the next.

// A stuck worker delays nobody else, and nothing waits for its end.

// Reports 44 and 45, on real workers: a model that hangs its worker while PING is

// answered is found out, quarantined, and comes back by the documented route. The

// rest of the work goes on.

// A trial that is answered clears the pair.

// A worker that dies again before it has served is not restarted at once.

// Where no worker can be started requests fail soon and say why; the pool goes on

// trying and comes back by itself.

// Reading health touches no worker: not even one that is stopped can delay it. The

// refresher's PING finds that one out.

// A worker that has served its number is replaced between two requests, with its

// models, and no request fails for it.

// So is one whose memory has grown over its bound.

// Where there is no room for a successor beside the old worker, it is replaced

// without one; a worker that crashes as it shuts down counts for nothing.
