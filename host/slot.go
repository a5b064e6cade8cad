package host

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// slotState is where one worker's place in the pool stands.
type slotState int

const (
	slotEmpty    slotState = iota // no worker; one is started when due
	slotStarting                  // one is being started
	slotIdle                      // ready for a request
	slotLoading                   // loading a model for a waiter
	slotLent                      // lent out
	slotPinging                   // being asked for its vital signs
)

func (s slotState) String() string {
	return [...]string{"empty", "starting", "idle", "loading", "lent", "pinging"}[s]
}

// slot is the place of one worker in the pool. All of it is the owner's.
type slot struct {
	index  int
	state  slotState
	due    time.Time // slotEmpty: when to start the next worker
	worker *Worker   // nil while empty or starting
	models models
	waiter *waiter // slotLoading: who it is for; nil once that gave up

	since    time.Time // when the worker was started
	starts   int
	served   int // times lent since then
	failures int // deaths in a row without an answer between them

	pong    Pong
	memory  int64 // bytes, see ownMemory
	stamped time.Time
	refresh time.Time // when the vital signs are to be asked for again

	next succession
}

// models are what a worker has loaded, in the order of loading.
type models []slotModel

type slotModel struct {
	pair   pair
	load   LoadRequest
	loaded Loaded
}

func (m models) get(k pair) (slotModel, bool) {
	i := slices.IndexFunc(m, func(x slotModel) bool { return x.pair == k })
	if i < 0 {
		return slotModel{}, false
	}
	return m[i], true
}

func (m models) has(k pair) bool { _, ok := m.get(k); return ok }

// forget notes that a model was unloaded from the worker w.
func (s *slot) forget(w *Worker, k pair) {
	if s.worker == w {
		s.models = slices.DeleteFunc(s.models, func(x slotModel) bool { return x.pair == k })
	}
}

// workerSpec is the spec of the next worker in a slot.
func (p *Pool) workerSpec(s *slot) Spec {
	spec := p.spec.Worker
	s.starts++
	spec.ID = fmt.Sprintf("%s.%d.%d", spec.ID, s.index, s.starts)
	return spec
}

// start starts a worker in an empty slot.
func (p *Pool) start(s *slot) {
	s.state = slotStarting
	spec := p.workerSpec(s)
	p.background(func() func() {
		w, err := Start(p.work, spec)
		return func() { p.started(s, w, err) }
	})
}

func (p *Pool) started(s *slot, w *Worker, err error) {
	if err != nil {
		s.state = slotEmpty
		p.startFailed(s, err)
		return
	}
	p.fails, p.down = 0, nil
	p.install(s, w, nil)
}

// install puts a worker into its slot and watches for its end.
func (p *Pool) install(s *slot, w *Worker, m models) {
	now := p.clock.Now()
	s.worker, s.models, s.state, s.since, s.served = w, m, slotIdle, now, 0
	s.pong, s.memory, s.stamped, s.refresh = Pong{}, 0, time.Time{}, now
	p.background(func() func() {
		<-w.Done()
		return func() { p.died(s, w) }
	})
	if p.closing {
		p.retire(s)
	}
}

// startFailed counts a failed start and puts the next one off.
func (p *Pool) startFailed(s *slot, err error) {
	now := p.clock.Now()
	var crash *EngineCrashed
	if errors.As(err, &crash) {
		p.ledger.crash(now, crash)
	}
	s.failures++
	s.due = now.Add(p.policy.backoff(max(s.failures, 2), p.random())) // never at once: nothing has changed
	p.fails++
	alive := slices.ContainsFunc(p.slots, func(s *slot) bool { return s.worker != nil })
	if p.fails >= p.policy.StartAttempts && !alive {
		p.down = &Unstartable{Attempts: p.fails, Last: err}
		p.dismissAll(func(*waiter) error { return p.down })
	}
}

// died deals with the end of a worker, once, whoever noticed it.
func (p *Pool) died(s *slot, w *Worker) {
	if s.worker != w {
		return // known, or retired
	}
	now := p.clock.Now()
	var crash *EngineCrashed
	if errors.As(w.Err(), &crash) {
		p.ledger.crash(now, crash)
		s.failures++
	}
	if s.waiter != nil { // it was loading
		p.dismiss(s.waiter, w.Err())
	}
	s.worker, s.models, s.state, s.due = nil, nil, slotEmpty, now.Add(p.policy.backoff(s.failures, p.random()))
	if crash != nil {
		p.dismissAll(func(x *waiter) error { // what was let in before the budget was used up
			if q := p.ledger.quarantined[x.pair]; q != nil && !x.trial {
				return q.err(x.pair)
			}
			return nil
		})
	}
	p.succeed(s)
}

// load loads a waiter's model into an idle worker.
func (p *Pool) load(s *slot, w *waiter) {
	s.state, s.waiter, w.slot = slotLoading, w, s
	worker := s.worker
	p.background(func() func() {
		loaded, err := worker.Load(p.work, w.load)
		return func() { p.loaded(s, worker, slotModel{w.pair, w.load, loaded}, err) }
	})
}

func (p *Pool) loaded(s *slot, worker *Worker, m slotModel, err error) {
	select {
	case <-worker.Done():
		p.died(s, worker)
		return
	default:
	}
	if s.worker != worker {
		return
	}
	w := s.waiter
	s.waiter, s.state = nil, slotIdle
	if err == nil {
		s.models = append(s.models, m)
	}
	if w != nil {
		w.slot = nil
		if err == nil {
			p.grant(s, w)
			return
		}
		p.dismiss(w, err)
	}
	p.freed(s)
}

// returned takes a lent worker back.
func (p *Pool) returned(l *Lease, answered int) {
	s := l.slot
	select {
	case <-l.worker.Done():
		p.died(s, l.worker) // counts the crash before the trial is judged
	default:
	}
	alive := s.worker == l.worker
	if l.trial {
		p.ledger.endTrial(l.pair, alive && answered > 0)
	}
	if !alive {
		return
	}
	s.served++
	if answered > 0 {
		s.failures = 0
	}
	s.state = slotIdle
	p.freed(s)
}

// freed deals with a worker between two requests, before the next one gets it.
func (p *Pool) freed(s *slot) {
	if p.closing {
		p.retire(s)
		return
	}
	p.succeed(s)
}

// ping asks an idle worker for its vital signs.
func (p *Pool) ping(s *slot) {
	s.state = slotPinging
	worker := s.worker
	p.background(func() func() {
		pong, err := worker.Ping(p.life)
		memory := ownMemory(worker, pong)
		return func() { p.ponged(s, worker, pong, memory, err) }
	})
}

func (p *Pool) ponged(s *slot, worker *Worker, pong Pong, memory int64, err error) {
	select {
	case <-worker.Done():
		p.died(s, worker)
		return
	default:
	}
	if s.worker != worker {
		return
	}
	now := p.clock.Now()
	s.state, s.refresh = slotIdle, now.Add(p.policy.RefreshEvery)
	if err == nil {
		s.pong, s.memory, s.stamped = pong, memory, now
	}
	p.freed(s)
}

// retire shuts a worker down that its slot needs no more.
func (p *Pool) retire(s *slot) {
	w := s.worker
	s.worker, s.models, s.state = nil, nil, slotEmpty
	p.farewell(w)
}

// farewell closes a worker that belongs to no slot any more; how it ends then
// counts for nothing.
func (p *Pool) farewell(w *Worker) {
	p.background(func() func() {
		_ = w.Close(p.life)
		return func() {}
	})
}
