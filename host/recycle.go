package host

import (
	"errors"
	"time"
)

// succession is the replacement of a worker by a fresh one that has the same
// models, while the old one serves on.
type succession struct {
	running bool      // a successor is being made
	ready   *Worker   // it waits for the old one to be free
	models  models    // what it has loaded
	after   time.Time // not before this, after attempts that failed
	failed  int       // attempts in a row
}

// recycleAttempts is how often a successor is tried beside the worker that it is
// to replace. Where there is no room for both, the old one is shut down first: the
// requests then wait for the start, but none fails.
const recycleAttempts = 3

// wornOut says that a worker is to be replaced.
func (p *Pool) wornOut(s *slot) bool {
	return p.policy.MaxMemory > 0 && s.memory > p.policy.MaxMemory ||
		p.policy.MaxRequests > 0 && s.served >= p.policy.MaxRequests
}

// succeed brings a successor in where one is ready, or begins to make one where
// the worker is worn out. It is called between two requests.
func (p *Pool) succeed(s *slot) {
	switch now := p.clock.Now(); {
	case s.next.ready != nil:
		p.changeOver(s)
	case s.worker == nil || s.next.running || !p.wornOut(s) || now.Before(s.next.after):
	case s.next.failed >= recycleAttempts:
		p.makeRoom(s)
	default:
		p.makeSuccessor(s)
	}
}

// makeRoom shuts the worker down, and has the next one started when it is gone.
func (p *Pool) makeRoom(s *slot) {
	w := s.worker
	s.next = succession{}
	s.worker, s.models, s.state = nil, nil, slotStarting
	p.background(func() func() {
		_ = w.Close(p.life)
		return func() { s.state, s.due = slotEmpty, p.clock.Now() }
	})
}

// makeSuccessor starts a worker beside the one in the slot and loads the same
// models into it.
func (p *Pool) makeSuccessor(s *slot) {
	s.next.running = true
	spec := p.workerSpec(s)
	wanted := append(models(nil), s.models...)
	p.background(func() func() {
		w, err := Start(p.work, spec)
		if err != nil {
			return func() { p.noSuccessor(s, err) }
		}
		for i, m := range wanted {
			if wanted[i].loaded, err = w.Load(p.work, m.load); err != nil {
				w.Kill()
				<-w.Done()
				return func() { p.noSuccessor(s, err) }
			}
		}
		return func() {
			s.next.running, s.next.failed = false, 0
			s.next.ready, s.next.models = w, wanted
			if s.state == slotIdle || s.state == slotEmpty || p.closing {
				p.changeOver(s)
			}
		}
	})
}

// noSuccessor puts the next attempt off; the worker in the slot serves on.
func (p *Pool) noSuccessor(s *slot, err error) {
	s.next.running = false
	s.next.failed++
	now := p.clock.Now()
	s.next.after = now.Add(p.policy.backoff(s.next.failed+1, p.random()))
	var crash *EngineCrashed
	if errors.As(err, &crash) {
		p.ledger.crash(now, crash)
	}
}

// changeOver puts the successor in the slot. The old worker, if it still lives, is
// shut down beside it.
func (p *Pool) changeOver(s *slot) {
	old, w, m := s.worker, s.next.ready, s.next.models
	s.next = succession{}
	if p.closing {
		p.farewell(w)
		return
	}
	s.worker = nil
	if old != nil {
		p.farewell(old)
	}
	p.install(s, w, m)
}
