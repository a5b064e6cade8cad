package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/synapse-module/workers/protocol"
)

// state is where a worker stands. docs/supervision.md draws the machine.
type state int

const (
	starting    state = iota // the system is starting the process
	handshaking              // the process runs, HELLO_ACK is not sent
	idle                     // nothing is asked of it
	busy                     // one request is in hand
	stopping                 // SHUTDOWN was sent
	gone                     // reaped; the end of every path
)

func (s state) String() string {
	return [...]string{"starting", "handshaking", "idle", "busy", "stopping", "gone"}[s]
}

// successors is the whole machine. Every state may end in gone, by a crash, a
// deadline or a kill.
var successors = map[state][]state{
	starting:    {handshaking, gone},
	handshaking: {idle, gone},
	idle:        {busy, stopping, gone},
	busy:        {idle, gone},
	stopping:    {gone},
}

const (
	// exitGrace is how long a worker that closed its connection is given to end,
	// so that the crash says how it died. A process that is dying closes its
	// descriptors first and is waited for within milliseconds, seconds on an
	// overloaded machine.
	exitGrace = 2 * time.Second

	// reapGrace bounds the wait for the end of a process after SIGKILL. Only one
	// that hangs inside the kernel (a driver, a dead network file system) takes
	// longer, and a request must not hang with it.
	reapGrace = 5 * time.Second
)

// owner is the one goroutine that owns a worker's state. Calls, the lane, the
// clock and the process's end are messages to it.
type owner struct {
	w     *Worker
	state state
	call  *call // the request in hand, the start included; nil while idle
	timer *time.Timer
}

// run owns the worker until it is gone.
func (o *owner) run(start *call) {
	o.timer = time.NewTimer(time.Hour)
	defer o.timer.Stop()
	o.take(start)
	for o.state != gone {
		o.step()
	}
}

func (o *owner) to(next state) {
	if !slices.Contains(successors[o.state], next) {
		panic(fmt.Sprintf("host: a worker cannot go from %v to %v", o.state, next))
	}
	o.state = next
}

// step waits for the next message and deals with it.
func (o *owner) step() {
	var admit chan *call
	if o.state == idle {
		admit = o.w.admit
	}
	var canceled <-chan struct{}
	if o.call != nil {
		canceled = o.call.ctx.Done()
	}
	select {
	case c := <-admit:
		if c.stage == StageShutdown {
			o.to(stopping)
		} else {
			o.to(busy)
		}
		o.take(c)
	case e := <-o.w.lane.events:
		o.heard(e)
	case <-canceled:
		o.canceled()
	case <-o.timer.C:
		o.fail(CauseTimeout, timedOut(fmt.Sprintf("the deadline of %v passed", o.w.spec.Deadlines.of(o.call.stage))))
	case <-o.w.proc.reaped:
		o.exited()
	case <-o.w.kill:
		o.end(ErrKilled, &WorkerGone{Worker: o.w.spec.ID, Why: ErrKilled})
	}
}

// take makes c the request in hand. Its deadline is its context's, else that of
// its kind.
func (o *owner) take(c *call) {
	o.call = c
	o.timer.Stop()
	if _, has := c.ctx.Deadline(); !has {
		o.timer.Reset(o.w.spec.Deadlines.of(c.stage))
	}
}

// settle gives the request in hand its result and makes the lane free.
func (o *owner) settle(err error) {
	o.timer.Stop()
	c := o.call
	o.call = nil
	o.to(idle)
	c.reply <- err
}

func (o *owner) heard(e event) {
	switch {
	case e.kind == spawned:
		o.to(handshaking)
	case e.kind == unable:
		o.end(e.err, e.err)
	case e.kind == broken && o.state == starting:
		o.fail(CauseExit, e.err)
	case e.kind == broken && o.state == stopping && isEnd(e.err):
		// The worker lets go of the connection; its exit is what counts.
		o.w.lane.close()
	case e.kind == broken:
		o.fail(causeOf(e.err), e.err)
	default:
		o.settle(e.err)
	}
}

