package host

import (
	"context"
	"os/exec"
	"sync"
	"sync/atomic"

	"github.com/synapse-module/workers/protocol"
)

// Worker is one worker process. Its methods may be called from any goroutine;
// requests wait for the worker's one lane in the order in which they came.
type Worker struct {
	spec     Spec
	hello    protocol.Hello
	maxFrame uint32

	proc    *process
	log     *workerLog
	meeting *rendezvous
	lane    *lane
	models  registry
	lastID  atomic.Uint64

	admit    chan *call
	kill     chan struct{}
	killOnce sync.Once
	done     chan struct{}
	err      error // why it is gone; set before done is closed
}

// Start starts a worker and returns when it has said HELLO. The context bounds
// the start alone, not the worker's life; without a deadline of its own
// Deadlines.Start applies.
//
// Errors: a plain error that names what to mend (a [*protocol.SocketPathError] inside
// it where RuntimeDir is too long), before anything was started; an [*EngineCrashed] of stage spawn (the executable is
// missing or is none) or hello (it never connects, exits before its HELLO, says
// something else first, has the wrong nonce, version or pid); a
// [*RequestCanceled] where ctx was canceled. No process is left behind in any
// case.
func Start(ctx context.Context, s Spec) (*Worker, error) {
	s, err := s.withDefaults()
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, &RequestCanceled{Stage: StageSpawn, Worker: s.ID, Err: err}
	}
	meeting, err := listen(s.RuntimeDir)
	if err != nil {
		return nil, err
	}
	log, output, err := newWorkerLog()
	if err != nil {
		meeting.close()
		return nil, err
	}
	nonce := randomHex(protocol.NonceBytes)
	cmd := exec.Command(s.Path, s.arguments(meeting.address, nonce)...)
	cmd.Dir = neutralDir()
	cmd.Env = append(append([]string{}, s.Env...), envWorkerID+"="+s.ID)

	w := &Worker{
		spec:    s,
		log:     log,
		meeting: meeting,
		lane:    newLane(),
		admit:   make(chan *call),
		kill:    make(chan struct{}),
		done:    make(chan struct{}),
	}
	w.proc = spawn(cmd, output)
	go log.drain(newLineFeed(s.Log, func() LogLine {
		<-w.proc.started // a worker may write before the call that started it has come back
		return LogLine{Worker: s.ID, PID: w.proc.pid}
	}))
	start := &call{ctx: ctx, stage: StageHello, reply: make(chan error, 1)}
	go w.connect(start, nonce)
	go (&owner{w: w}).run(start)
	if err := <-start.reply; err != nil {
		return nil, err
	}
	return w, nil
}

// pid is the process's id, 0 until it is started.
func (w *Worker) pid() int {
	select {
	case <-w.proc.started:
		return w.proc.pid
	default:
		return 0
	}
}

// Hello is what the worker said of itself.
func (w *Worker) Hello() protocol.Hello { return w.hello }

// PID is the worker's process id. It may be another process's once Done is
// closed.
func (w *Worker) PID() int { return w.proc.pid }

// ID is the worker's name in logs and errors.
func (w *Worker) ID() string { return w.spec.ID }

// MaxFrame is the largest frame in force, in bytes: min(worker's, module's).
func (w *Worker) MaxFrame() uint32 { return w.maxFrame }

// LogTail is the end of what the worker wrote to stdout and stderr so far, at most
// [LogTailBytes], safe to print.
func (w *Worker) LogTail() string { return w.log.tail() }

// Done is closed when the worker is gone: reaped, its log read to the end.
func (w *Worker) Done() <-chan struct{} { return w.done }

// Err says why the worker is gone: nil while it is not and after a clean
// [Worker.Close], else an [*EngineCrashed], a [*RequestCanceled] of the request
// that its caller gave up, or [ErrKilled].
func (w *Worker) Err() error {
	select {
	case <-w.done:
		return w.err
	default:
		return nil
	}
}

// Kill ends the worker at once, with SIGKILL to its process group. A request in
// hand fails with a [*WorkerGone]. It does not wait; Done says when the worker is
// gone.
func (w *Worker) Kill() { w.killOnce.Do(func() { close(w.kill) }) }

// gone is the error of a request that comes too late.
func (w *Worker) gone() error {
	why := w.err
	if why == nil {
		why = errClosed
	}
	return &WorkerGone{Worker: w.spec.ID, Why: why}
}
