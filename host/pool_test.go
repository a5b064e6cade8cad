//go:build linux || darwin

package host_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/synapse-module/workers/engines/fake"
	"github.com/synapse-module/workers/host"
	"github.com/synapse-module/workers/internal/puppet"
	"github.com/synapse-module/workers/internal/wiretest"
	"github.com/synapse-module/workers/protocol"
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

func TestPoolServesManyModelsAtOnce(t *testing.T) {
	p := pool(t, host.PoolSpec{Worker: fakeSpec(t), Size: 2, Queue: 100})
	models := []host.LoadRequest{artifact(t, nil), artifact(t, map[string]any{"dims": 3}), artifact(t, map[string]any{"dims": 5})}
	var all sync.WaitGroup
	for i := range int32(24) {
		all.Go(func() {
			for range 10 {
				if _, err := embed(patient(t), p, models[i%3], i); err != nil {
					t.Errorf("caller %d: %v", i, err)
				}
			}
		})
	}
	all.Wait()
	eventually(t, "all 240 requests are counted", func() bool {
		h := p.Health()
		return h.Workers[0].Requests+h.Workers[1].Requests == 240
	})
	if h := p.Health(); h.Lane != host.LaneReady || h.Crashes != 0 || h.Waiting != 0 || len(h.Workers) != 2 {
		t.Errorf("%+v", h)
	}
}