// causeOf reads what ended the stream.
func causeOf(err error) Cause {
	var v *protocol.ViolationError
	if errors.As(err, &v) {
		return CauseViolation
	}
	return CauseEOF
}

func (o *owner) canceled() {
	err := o.call.ctx.Err()
	if errors.Is(err, context.DeadlineExceeded) {
		o.fail(CauseTimeout, timedOut("the request's deadline passed"))
		return
	}
	canceled := &RequestCanceled{Stage: o.stage(), Worker: o.w.spec.ID, Killed: true, Err: err}
	o.end(canceled, canceled)
}

// exited deals with a process that ended by itself.
func (o *owner) exited() {
	if o.state == busy {
		o.hearLastWords()
	}
	if o.state == stopping && o.w.proc.end == (ending{}) {
		o.end(nil, nil)
		return
	}
	o.fail(CauseExit, o.w.proc.startErr)
}

// hearLastWords gives the request in hand an answer that the worker had sent in
// full before it ended.
func (o *owner) hearLastWords() {
	grace := time.NewTimer(lastWords)
	defer grace.Stop()
	select {
	case e := <-o.w.lane.events:
		if e.kind == answered {
			o.settle(e.err)
		}
	case <-grace.C:
	}
}

func (o *owner) stage() Stage {
	switch {
	case o.state == starting && o.w.pid() == 0:
		return StageSpawn
	case o.call == nil:
		return StageIdle
	default:
		return o.call.stage
	}
}

// fail ends the worker with an EngineCrashed.
func (o *owner) fail(cause Cause, detail error) {
	w := o.w
	crash := &EngineCrashed{Stage: o.stage(), Cause: cause, Worker: w.spec.ID, Path: w.spec.Path, Err: detail}
	if o.call != nil {
		crash.Model, crash.Config = o.call.model.digest, o.call.model.config
	}
	if isEnd(detail) && (cause == CauseEOF || cause == CauseViolation) {
		o.awaitOwnEnd()
	}
	select {
	case <-w.proc.reaped: // it ended before anything was done about it
		if isEnd(detail) || cause == CauseExit {
			crash.Cause = CauseExit
			if w.proc.end.signal != "" {
				crash.Cause = CauseSignal
			}
		}
	default:
	}
	if err := o.bury(); err != nil {
		crash.Err = errors.Join(crash.Err, err)
	}
	crash.PID, crash.ExitCode, crash.Signal = w.pid(), w.proc.end.code, w.proc.end.signal
	crash.LogTail = w.log.tail()
	o.finish(crash, crash)
}

// awaitOwnEnd gives a worker that let go of its connection the time to die, but
// never more than the request in hand has.
func (o *owner) awaitOwnEnd() {
	ctx := context.Background()
	if o.call != nil {
		ctx = o.call.ctx
	}
	ctx, cancel := context.WithTimeout(ctx, exitGrace)
	defer cancel()
	select {
	case <-o.w.proc.reaped:
	case <-o.w.kill:
	case <-ctx.Done():
	}
}

// end ends the worker for a reason that is no crash: why is the worker's, reply
// what the request in hand is told.
func (o *owner) end(why, reply error) {
	_ = o.bury()
	o.finish(why, reply)
}

// bury kills what is left of the worker and lets go of all that belongs to it.
// When it returns nothing reads, writes or runs for this worker any more, unless
// its error says that the process would not die.
func (o *owner) bury() (err error) {
	w := o.w
	w.proc.kill()
	w.meeting.close()
	w.lane.close()
	if !await(w.proc.reaped, reapGrace) {
		err = fmt.Errorf("the process has not ended %v after SIGKILL: it hangs inside the operating system", reapGrace)
	}
	<-w.lane.ended
	w.log.finish()
	return err
}

// finish tells first everybody and then the request in hand, so that whoever gets
// its error finds the worker gone.
func (o *owner) finish(why, reply error) {
	o.to(gone)
	o.w.err = why
	close(o.w.done)
	if o.call != nil {
		o.call.reply <- reply
		o.call = nil
	}
}

// await waits for c to be closed, at most d.
func await(c <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-c:
		return true
	case <-t.C:
		return false
	}
}
