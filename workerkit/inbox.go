package workerkit

import (
	"errors"
	"io"
	"sync/atomic"

	"github.com/synapse-module/workers/protocol"
)

// queued is how many messages may wait behind the one in hand: the next request,
// sent by a module that read the answer before this worker's loop came round,
// and SHUTDOWN.
const queued = 2

// request is one message from the module with its raw frame.
type request struct {
	header  protocol.Header
	control []byte // the header's memory
	raw     []byte
}

// inbox reads the module's messages in a goroutine of its own, so that the end
// of the stream is seen while an engine call runs.
type inbox struct {
	frames   *protocol.FrameReader
	requests chan *request
	free     chan *request // buffers to reuse
	ended    chan error    // why reading ended; nil for the end of the stream
	inHand   atomic.Int32  // requests read and not yet answered
}

func newInbox(frames *protocol.FrameReader) *inbox {
	return &inbox{
		frames:   frames,
		requests: make(chan *request, 1+queued), // the one in hand may still lie there
		free:     make(chan *request, queued+2),
		ended:    make(chan error, 1),
	}
}

// run reads until the stream ends. orphaned is called, and does not return, when
// it ended with a request in hand or broke the protocol: nobody is left to
// answer.
func (in *inbox) run(orphaned func(error)) {
	err := in.read()
	var violation *protocol.ViolationError
	if in.inHand.Load() > 0 || errors.As(err, &violation) {
		orphaned(err)
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	in.ended <- err
}

func (in *inbox) read() error {
	for {
		r := in.buffer()
		var err error
		if r.control, err = in.frames.ReadControl(r.control); err != nil {
			return err
		}
		if r.header, err = protocol.Parse(r.control); err != nil {
			return err
		}
		r.raw = r.raw[:0]
		switch n := r.header.RawFrames; {
		case r.header.Known && n == 1:
			r.raw, err = in.frames.ReadRaw(r.raw)
		default:
			for ; n > 0 && err == nil; n-- {
				err = in.frames.DiscardRaw()
			}
		}
		if err != nil {
			return err
		}
		if r.header.Type != protocol.TypeShutdown {
			in.inHand.Add(1)
		}
		select {
		case in.requests <- r:
		default:
			return protocol.Violation("%.64s was sent while %d messages wait: one request at a time", string(r.header.Type), len(in.requests))
		}
	}
}

func (in *inbox) buffer() *request {
	select {
	case r := <-in.free:
		return r
	default:
		return new(request)
	}
}

// answering says that a request's answer is about to be written: from here on
// the end of the stream is no orphan's.
func (in *inbox) answering() { in.inHand.Add(-1) }

// done gives a request's buffers back, unless they are too large to keep.
func (in *inbox) done(r *request) {
	if cap(r.control) > protocol.MaxRetainedBuffer {
		r.control = nil
	}
	if cap(r.raw) > protocol.MaxRetainedBuffer {
		r.raw = nil
	}
	r.header = protocol.Header{}
	select {
	case in.free <- r:
	default:
	}
}
