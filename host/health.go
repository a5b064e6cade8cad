package host

import (
	"cmp"
	"slices"
	"time"
)

// LaneState is how a pool is as a whole.
type LaneState string

// The lane's states.
const (
	LaneReady    LaneState = "ready"    // serving, or about to
	LaneDegraded LaneState = "degraded" // serving, but its crash budget over all work is used up
	LaneDown     LaneState = "down"     // no worker can be started; see Health.Down
	LaneClosed   LaneState = "closed"   // Close was called
)

// Health is a pool's state at one moment.
type Health struct {
	Stamp       time.Time // when the supervisor stamped it
	Lane        LaneState
	Down        error // [LaneDown]: why
	Crashes     int   // over all work, within Policy.LaneWindow
	Waiting     int   // requests that wait for a worker
	Workers     []WorkerHealth
	Quarantined []*Quarantined // oldest first
}

// WorkerHealth is one worker's state.
type WorkerHealth struct {
	State    string // "empty", "starting", "idle", "loading", "lent" or "pinging"
	ID       string // empty while there is none, as all below
	PID      int
	Engine   string // name and version
	Started  time.Time
	Restarts int // starts in this place after the first
	Requests int // how often this worker was lent out

	// The vital signs, as of Stamp; zero until the first were taken.
	Stamp          time.Time
	RSSMB          int64 // resident, MiB
	Memory         int64 // the worker's own, bytes: anonymous and swapped where the system tells, else resident
	PlacementShare *float64

	Models []ModelHealth
}

// ModelHealth is one model that a worker has loaded.
type ModelHealth struct {
	Digest string
	Config string // canonical JSON; empty for the engine's defaults
}

// Age is how old the vital signs are.
func (w WorkerHealth) Age(now time.Time) time.Duration { return now.Sub(w.Stamp) }

// publish stamps what Health returns.
func (p *Pool) publish() {
	now := p.clock.Now()
	h := &Health{Stamp: now, Lane: LaneReady, Down: p.down, Crashes: p.ledger.laneCrashes(now), Waiting: len(p.queue)}
	switch {
	case p.closing:
		h.Lane = LaneClosed
	case p.down != nil:
		h.Lane = LaneDown
	case p.ledger.degraded(now):
		h.Lane = LaneDegraded
	}
	h.Workers = make([]WorkerHealth, len(p.slots))
	for i, s := range p.slots {
		w := WorkerHealth{State: s.state.String(), Restarts: max(s.starts-1, 0)}
		if s.worker != nil {
			hello := s.worker.Hello()
			w.ID, w.PID, w.Engine = s.worker.ID(), s.worker.PID(), hello.Engine.Name+" "+hello.Engine.Version
			w.Started, w.Requests, w.Stamp = s.since, s.served, s.stamped
			w.RSSMB, w.Memory, w.PlacementShare = s.pong.RSSMB, s.memory, s.pong.PlacementShare
			for _, m := range s.models {
				w.Models = append(w.Models, ModelHealth{Digest: m.pair.model, Config: m.pair.config})
			}
		}
		h.Workers[i] = w
	}
	for k, q := range p.ledger.quarantined {
		h.Quarantined = append(h.Quarantined, q.err(k))
	}
	slices.SortFunc(h.Quarantined, func(a, b *Quarantined) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Model, b.Model), cmp.Compare(a.Config, b.Config))
	})
	p.health.Store(h)
}
