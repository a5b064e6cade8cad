//go:build linux || darwin

package host_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/synapse-module/workers/host"
	"github.com/synapse-module/workers/internal/puppet"
)

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
