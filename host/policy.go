package host

import (
	"fmt"
	"time"
)

// Policy is when a [Pool] gives up on what, and when it tries again. The zero
// Policy stands for [DefaultPolicy]; a Policy of one's own starts from that.
type Policy struct {
	// PairCrashes crashes of one (model digest, runtime_config) within PairWindow
	// quarantine that pair.
	PairCrashes int
	PairWindow  time.Duration

	// Reprobe is how long a pair is quarantined before one request is let through
	// as a trial. [Pool.Reprobe] allows one earlier.
	Reprobe time.Duration

	// LaneCrashes crashes over all work within LaneWindow make the lane degraded.
	LaneCrashes int
	LaneWindow  time.Duration

	// A worker that dies after it had served is restarted at once. One that dies
	// again before it served waits BackoffMin, twice that the next time, and so on
	// to BackoffMax; each wait is shortened at random by up to half, so that the
	// workers of many modules do not come back in step.
	BackoffMin time.Duration
	BackoffMax time.Duration

	// StartAttempts starts that fail in a row, with no worker alive, make the lane
	// down: waiting requests fail, and so do new ones, until a start succeeds.
	StartAttempts int

	// RefreshEvery is how old a worker's vital signs may become before it is asked
	// for them, between two requests.
	RefreshEvery time.Duration

	// MaxMemory recycles a worker whose own memory (anonymous and swapped; resident
	// where the system does not tell) is over it, in bytes. 0 is no bound.
	MaxMemory int64

	// MaxRequests recycles a worker that was used so many times. 0 is no bound.
	MaxRequests int
}

// DefaultPolicy is the policy of a pool that was given none.
func DefaultPolicy() Policy {
	return Policy{
		// A fault of the machine (memory gone for a moment) seldom hits the same
		// model three times in ten minutes; a model that an engine cannot take does.
		PairCrashes: 3,
		PairWindow:  10 * time.Minute,
		// Long enough that a poisonous model costs next to nothing, short enough
		// that a repaired driver or an added memory is found the same hour.
		Reprobe: 30 * time.Minute,
		// More than any one pair can cause before it is quarantined three times over.
		LaneCrashes: 10,
		LaneWindow:  10 * time.Minute,
		// Below the time in which a person notices; the second wait is visible.
		BackoffMin:    100 * time.Millisecond,
		BackoffMax:    30 * time.Second,
		StartAttempts: 3,
		// A health page is read every few seconds at most.
		RefreshEvery: 10 * time.Second,
	}
}

// withDefaults stands in for the zero Policy, or names the first field that no
// policy can have.
func (p Policy) withDefaults() (Policy, error) {
	if p == (Policy{}) {
		return DefaultPolicy(), nil
	}
	for _, f := range []struct {
		name  string
		value int64
		least int64
	}{
		{"PairCrashes", int64(p.PairCrashes), 1},
		{"PairWindow", int64(p.PairWindow), 1},
		{"Reprobe", int64(p.Reprobe), 1},
		{"LaneCrashes", int64(p.LaneCrashes), 1},
		{"LaneWindow", int64(p.LaneWindow), 1},
		{"BackoffMin", int64(p.BackoffMin), 1},
		{"BackoffMax", int64(p.BackoffMax), int64(p.BackoffMin)},
		{"StartAttempts", int64(p.StartAttempts), 1},
		{"RefreshEvery", int64(p.RefreshEvery), 1},
		{"MaxMemory", p.MaxMemory, 0},
		{"MaxRequests", int64(p.MaxRequests), 0},
	} {
		if f.value < f.least {
			return p, fmt.Errorf("host: Policy.%s is %d, the least is %d: start from DefaultPolicy and change what you mean to", f.name, f.value, f.least)
		}
	}
	return p, nil
}

// backoff is the wait before a restart after so many failures in a row, random in
// [0, 1).
func (p Policy) backoff(failures int, random float64) time.Duration {
	if failures <= 1 {
		return 0
	}
	wait := p.BackoffMin
	for range failures - 2 {
		if wait >= p.BackoffMax/2 {
			wait = p.BackoffMax
			break
		}
		wait *= 2
	}
	return wait - time.Duration(random*float64(wait)/2)
}