func TestPoolIsFairAndItsQueueBounded(t *testing.T) {
	p := pool(t, host.PoolSpec{Worker: fakeSpec(t), Queue: 3})
	m := artifact(t, nil)
	first := acquire(t, p, m)
	var mu sync.Mutex
	var order []int
	var all sync.WaitGroup
	for i := range 3 {
		all.Go(func() {
			l, err := p.Acquire(patient(t), m)
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			order = append(order, i)
			mu.Unlock()
			l.Release()
		})
		eventually(t, "the request waits", func() bool { return p.Health().Waiting == i+1 })
	}
	var full *host.QueueFull
	if _, err := p.Acquire(patient(t), m); !errors.As(err, &full) || full.Waiting != 3 {
		t.Errorf("one too many: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var none *host.NoWorker
	if _, err := p.Acquire(ctx, m); !errors.As(err, &none) || !errors.Is(err, context.Canceled) {
		t.Errorf("canceled before: %v", err)
	}
	first.Release()
	all.Wait()
	if !slices.Equal(order, []int{0, 1, 2}) {
		t.Errorf("served in the order %v", order)
	}
	if _, err := first.Embed(patient(t), host.EmbedRequest{Rows: [][]int32{{1}}}); !errors.Is(err, host.ErrReleased) {
		t.Errorf("used after Release: %v", err)
	}
}

// Who gives up its wait leaves the queue; a load that it began serves the next.
func TestPoolGivingUp(t *testing.T) {
	p := pool(t, host.PoolSpec{Worker: fakeSpec(t), Queue: 1})
	m := artifact(t, map[string]any{"fault": "sleep", "fault_stage": "load", "fault_ms": 600})
	acquire(t, p, artifact(t, nil)).Release() // the worker is up
	ctx, cancel := context.WithTimeout(t.Context(), short)
	defer cancel()
	var none *host.NoWorker
	if _, err := p.Acquire(ctx, m); !errors.As(err, &none) || !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v", err)
	}
	if w := p.Health().Workers[0]; w.State != "loading" {
		t.Fatalf("the worker is %s", w.State)
	}
	acquire(t, p, m).Release()
	if got := len(p.Health().Workers[0].Models); got != 2 {
		t.Errorf("%d models are loaded", got)
	}
}

// A stuck worker delays nobody else, and nothing waits for its end.
func TestPoolStuckWorkerDelaysNoOther(t *testing.T) {
	p := pool(t, host.PoolSpec{Worker: fakeSpec(t), Size: 2})
	stuck, err := p.AcquireOn(patient(t), artifact(t, map[string]any{"fault": "hang"}), 0)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	hung := make(chan error, 1)
	go func() {
		defer stuck.Release()
		_, err := stuck.Embed(ctx, host.EmbedRequest{Rows: [][]int32{{1}}})
		hung <- err
	}()
	m := artifact(t, nil)
	for i := range int32(20) {
		if _, err := embed(patient(t), p, m, i); err != nil {
			t.Fatal(err)
		}
	}
	cancel()
	if err := <-hung; !errors.Is(err, context.Canceled) {
		t.Errorf("the stuck one: %v", err)
	}
	eventually(t, "a fresh worker in its place", func() bool {
		w := p.Health().Workers[0]
		return w.State == "idle" && w.Restarts == 1
	})
	if h := p.Health(); h.Crashes != 0 {
		t.Errorf("a canceled request counts as %d crashes", h.Crashes)
	}
}

// Reports 44 and 45, on real workers: a model that hangs its worker while PING is
// answered is found out, quarantined, and comes back by the documented route. The
// rest of the work goes on.
func TestReport45_PoolQuarantinesWhatHangs(t *testing.T) {
	c := newClock()
	p := pool(t, host.PoolSpec{Worker: fakeSpec(t), Clock: c})
	bad, fine := artifact(t, map[string]any{"fault": "hang", "fault_after": 0}), artifact(t, nil)
	try := func(m host.LoadRequest) error {
		l, err := p.Acquire(patient(t), m)
		if err != nil {
			return err
		}
		defer l.Release()
		ctx, cancel := context.WithTimeout(t.Context(), short)
		defer cancel()
		_, err = l.Embed(ctx, host.EmbedRequest{Rows: [][]int32{{1}}})
		return err
	}
	for range 3 {
		wantCrash(t, try(bad), host.StageEmbed, host.CauseTimeout)
		if _, err := embed(patient(t), p, fine, 5); err != nil {
			t.Fatal(err)
		}
	}
	var q *host.Quarantined
	if err := try(bad); !errors.As(err, &q) || q.Crashes != 3 || q.Last.Cause != host.CauseTimeout || q.Model != string(bad.Digest) || !q.Since.Equal(c.Now()) {
		t.Fatalf("got %v", err)
	}
	if h := p.Health(); len(h.Quarantined) != 1 || h.Crashes != 3 || h.Lane != host.LaneReady {
		t.Errorf("%+v", h)
	}
	if _, err := embed(patient(t), p, fine, 6); err != nil {
		t.Fatal(err)
	}
	if was, err := p.Reprobe(bad); !was || err != nil {
		t.Fatalf("Reprobe: %v, %v", was, err)
	}
	wantCrash(t, try(bad), host.StageEmbed, host.CauseTimeout)
	if err := try(bad); !errors.As(err, &q) || q.Crashes != 4 {
		t.Fatalf("after a trial that crashed: %v", err)
	}
	c.advance(host.DefaultPolicy().Reprobe)
	wantCrash(t, try(bad), host.StageEmbed, host.CauseTimeout)
}

// A trial that is answered clears the pair.
func TestPoolTrialClears(t *testing.T) {
	flag := filepath.Join(t.TempDir(), "repaired")
	policy := host.DefaultPolicy()
	policy.PairCrashes = 1
	s := puppetSpec(t, puppet.Handshake(puppet.Step{Do: "serve", N: 1}, puppet.Step{Do: "unless", Text: flag}, puppet.Step{Do: "serve"}))
	p := pool(t, host.PoolSpec{Worker: s, Policy: policy, Clock: newClock()})
	m := host.LoadRequest{Path: "/x", Digest: "sha256:0", Format: "fake"}
	try := func() error {
		l, err := p.Acquire(patient(t), m)
		if err != nil {
			return err
		}
		defer l.Release()
		_, err = l.Embed(patient(t), host.EmbedRequest{Rows: [][]int32{{1}}})
		return err
	}
	// The first request may meet a worker whose one answer the refresher's PING had.
	crash(t, try())
	var q *host.Quarantined
	for err := try(); !errors.As(err, &q); err = try() {
		crash(t, err)
	}
	if err := os.WriteFile(flag, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Reprobe(m); err != nil {
		t.Fatal(err)
	}
	if err := try(); err != nil {
		t.Fatalf("the trial: %v", err)
	}
	if err := try(); err != nil || len(p.Health().Quarantined) != 0 {
		t.Fatalf("after the trial: %v, %v", err, p.Health().Quarantined)
	}
}

func TestPoolLaneDegrades(t *testing.T) {
	c := newClock()
	policy := host.DefaultPolicy()
	policy.LaneCrashes = 3
	p := pool(t, host.PoolSpec{Worker: fakeSpec(t), Policy: policy, Clock: c})
	for i := range 3 {
		m := artifact(t, map[string]any{"fault": "abort", "dims": i + 1})
		_, err := embed(patient(t), p, m, 1)
		for {
			var none *host.NoWorker
			if !errors.As(err, &none) {
				break
			}
		}
		wantCrash(t, err, host.StageEmbed, host.CauseSignal)
		c.advance(time.Minute) // over any backoff
	}
	if h := p.Health(); h.Lane != host.LaneDegraded || h.Crashes != 3 {
		t.Errorf("%+v", h)
	}
	if _, err := embed(patient(t), p, artifact(t, nil), 1); err != nil {
		t.Errorf("a degraded lane serves: %v", err)
	}
	c.advance(policy.LaneWindow)
	if _, err := embed(patient(t), p, artifact(t, nil), 1); err != nil {
		t.Error(err)
	}
	eventually(t, "ready again", func() bool { return p.Health().Lane == host.LaneReady })
}

// A worker that dies again before it has served is not restarted at once.
func TestPoolBacksOff(t *testing.T) {
	c := newClock()
	p := pool(t, host.PoolSpec{Worker: fakeSpec(t), Clock: c})
	m := artifact(t, map[string]any{"fault": "abort"})
	for i := range 2 {
		if _, err := embed(patient(t), p, m, 1); err == nil {
			t.Fatal("no crash")
		}
		if i == 0 {
			eventually(t, "restart at once", func() bool { return p.Health().Workers[0].State == "idle" })
		}
	}
	time.Sleep(short / 2)
	if w := p.Health().Workers[0]; w.State != "empty" {
		t.Fatalf("the worker is %s before its time", w.State)
	}
	c.advance(host.DefaultPolicy().BackoffMin)
	if _, err := embed(patient(t), p, artifact(t, nil), 1); err != nil {
		t.Fatal(err)
	}
}

// Where no worker can be started requests fail soon and say why; the pool goes on
// trying and comes back by itself.
func TestPoolUnstartable(t *testing.T) {
	c := newClock()
	s := fakeSpec(t)
	real := s.Path
	s.Path = filepath.Join(t.TempDir(), "worker-fake")
	p := pool(t, host.PoolSpec{Worker: s, Clock: c})
	go func() {
		for p.Health().Lane != host.LaneDown {
			c.advance(time.Second)
			time.Sleep(time.Millisecond)
		}
	}()
	_, err := p.Acquire(patient(t), artifact(t, nil))
	var down *host.Unstartable
	if !errors.As(err, &down) || down.Attempts != 3 {
		t.Fatalf("got %v", err)
	}
	wantCrash(t, down.Last, host.StageSpawn, host.CauseExit)
	if _, err := p.Acquire(patient(t), artifact(t, nil)); !errors.As(err, &down) || p.Health().Down == nil {
		t.Fatalf("the next: %v", err)
	}
	if err := os.Symlink(real, s.Path); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the lane comes back", func() bool {
		c.advance(time.Second)
		return p.Health().Lane == host.LaneReady
	})
	if _, err := embed(patient(t), p, artifact(t, nil), 1); err != nil {
		t.Fatal(err)
	}
}

