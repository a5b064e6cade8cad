package host

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
)

// DefaultQueue is how many requests may wait for a pool's workers: each waits for
// a whole request per worker and place before it, so a longer queue only turns
// work away later.
const DefaultQueue = 64

// PoolSpec says what a pool is.
type PoolSpec struct {
	Worker Spec // how each worker is started; Worker.ID, with the worker's number after it, names them
	Size   int  // how many workers; default 1
	Queue  int  // how many requests may wait; default [DefaultQueue]

	Policy Policy
	Clock  Clock // nil for the system's
}

// ErrPoolClosed refuses what comes after [Pool.Close].
var ErrPoolClosed = errors.New("host: the pool is closed")

// QueueFull refuses a request because as many as the pool allows wait already.
type QueueFull struct{ Waiting int }

func (e *QueueFull) Error() string {
	return fmt.Sprintf("%d requests wait for a worker already: send less at once, or give PoolSpec more workers or a longer queue", e.Waiting)
}

// Unstartable refuses a request because no worker can be started.
type Unstartable struct {
	Attempts int   // starts that failed in a row
	Last     error // the latest failure
}

func (e *Unstartable) Error() string {
	return fmt.Sprintf("no worker can be started (%d attempts failed, the next is made by itself); the last: %v", e.Attempts, e.Last)
}

// NoWorker says that a request waited for a worker until its context ended. It
// unwraps to the context's error.
type NoWorker struct{ Err error }

func (e *NoWorker) Error() string {
	return fmt.Sprintf("no worker was free before the request ended: %v", e.Err)
}

// Unwrap returns the context's error.
func (e *NoWorker) Unwrap() error { return e.Err }

// Pool keeps Size workers of one engine alive, hands them out one request (or
// series of requests) at a time, and keeps count of what crashed them. Which model
// is wanted where, and what makes a batch, is the module's scheduler's to say.
//
// One goroutine owns all of its state; docs/supervision.md draws it.
type Pool struct {
	spec   PoolSpec
	policy Policy
	clock  Clock
	random func() float64

	inbox  chan func() // run by the owner
	done   chan struct{}
	health atomic.Pointer[Health]

	work    context.Context // of starts and loads in the background; ends when the pool closes
	endWork context.CancelFunc
	life    context.Context // of the rest; ends when Close's patience does
	endLife context.CancelFunc

	// The owner's alone from here on.
	ledger  *ledger
	slots   []*slot
	queue   []*waiter // oldest first
	pending int       // background work that will still report
	closing bool
	fails   int   // starts that failed in a row
	down    error // why no worker can be started; nil while one can
}

// NewPool makes a pool and begins to start its workers. It returns at once:
// requests wait for the first of them.
//
// Errors: a plain error that names the field of the spec, or of its policy, that
// cannot be.
func NewPool(s PoolSpec) (*Pool, error) {
	if s.Size < 0 || s.Queue < 0 {
		return nil, fmt.Errorf("host: PoolSpec.Size is %d and Queue %d: neither can be negative", s.Size, s.Queue)
	}
	s.Size = max(s.Size, 1)
	if s.Queue == 0 {
		s.Queue = DefaultQueue
	}
	policy, err := s.Policy.withDefaults()
	if err != nil {
		return nil, err
	}
	if s.Worker, err = s.Worker.withDefaults(); err != nil {
		return nil, err
	}
	if s.Clock == nil {
		s.Clock = systemClock{}
	}
	p := &Pool{
		spec:   s,
		policy: policy,
		clock:  s.Clock,
		random: rand.Float64,
		inbox:  make(chan func()),
		done:   make(chan struct{}),
		ledger: newLedger(policy),
	}
	p.life, p.endLife = context.WithCancel(context.Background())
	p.work, p.endWork = context.WithCancel(p.life)
	for i := range s.Size {
		p.slots = append(p.slots, &slot{index: i, due: p.clock.Now()})
	}
	p.publish()
	go p.own()
	return p, nil
}

