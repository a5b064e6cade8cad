//go:build linux

package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"golang.org/x/sys/unix"

	"github.com/synapse-module/workers/host"
)

// openPool opens the pool that the pool's faults share. Its budgets are out of
// reach: what they do is tested by the clock in package host.
func (b *bench) openPool() error {
	policy := host.DefaultPolicy()
	policy.PairCrashes, policy.LaneCrashes = 1<<30, 1<<30
	policy.BackoffMin, policy.BackoffMax = time.Millisecond, 10*time.Millisecond
	policy.MaxRequests = 50 // so that recycling goes on all the time
	policy.RefreshEvery = 100 * time.Millisecond
	var err error
	b.pool, err = host.NewPool(host.PoolSpec{Worker: b.fakeSpec(b.Fake), Size: 3, Queue: 1000, Policy: policy})
	return err
}

// poolUnderFire is one request to the pool that meets a fault, or that has to be
// answered right beside those that do.
func poolUnderFire(b *bench, r *rand.Rand) fault {
	how := []string{"none", "none", "abort", "segv", "exit", "hang", "garbage", "eof", "kill", "cancel"}[r.IntN(10)]
	row := []int32{int32(r.IntN(1000)), int32(r.IntN(1000))}
	return fault{how, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		m := b.model
		if how != "none" && how != "kill" && how != "cancel" {
			m.Config = map[string]any{"fault": how, "fault_code": 9, "fault_bytes": 100}
		}
		l, err := b.pool.Acquire(ctx, m)
		if err != nil {
			return b.judgePool(how, err)
		}
		defer l.Release()
		use, cancelUse := context.WithCancel(ctx)
		defer cancelUse()
		switch how {
		case "hang":
			use, cancelUse = context.WithTimeout(ctx, impatience)
			defer cancelUse()
		case "kill":
			_ = unix.Kill(l.PID(), unix.SIGKILL) // it is lent to us: not reaped unless it died this moment
		case "cancel":
			cancelUse()
		}
		v, err := l.Embed(use, host.EmbedRequest{Rows: [][]int32{row}})
		if err != nil {
			return b.judgePool(how, err)
		}
		for j, got := range v.Row(0) {
			if got != fakeValue(row, j) {
				return errWrong
			}
		}
		if how != "none" && how != "kill" {
			return fmt.Errorf("answered in spite of the fault %s", how)
		}
		return nil
	}}
}

// judgePool holds the error of a request to its fault. A sound request may only
// have met a worker that died idle.
func (b *bench) judgePool(how string, err error) error {
	var crash *host.EngineCrashed
	var gone *host.WorkerGone
	var canceled *host.RequestCanceled
	switch {
	case !typed(err):
		return fmt.Errorf("%w: %T %w", errUntyped, err, err)
	case how == "cancel" && errors.As(err, &canceled) && errors.Is(err, context.Canceled):
		return nil
	case how == "kill" && (errors.As(err, &gone) || errors.As(err, &crash) && crash.Cause == host.CauseSignal && crash.Signal == "SIGKILL"):
		return nil
	case how == "none" || !errors.As(err, &crash):
		return fmt.Errorf("the fault %s gave %w", how, err)
	}
	want := map[string]host.Cause{
		"abort": host.CauseSignal, "segv": host.CauseSignal, "exit": host.CauseExit, "eof": host.CauseExit,
		"hang": host.CauseTimeout, "garbage": host.CauseViolation,
	}[how]
	if crash.Cause != want || crash.Stage != host.StageEmbed || crash.Model != string(b.model.Digest) {
		return fmt.Errorf("the fault %s gave %w", how, err)
	}
	return nil
}
