package host

import "time"

// own is the one goroutine that owns the pool. Everything else is a message to it:
// requests, releases, what background work reports, the clock.
func (p *Pool) own() {
	defer close(p.done)
	defer p.endLife()
	for {
		p.tend()
		p.publish()
		if p.closing && p.pending == 0 && !p.lent() {
			return
		}
		fired, stop := p.alarm()
		select {
		case f := <-p.inbox:
			f()
		case <-fired:
		}
		stop()
	}
}

// tend does what is due: starts, vital signs, successors, requests.
func (p *Pool) tend() {
	if p.closing {
		return
	}
	now := p.clock.Now()
	for _, s := range p.slots {
		switch {
		case s.state == slotEmpty && !s.next.running && !now.Before(s.due):
			p.start(s)
		case s.state == slotIdle && p.pingDue(s, now):
			p.ping(s)
		case s.state == slotIdle:
			p.succeed(s)
		}
	}
	p.serve()
}

// pingDue says that a worker is to be asked for its vital signs: when they are due
// and nobody waits, or, where somebody always does, when they are due twice over.
func (p *Pool) pingDue(s *slot, now time.Time) bool {
	overdue := now.Sub(s.refresh)
	return overdue >= 0 && (len(p.queue) == 0 || overdue >= p.policy.RefreshEvery)
}

// alarm is a timer for the earliest thing that will become due by itself.
func (p *Pool) alarm() (<-chan time.Time, func()) {
	var at time.Time
	earliest := func(t time.Time) {
		if at.IsZero() || t.Before(at) {
			at = t
		}
	}
	if !p.closing {
		for _, s := range p.slots {
			switch {
			case s.state == slotEmpty && !s.next.running:
				earliest(s.due)
			case s.state == slotIdle:
				earliest(s.refresh)
				if p.wornOut(s) && !s.next.running {
					earliest(s.next.after)
				}
			}
		}
	}
	if at.IsZero() {
		return nil, func() {}
	}
	return p.clock.Timer(at.Sub(p.clock.Now()))
}

// lent says whether a worker is still lent out.
func (p *Pool) lent() bool {
	for _, s := range p.slots {
		if s.state == slotLent {
			return true
		}
	}
	return false
}

// shut begins the end: nobody comes in, who waits is sent away, who is free is
// shut down. Who is busy follows when it is free.
func (p *Pool) shut() {
	if p.closing {
		return
	}
	p.closing = true
	p.endWork()
	p.dismissAll(func(*waiter) error { return ErrPoolClosed })
	for _, s := range p.slots {
		if s.next.ready != nil {
			p.changeOver(s)
		}
		if s.state == slotIdle {
			p.retire(s)
		}
	}
}

// killAll ends at once what shut let go on.
func (p *Pool) killAll() {
	p.endLife()
	for _, s := range p.slots {
		if s.worker != nil {
			s.worker.Kill()
		}
	}
}