func TestPoolNoticesAnIdleDeath(t *testing.T) {
	p := pool(t, host.PoolSpec{Worker: fakeSpec(t)})
	m := artifact(t, nil)
	pid, err := embed(patient(t), p, m, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Kill(pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "another worker", func() bool { w := p.Health().Workers[0]; return w.State == "idle" && w.PID != pid })
	if h := p.Health(); h.Crashes != 1 || h.Workers[0].Restarts != 1 {
		t.Errorf("%+v", h)
	}
	if _, err := embed(patient(t), p, m, 2); err != nil {
		t.Fatal(err)
	}
}

// Reading health touches no worker: not even one that is stopped can delay it. The
// refresher's PING finds that one out.
func TestPoolHealthIsCached(t *testing.T) {
	s := fakeSpec(t)
	s.Deadlines.Ping = short
	c := newClock()
	p := pool(t, host.PoolSpec{Worker: s, Clock: c})
	m := artifact(t, map[string]any{"placement_share": 0.25})
	pid, err := embed(patient(t), p, m, 1)
	if err != nil {
		t.Fatal(err)
	}
	c.advance(host.DefaultPolicy().RefreshEvery)
	eventually(t, "the vital signs", func() bool { return p.Health().Workers[0].PlacementShare != nil })
	w := p.Health().Workers[0]
	if w.Age(c.Now()) != 0 || w.RSSMB < 1 || w.Memory < 1<<20 || *w.PlacementShare != 0.25 || w.PID != pid || w.Engine != "fake 1" ||
		len(w.Models) != 1 || w.Models[0] != (host.ModelHealth{Digest: string(m.Digest), Config: `{"placement_share":0.25}`}) {
		t.Errorf("%+v", w)
	}
	if err := unix.Kill(pid, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		if p.Health().Workers[0].PID != pid {
			t.Fatal("replaced though nobody asked it anything")
		}
	}
	c.advance(host.DefaultPolicy().RefreshEvery)
	eventually(t, "the stopped worker is found out", func() bool { w := p.Health().Workers[0]; return w.State == "idle" && w.PID != pid })
}

// A worker that has served its number is replaced between two requests, with its
// models, and no request fails for it.
func TestPoolRecyclesByRequests(t *testing.T) {
	policy := host.DefaultPolicy()
	policy.MaxRequests = 20
	p := pool(t, host.PoolSpec{Worker: fakeSpec(t), Policy: policy, Queue: 100})
	m, other := artifact(t, nil), artifact(t, map[string]any{"dims": 2})
	if _, err := embed(patient(t), p, other, 1); err != nil {
		t.Fatal(err)
	}
	pids := map[int]bool{}
	var mu sync.Mutex
	var all sync.WaitGroup
	for i := range int32(4) {
		all.Go(func() {
			for j := range 100 {
				pid, err := embed(patient(t), p, m, i)
				if err != nil {
					t.Errorf("caller %d request %d: %v", i, j, err)
					return
				}
				mu.Lock()
				pids[pid] = true
				mu.Unlock()
				time.Sleep(time.Millisecond) // give successors the time to come up
			}
		})
	}
	all.Wait()
	h := p.Health()
	if len(pids) < 2 || h.Workers[0].Restarts < 1 || h.Crashes != 0 || len(h.Workers[0].Models) != 2 {
		t.Errorf("%d workers served; %+v", len(pids), h)
	}
}

// So is one whose memory has grown over its bound.
func TestPoolRecyclesByMemory(t *testing.T) {
	policy := host.DefaultPolicy()
	policy.MaxMemory = 96 << 20
	c := newClock()
	p := pool(t, host.PoolSpec{Worker: fakeSpec(t), Policy: policy, Clock: c})
	m := artifact(t, map[string]any{"fault": "allocate", "fault_bytes": 128 << 20, "fault_after": 2})
	var pid int
	for i := range int32(3) {
		got, err := embed(patient(t), p, m, i)
		if err != nil {
			t.Fatal(err)
		}
		if pid != 0 && got != pid {
			t.Fatal("replaced too soon")
		}
		pid = got
	}
	c.advance(policy.RefreshEvery)
	eventually(t, "a successor", func() bool { return p.Health().Workers[0].PID != pid })
	if h := p.Health(); h.Crashes != 0 || len(h.Workers[0].Models) != 1 {
		t.Errorf("%+v", h)
	}
	if _, err := embed(patient(t), p, m, 1); err != nil {
		t.Fatal(err)
	}
}

// Where there is no room for a successor beside the old worker, it is replaced
// without one; a worker that crashes as it shuts down counts for nothing.
func TestPoolRecyclesWithoutRoom(t *testing.T) {
	policy := host.DefaultPolicy()
	policy.MaxRequests = 1
	c := newClock()
	script := puppet.Handshake(
		puppet.Step{Do: "alone", Text: filepath.Join(t.TempDir(), "place")},
		puppet.Step{Do: "serve until shutdown", Text: "exit:1"})
	p := pool(t, host.PoolSpec{Worker: puppetSpec(t, script), Policy: policy, Clock: c})
	m := host.LoadRequest{Path: "/x", Digest: "sha256:0", Format: "fake"}
	l := acquire(t, p, m)
	pid := l.PID()
	l.Release()
	eventually(t, "a successor", func() bool {
		c.advance(time.Second)
		w := p.Health().Workers[0]
		return w.State == "idle" && w.PID != pid
	})
	dead(t, pid)
	if h := p.Health(); h.Crashes != 0 || h.Workers[0].Restarts < 4 {
		t.Errorf("%+v", h)
	}
	acquire(t, p, m).Release()
}

func TestPoolRefusedLoad(t *testing.T) {
	p := pool(t, host.PoolSpec{Worker: fakeSpec(t)})
	if _, err := p.Acquire(patient(t), artifact(t, map[string]any{"dims": -1})); !errors.Is(err, &protocol.Error{Code: protocol.CodeConfigInvalid}) {
		t.Fatalf("got %v", err)
	}
	if _, err := embed(patient(t), p, artifact(t, nil), 1); err != nil {
		t.Fatal(err)
	}
	l := acquire(t, p, artifact(t, nil))
	if err := l.Unload(patient(t)); err != nil {
		t.Fatal(err)
	}
	l.Release()
	eventually(t, "the model is gone", func() bool { return len(p.Health().Workers[0].Models) == 0 })
}

func TestPoolCloses(t *testing.T) {
	p := pool(t, host.PoolSpec{Worker: fakeSpec(t), Size: 2})
	m := artifact(t, nil)
	held, idle := acquire(t, p, m), acquire(t, p, m)
	pids := []int{held.PID(), idle.PID()}
	waiting := make(chan error, 1)
	go func() {
		_, err := p.Acquire(patient(t), m)
		waiting <- err
	}()
	eventually(t, "the request waits", func() bool { return p.Health().Waiting == 1 })
	closed := make(chan error, 1)
	go func() { closed <- p.Close(patient(t)) }()
	if err := <-waiting; !errors.Is(err, host.ErrPoolClosed) {
		t.Errorf("who waited: %v", err)
	}
	if _, err := held.Embed(patient(t), host.EmbedRequest{Rows: [][]int32{{1}}}); err != nil {
		t.Errorf("who had a worker: %v", err)
	}
	held.Release()
	idle.Release()
	if err := <-closed; err != nil {
		t.Errorf("Close: %v", err)
	}
	for _, pid := range pids {
		dead(t, pid)
	}
	if _, err := p.Acquire(patient(t), m); !errors.Is(err, host.ErrPoolClosed) || p.Health().Lane != host.LaneClosed {
		t.Errorf("after Close: %v, %v", err, p.Health().Lane)
	}
	if _, err := p.Reprobe(m); !errors.Is(err, host.ErrPoolClosed) {
		t.Errorf("Reprobe: %v", err)
	}
}

func TestPoolCloseEndsWhatWillNot(t *testing.T) {
	p := pool(t, host.PoolSpec{Worker: fakeSpec(t)})
	l := acquire(t, p, artifact(t, map[string]any{"fault": "hang"}))
	hung := make(chan error, 1)
	go func() {
		_, err := l.Embed(patient(t), host.EmbedRequest{Rows: [][]int32{{1}}})
		hung <- err
	}()
	ctx, cancel := context.WithTimeout(t.Context(), short)
	defer cancel()
	if err := p.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Close: %v", err)
	}
	var gone *host.WorkerGone
	if err := <-hung; !errors.As(err, &gone) {
		t.Errorf("the request in hand: %v", err)
	}
	dead(t, l.PID())
}

func TestPoolSpecIsChecked(t *testing.T) {
	for _, s := range []host.PoolSpec{{Size: -1}, {Queue: -1}, {Worker: host.Spec{}}, {Worker: host.Spec{Path: "x"}, Policy: host.Policy{PairCrashes: 1}}} {
		if _, err := host.NewPool(s); err == nil {
			t.Errorf("%+v was taken", s)
		}
	}
}
