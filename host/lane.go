package host

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/synapse-module/workers/protocol"
)

// lastWords bounds the wait for what a worker may still have to say: an answer
// that lies in the socket when the process has ended, or when it takes no more.
const lastWords = time.Second

// call is one request: what the owner of the worker needs to know of it, and how
// its answer is read.
type call struct {
	ctx   context.Context
	stage Stage
	id    protocol.ID
	model model // what it is for, where it is for one

	// answer reads the message that h begins, raw frames included. Its error is a
	// *protocol.Error for a refusal, anything else ends the worker.
	answer func(h protocol.Header, r *protocol.FrameReader) error

	sent  chan struct{} // closed when the caller writes no more
	reply chan error    // the owner's verdict; room for one, so it never waits
}

// event is what the owner hears of the lane.
type event struct {
	kind eventKind
	call *call
	err  error
}

type eventKind int

const (
	spawned  eventKind = iota // the process exists
	answered                  // call has its answer, or err is its refusal
	unsent                    // err kept call from being sent at all; the lane is in step
	broken                    // err ended the stream
	unable                    // err is a failure of the module itself
)

// lane is the connection to one worker. Its reader goroutine reads; the goroutine
// of the caller whose request is in hand writes, so that memory which the caller
// lends (token ids) is never touched after the call has returned.
type lane struct {
	events chan event
	quit   chan struct{} // closed by close
	ended  chan struct{} // closed when the reader is done

	mu     sync.Mutex
	conn   net.Conn
	closed bool

	pending atomic.Pointer[call] // the request whose answer is due
	w       *protocol.FrameWriter
	r       *protocol.FrameReader
	buf     []byte // control frames are read into it
}

func newLane() *lane {
	return &lane{events: make(chan event), quit: make(chan struct{}), ended: make(chan struct{})}
}

// attach takes a connection, unless the lane was closed meanwhile.
func (l *lane) attach(conn net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		conn.Close()
		return false
	}
	l.conn = conn
	l.r = protocol.NewFrameReader(conn, protocol.HandshakeMaxFrame)
	l.w = protocol.NewFrameWriter(conn, protocol.HandshakeMaxFrame)
	return true
}

// close ends every read and write under way.
func (l *lane) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	l.closed = true
	close(l.quit)
	if l.conn != nil {
		l.conn.Close()
	}
}

// tell gives the owner an event; false means that it listens no more.
func (l *lane) tell(e event) bool {
	select {
	case l.events <- e:
		return true
	case <-l.quit:
		return false
	}
}

// send writes c's request in the caller's goroutine.
func (l *lane) send(c *call, m protocol.Message, hasRaw bool, raw [][]byte) {
	defer close(c.sent)
	l.pending.Store(c)
	var err error
	if hasRaw {
		err = l.w.WriteRaw(m, raw...)
	} else {
		err = l.w.Write(m)
	}
	if err == nil {
		return
	}
	if isOurs(err) {
		l.pending.Store(nil)
		l.tell(event{kind: unsent, call: c, err: err})
		return
	}
	// The worker takes no more. Whether it is dying, and of what, is seen at the
	// reading end, which is given a moment for it.
	_ = l.conn.SetReadDeadline(time.Now().Add(lastWords))
}

// isOurs says that a request was refused by our own writer before a byte of it
// was sent: it is too large, or holds what JSON cannot.
func isOurs(err error) bool {
	var size *protocol.OversizeError
	var unsayable *protocol.EncodeError
	return errors.As(err, &size) || errors.As(err, &unsayable)
}

// read hands the owner one event for each answer, until the stream breaks.
func (l *lane) read() {
	for {
		c, err := l.next()
		var refusal *protocol.Error
		if err != nil && !errors.As(err, &refusal) {
			l.tell(event{kind: broken, call: c, err: err})
			return
		}
		// The lane is free when the caller has left it too. A worker that answers
		// what it has not read in full keeps it there until the deadline.
		select {
		case <-c.sent:
		case <-l.quit:
			return
		}
		if !l.tell(event{kind: answered, call: c, err: err}) {
			return
		}
	}
}

// next reads one whole answer. A *protocol.Error is the worker's refusal.
func (l *lane) next() (*call, error) {
	payload, err := l.r.ReadControl(l.buf)
	if cap(payload) <= protocol.MaxRetainedBuffer {
		l.buf = payload
	}
	if err != nil {
		return nil, err
	}
	h, err := protocol.Parse(payload)
	if err != nil {
		return nil, err
	}
	c := l.pending.Swap(nil)
	if c == nil || c.answer == nil {
		return nil, protocol.Violation("the worker sent %.32s though nothing was asked", h.Type)
	}
	if h.Type == protocol.TypeErr {
		return c, refusal(h, c)
	}
	if h.ReqID != c.id {
		return nil, protocol.Violation("the worker sent %.32s for request %s, asked was %s", h.Type, h.ReqID, c.id)
	}
	return c, violates(c.answer(h, l.r))
}

// refusal is the error of an ERR that answers c. Its req_id may be null, since a
// worker may not have been able to read it, but not another request's.
func refusal(h protocol.Header, c *call) error {
	if h.ReqID != c.id && h.ReqID != "" {
		return protocol.Violation("the worker refused request %s, asked was %s", h.ReqID, c.id)
	}
	return h.DecodeErr()
}
