//go:build linux || darwin

package host_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/synapse-module/workers/host"
)

// percentiles reports the p50 and p99 of what b.Loop measured one by one.
func percentiles(b *testing.B, took []time.Duration) {
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
}

// BenchmarkStart is a worker's own start: spawn to HELLO_ACK.
func BenchmarkStart(b *testing.B) {
	s := fakeSpec(b)
	var took []time.Duration
	for b.Loop() {
		began := time.Now()
		w, err := host.Start(context.Background(), s)
		if err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(began))
		w.Kill()
		<-w.Done()
	}
	percentiles(b, took)
}

// BenchmarkKillToNextAnswer is from SIGKILL to a worker of the pool until the next
// request is answered: the crash noticed, the process reaped, another started, its
// model loaded, the request served. Run it with -benchtime 200x.
func BenchmarkKillToNextAnswer(b *testing.B) {
	policy := host.DefaultPolicy()
	policy.PairCrashes, policy.LaneCrashes = 1<<30, 1<<30
	p := pool(b, host.PoolSpec{Worker: fakeSpec(b), Policy: policy})
	m := artifact(b, nil)
	pid, err := embed(context.Background(), p, m, 1)
	if err != nil {
		b.Fatal(err)
	}
	var took []time.Duration
	for b.Loop() {
		began := time.Now()
		if err := unix.Kill(pid, unix.SIGKILL); err != nil {
			b.Fatal(err)
		}
		// A request may meet the dying worker: that is part of what is measured.
		for old := pid; pid == old || err != nil; {
			pid, err = embed(context.Background(), p, m, 1)
		}
		took = append(took, time.Since(began))
	}
	percentiles(b, took)
}
