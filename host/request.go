package host

import (
	"context"
	"errors"

	"github.com/synapse-module/workers/protocol"
)

// newCall makes a request; id is where its message holds its req_id.
func (w *Worker) newCall(ctx context.Context, stage Stage, m model, id *protocol.ID) *call {
	*id = protocol.NumberID(w.lastID.Add(1))
	return &call{ctx: ctx, stage: stage, id: *id, model: m, sent: make(chan struct{}), reply: make(chan error, 1)}
}

// do waits for the lane, sends the request and waits for the owner's verdict.
func (w *Worker) do(c *call, m protocol.Message, hasRaw bool, raw [][]byte) (err error) {
	end := w.observe(c, rows(m), tokens(raw))
	defer func() { end(err) }()
	if err := w.enter(c); err != nil {
		return err
	}
	w.lane.send(c, m, hasRaw, raw)
	return <-c.reply
}

func rows(m protocol.Message) int {
	switch m := m.(type) {
	case *protocol.EmbedBatch:
		return len(m.Items)
	case *protocol.Rerank:
		return len(m.Candidates)
	default:
		return 0
	}
}

func tokens(raw [][]byte) int {
	n := 0
	for _, r := range raw {
		n += len(r)
	}
	return n / i32Bytes
}

// enter waits until the owner has made c the request in hand. From then on the
// owner answers c.reply, whatever happens.
func (w *Worker) enter(c *call) error {
	if err := c.ctx.Err(); err != nil {
		return &RequestCanceled{Stage: c.stage, Worker: w.spec.ID, Err: err}
	}
	select {
	case w.admit <- c:
		return nil
	case <-w.done:
		return w.gone()
	case <-c.ctx.Done():
		return &RequestCanceled{Stage: c.stage, Worker: w.spec.ID, Err: c.ctx.Err()}
	}
}

// Close asks the worker to shut down once the requests that came before are
// done, and waits for its end. When the deadline passes first, the context's or
// Deadlines.Shutdown, the worker is killed; so it is when ctx is canceled. A
// worker that is gone already is nothing to close: the result is nil.
//
// Errors: an [*EngineCrashed] of stage shutdown where the worker did not end
// with status 0, a [*RequestCanceled]. The worker is gone in every case.
func (w *Worker) Close(ctx context.Context) error {
	if _, has := ctx.Deadline(); !has {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, w.spec.Deadlines.Shutdown)
		defer cancel()
	}
	c := &call{ctx: ctx, stage: StageShutdown, sent: make(chan struct{}), reply: make(chan error, 1)}
	var late *RequestCanceled
	switch err := w.enter(c); {
	case err == nil:
		w.lane.send(c, protocol.Shutdown{}, false, nil)
		return <-c.reply
	case errors.As(err, &late): // requests before it hold the lane
		w.Kill()
		<-w.done
		late.Killed = true
		return late
	default:
		return nil
	}
}
