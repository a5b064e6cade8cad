package host

import (
	"errors"
	"io"
	"net"

	"github.com/synapse-module/workers/protocol"
)

// connect waits for the process, lets it and nobody else in, and shakes hands.
// It runs in the lane's reader goroutine; whatever ends it early closes the
// rendezvous and the lane, which makes it return.
func (w *Worker) connect(start *call, nonce string) {
	defer close(w.lane.ended)
	select {
	case <-w.proc.started:
	case <-w.lane.quit:
		return
	}
	if err := w.proc.startErr; err != nil {
		w.lane.tell(event{kind: broken, err: err})
		return
	}
	if !w.lane.tell(event{kind: spawned}) {
		return
	}
	conn, err := w.meeting.accept(w.proc.pid)
	if err != nil {
		w.lane.tell(event{kind: unable, err: err})
		return
	}
	w.meeting.close()
	if !w.lane.attach(conn) {
		return
	}
	if err := w.shakeHands(nonce); err != nil {
		w.lane.tell(event{kind: broken, err: err})
		return
	}
	if w.lane.tell(event{kind: answered, call: start}) {
		w.lane.read()
	}
}

// shakeHands reads HELLO, judges it and accepts the worker. Whatever is not a
// sound HELLO of the process that was spawned is a violation.
func (w *Worker) shakeHands(nonce string) error {
	payload, err := w.lane.r.ReadControl(nil)
	if err != nil {
		return err
	}
	h, err := protocol.Parse(payload)
	if err != nil {
		return err
	}
	if h.Type != protocol.TypeHello {
		return protocol.Violation("the worker's first message is %.32s, due is HELLO", h.Type)
	}
	var hello protocol.Hello
	if err := h.Decode(&hello); err != nil {
		return violates(err)
	}
	if err := protocol.CheckHello(hello, nonce); err != nil {
		return err
	}
	if hello.PID != w.proc.pid {
		return protocol.Violation("HELLO has pid %d, the worker was started as %d: start the worker itself, without a wrapper that stays", hello.PID, w.proc.pid)
	}
	limit, err := protocol.NegotiateMaxFrame(hello.MaxFrame, w.spec.MaxFrame)
	if err != nil {
		return err
	}
	ack := protocol.HelloAck{V: protocol.Version, Accept: true, MaxFrame: limit}
	if err := w.lane.w.Write(ack); err != nil {
		return err
	}
	w.lane.r.SetLimit(limit)
	w.lane.w.SetLimit(limit)
	w.hello, w.maxFrame = hello, limit
	return nil
}

// isEnd says that err means the other end is closed, wherever in a message, and
// nothing worse: what the worker is dying of is then the better news.
func isEnd(err error) bool {
	var op *net.OpError
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &op)
}