// Acquire waits for a worker that has the model loaded, loading it if need be, and
// lends it out. Requests are served in the order in which they came. The context
// bounds the wait; a load that it began goes on without it and serves the next.
//
// Errors: [*Quarantined], [*QueueFull], [*Unstartable] and [ErrPoolClosed] at once;
// [*NoWorker] when ctx ends first; a [*protocol.Error] where the worker refuses to
// load the model; a [*NotAdmitted] where Spec.Admit does; an [*EngineCrashed] where
// the load crashed it.
func (p *Pool) Acquire(ctx context.Context, m LoadRequest) (*Lease, error) {
	return p.acquire(ctx, m, anySlot)
}

// AcquireOn is Acquire of one certain worker, 0 to Size-1, for a scheduler that
// places models itself. Its errors are those of Acquire.
func (p *Pool) AcquireOn(ctx context.Context, m LoadRequest, worker int) (*Lease, error) {
	if worker < 0 || worker >= len(p.slots) {
		return nil, fmt.Errorf("host: there is no worker %d in a pool of %d", worker, len(p.slots))
	}
	return p.acquire(ctx, m, worker)
}

func (p *Pool) acquire(ctx context.Context, m LoadRequest, worker int) (*Lease, error) {
	k, m, err := identify(m)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, &NoWorker{Err: err}
	}
	w := &waiter{pair: k, load: m, pinned: worker, reply: make(chan grant, 1)}
	if !p.post(func() { p.enqueue(w) }) {
		return nil, ErrPoolClosed
	}
	select {
	case g := <-w.reply:
		return g.lease, g.err
	case <-ctx.Done():
	}
	p.post(func() { p.abandon(w) })
	g := <-w.reply
	if g.lease != nil { // it came just now
		g.lease.Release()
		return nil, &NoWorker{Err: ctx.Err()}
	}
	if errors.Is(g.err, errAbandoned) {
		g.err = &NoWorker{Err: ctx.Err()}
	}
	return nil, g.err
}

// identify is what crashes of a model are counted by, and the request with its
// config marshalled once.
func identify(m LoadRequest) (pair, LoadRequest, error) {
	config, err := configJSON(m.Config)
	if err != nil {
		return pair{}, m, err
	}
	m.Config = nil
	if config != nil {
		m.Config = config
	}
	return pair{string(m.Digest), string(config)}, m, nil
}

// Reprobe allows one trial of a quarantined model now. It says whether the model
// was quarantined. Its error is a plain one where Config does not marshal, or
// [ErrPoolClosed].
func (p *Pool) Reprobe(m LoadRequest) (bool, error) {
	k, _, err := identify(m)
	if err != nil {
		return false, err
	}
	was := make(chan bool, 1)
	if !p.post(func() { was <- p.ledger.reprobe(p.clock.Now(), k) }) {
		return false, ErrPoolClosed
	}
	return <-was, nil
}

// Health is the pool's state as the supervisor last stamped it. Reading it touches
// no worker and waits for nothing.
func (p *Pool) Health() Health { return *p.health.Load() }

// Close refuses new requests, fails those that wait, lets those in hand end, and
// shuts every worker down. When ctx ends first, what is left is killed. Its error
// is then the context's; no worker is left in either case.
func (p *Pool) Close(ctx context.Context) error {
	p.post(p.shut)
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
		p.post(p.killAll)
		<-p.done
		return ctx.Err()
	}
}

// post hands the owner something to do; false means that the pool is closed.
func (p *Pool) post(f func()) bool {
	select {
	case p.inbox <- f:
		return true
	case <-p.done:
		return false
	}
}

// background runs f beside the owner and then what it returns in the owner.
func (p *Pool) background(f func() func()) {
	p.pending++
	go func() {
		report := f()
		p.inbox <- func() { // the owner stays for everything that is pending
			p.pending--
			report()
		}
	}()
}
