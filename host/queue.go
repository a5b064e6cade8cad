package host

import (
	"errors"
	"slices"
)

// anySlot is a waiter's choice of worker when it has none.
const anySlot = -1

// errAbandoned is the owner's answer to a waiter that gave up.
var errAbandoned = errors.New("abandoned")

// waiter is a request that waits for a worker.
type waiter struct {
	pair   pair
	load   LoadRequest
	pinned int
	trial  bool
	slot   *slot      // the worker that loads the model for it
	reply  chan grant // room for one; answered exactly once
}

type grant struct {
	lease *Lease
	err   error
}

// enqueue takes a request in, or refuses it.
func (p *Pool) enqueue(w *waiter) {
	switch {
	case p.closing:
		w.reply <- grant{err: ErrPoolClosed}
		return
	case p.down != nil:
		w.reply <- grant{err: p.down}
		return
	case len(p.queue) >= p.spec.Queue+p.idle():
		w.reply <- grant{err: &QueueFull{Waiting: len(p.queue)}}
		return
	}
	trial, err := p.ledger.admit(p.clock.Now(), w.pair)
	if err != nil {
		w.reply <- grant{err: err}
		return
	}
	w.trial = trial
	p.queue = append(p.queue, w)
}

// idle counts the workers that could take a request this moment.
func (p *Pool) idle() int {
	n := 0
	for _, s := range p.slots {
		if s.state == slotIdle {
			n++
		}
	}
	return n
}

// abandon ends the wait of a request whose context has ended.
func (p *Pool) abandon(w *waiter) {
	if slices.Contains(p.queue, w) {
		p.dismiss(w, errAbandoned)
	}
}

// dismiss ends a wait with an error.
func (p *Pool) dismiss(w *waiter, err error) {
	p.queue = slices.DeleteFunc(p.queue, func(x *waiter) bool { return x == w })
	if w.slot != nil {
		w.slot.waiter = nil
	}
	if w.trial {
		p.ledger.endTrial(w.pair, false)
	}
	w.reply <- grant{err: err}
}

// dismissAll ends every wait for which the error is not nil.
func (p *Pool) dismissAll(why func(*waiter) error) {
	for _, w := range slices.Clone(p.queue) {
		if err := why(w); err != nil {
			p.dismiss(w, err)
		}
	}
}

// serve gives idle workers to those who wait, the oldest first. A worker that has
// the model is preferred; another loads it.
func (p *Pool) serve() {
	for _, w := range slices.Clone(p.queue) {
		if w.slot != nil {
			continue
		}
		s := p.choose(w)
		switch {
		case s == nil:
		case s.models.has(w.pair):
			p.grant(s, w)
		default:
			p.load(s, w)
		}
	}
}

func (p *Pool) choose(w *waiter) *slot {
	var chosen *slot
	for _, s := range p.slots {
		if s.state != slotIdle || w.pinned != anySlot && w.pinned != s.index {
			continue
		}
		if s.models.has(w.pair) {
			return s
		}
		if chosen == nil {
			chosen = s
		}
	}
	return chosen
}

// grant lends a worker out.
func (p *Pool) grant(s *slot, w *waiter) {
	p.queue = slices.DeleteFunc(p.queue, func(x *waiter) bool { return x == w })
	s.state = slotLent
	m, _ := s.models.get(w.pair)
	w.reply <- grant{lease: &Lease{pool: p, slot: s, worker: s.worker, pair: w.pair, trial: w.trial, loaded: m.loaded}}
}
