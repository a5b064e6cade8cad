//go:build linux || darwin

package host_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/synapse-module/workers/host"
	"github.com/synapse-module/workers/protocol"
)

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
	polls := 0
	eventually(t, "the vital signs", func() bool {
		if polls%100 == 0 {
			c.advance(host.DefaultPolicy().RefreshEvery) // again: the pool may have set its timer after the last one
		}
		polls++
		w := p.Health().Workers[0]
		return w.PlacementShare != nil && w.Age(c.Now()) == 0
	})
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
	eventually(t, "the stopped worker is found out", func() bool {
		w := p.Health().Workers[0]
		if w.State == "idle" && w.PID == pid {
			c.advance(host.DefaultPolicy().RefreshEvery) // again: the pool may have set its timer after the last one
		}
		return w.State == "idle" && w.PID != pid
	})
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
