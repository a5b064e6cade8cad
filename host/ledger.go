package host

import (
	"fmt"
	"slices"
	"time"
)

// pair is what crashes are counted by.
type pair struct{ model, config string }

// ledger keeps the crash budgets. It knows no clock and no worker: the time is
// told to it.
type ledger struct {
	policy      Policy
	pairs       map[pair][]time.Time // crashes within the window, oldest first
	lane        []time.Time
	quarantined map[pair]*quarantine
}

// quarantine is a pair that used up its budget.
type quarantine struct {
	since   time.Time
	until   time.Time // from here on a trial is allowed
	crashes int
	last    *EngineCrashed
	trial   bool // one is under way
}

func newLedger(p Policy) *ledger {
	return &ledger{policy: p, pairs: map[pair][]time.Time{}, quarantined: map[pair]*quarantine{}}
}

// Quarantined refuses a request whose (model, config) used up its crash budget.
// It is permanent until a trial succeeds: one request is let through after Until,
// or as soon as [Pool.Reprobe] is called.
type Quarantined struct {
	Model   string // digest
	Config  string // runtime_config, canonical JSON; empty for the engine's defaults
	Since   time.Time
	Until   time.Time      // when the next trial is allowed
	Crashes int            // how many crashes led here, trials included
	Last    *EngineCrashed // the latest, with the worker's log
}

func (e *Quarantined) Error() string {
	return fmt.Sprintf("model %s with config %s is quarantined since %s after %d crashes; a trial is allowed from %s on, or after Reprobe; the last: %v",
		e.Model, orDefaults(e.Config), e.Since.Format(time.RFC3339), e.Crashes, e.Until.Format(time.RFC3339), e.Last)
}

func orDefaults(config string) string {
	if config == "" {
		return "{}"
	}
	return config
}

func (q *quarantine) err(k pair) *Quarantined {
	return &Quarantined{Model: k.model, Config: k.config, Since: q.since, Until: q.until, Crashes: q.crashes, Last: q.last}
}

// crash counts a crash. A worker that dies while it shuts down has done its work,
// so that is none.
func (l *ledger) crash(now time.Time, c *EngineCrashed) {
	if c.Stage == StageShutdown {
		return
	}
	l.lane = append(within(l.lane, now, l.policy.LaneWindow), now)
	if c.Model == "" {
		return
	}
	k := pair{c.Model, c.Config}
	if q := l.quarantined[k]; q != nil {
		q.until, q.last, q.trial = now.Add(l.policy.Reprobe), c, false
		q.crashes++
		return
	}
	l.forget(now)
	l.pairs[k] = append(l.pairs[k], now)
	if n := len(l.pairs[k]); n >= l.policy.PairCrashes {
		l.quarantined[k] = &quarantine{since: now, until: now.Add(l.policy.Reprobe), crashes: n, last: c}
		delete(l.pairs, k)
	}
}

// forget drops what has left its window, so that the ledger stays as small as the
// trouble is.
func (l *ledger) forget(now time.Time) {
	for k, at := range l.pairs {
		if at = within(at, now, l.policy.PairWindow); len(at) == 0 {
			delete(l.pairs, k)
		} else {
			l.pairs[k] = at
		}
	}
}

// within keeps the times that are younger than the window.
func within(at []time.Time, now time.Time, window time.Duration) []time.Time {
	first := slices.IndexFunc(at, func(t time.Time) bool { return now.Sub(t) < window })
	if first < 0 {
		return at[:0]
	}
	return at[first:]
}

// admit lets a request for a pair pass or refuses it with a [*Quarantined]. A
// trial must be ended by a crash or by endTrial.
func (l *ledger) admit(now time.Time, k pair) (trial bool, err error) {
	q := l.quarantined[k]
	switch {
	case q == nil:
		return false, nil
	case q.trial || now.Before(q.until):
		return false, q.err(k)
	}
	q.trial = true
	return true, nil
}

// endTrial ends a trial that did not crash. Only one that was answered clears the
// pair; else the next request is a trial again.
func (l *ledger) endTrial(k pair, answered bool) {
	if answered {
		delete(l.quarantined, k)
	} else if q := l.quarantined[k]; q != nil {
		q.trial = false
	}
}

// reprobe allows a trial of a quarantined pair now.
func (l *ledger) reprobe(now time.Time, k pair) bool {
	q := l.quarantined[k]
	if q == nil {
		return false
	}
	q.until = now
	return true
}

// laneCrashes counts the crashes over all work in the window.
func (l *ledger) laneCrashes(now time.Time) int {
	l.lane = within(l.lane, now, l.policy.LaneWindow)
	return len(l.lane)
}

func (l *ledger) degraded(now time.Time) bool { return l.laneCrashes(now) >= l.policy.LaneCrashes }
