//go:build linux || darwin

package host_test

import (
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/synapse-module/workers/host"
	"github.com/synapse-module/workers/internal/puppet"
)

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
