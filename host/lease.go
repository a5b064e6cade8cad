package host

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/synapse-module/workers/protocol"
)

// Lease is one worker, lent out with one model loaded. The worker serves nobody
// else until Release. The requests' Model field is filled in.
//
// The errors of its methods are those of the [Worker]'s, and [ErrReleased]. After an [*EngineCrashed]
// the pool starts another worker by itself; the lease is of no more use.
type Lease struct {
	pool     *Pool
	slot     *slot
	worker   *Worker
	pair     pair
	trial    bool
	loaded   Loaded
	answered atomic.Int64
	release  sync.Once
	released atomic.Bool
}

// ErrReleased refuses the use of a lease after its Release.
var ErrReleased = errors.New("host: the lease was released, its worker may be another's: acquire one again")

// Loaded is the model that the lease is for.
func (l *Lease) Loaded() Loaded { return l.loaded }

// Worker is the number of the worker in its pool, and PID its process id.
func (l *Lease) Worker() int { return l.slot.index }

// PID is the worker's process id.
func (l *Lease) PID() int { return l.worker.PID() }

// Embed is [Worker.Embed] of the lease's model.
func (l *Lease) Embed(ctx context.Context, q EmbedRequest) (Vectors, error) {
	if l.released.Load() {
		return Vectors{}, ErrReleased
	}
	q.Model = l.loaded.Ref
	v, err := l.worker.Embed(ctx, q)
	return v, l.note(err)
}

// Rerank is [Worker.Rerank] of the lease's model.
func (l *Lease) Rerank(ctx context.Context, q RerankRequest) ([]float32, error) {
	if l.released.Load() {
		return nil, ErrReleased
	}
	q.Model = l.loaded.Ref
	v, err := l.worker.Rerank(ctx, q)
	return v, l.note(err)
}

// Generate is [Worker.Generate] of the lease's model.
func (l *Lease) Generate(ctx context.Context, q GenerateRequest) (Text, error) {
	if l.released.Load() {
		return Text{}, ErrReleased
	}
	q.Model = l.loaded.Ref
	t, err := l.worker.Generate(ctx, q)
	return t, l.note(err)
}

// Describe is [Worker.Describe] of the lease's model.
func (l *Lease) Describe(ctx context.Context) (protocol.Description, error) {
	if l.released.Load() {
		return protocol.Description{}, ErrReleased
	}
	d, err := l.worker.Describe(ctx, l.loaded.Ref)
	return d, l.note(err)
}

// Unload frees the lease's model in this worker. The next Acquire of it loads it
// again.
func (l *Lease) Unload(ctx context.Context) error {
	if l.released.Load() {
		return ErrReleased
	}
	err := l.worker.Unload(ctx, l.loaded.Ref)
	if err == nil {
		l.pool.post(func() { l.slot.forget(l.worker, l.pair) })
	}
	return l.note(err)
}

// note counts an answer, and tells the pool of a death before the caller hears of
// it, so that what the caller asks next already counts with it.
func (l *Lease) note(err error) error {
	if err == nil {
		l.answered.Add(1)
		return nil
	}
	select {
	case <-l.worker.Done():
		l.pool.post(func() { l.pool.died(l.slot, l.worker) })
	default:
	}
	return err
}

// Release gives the worker back. It may be called more than once, and should be
// deferred: a lease that is never released keeps its worker for good.
func (l *Lease) Release() {
	l.release.Do(func() {
		l.released.Store(true)
		answered := int(l.answered.Load())
		l.pool.post(func() { l.pool.returned(l, answered) })
	})
}
