package conformance

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/synapse-module/workers/host"
	"github.com/synapse-module/workers/protocol"
)

// maxFrame is what the sessions negotiate: the least that is legal, so that the
// limits can be reached with little.
const maxFrame = protocol.MinMaxFrame

// session is a conversation with one worker.
type session struct {
	*peer
	o      Options
	nextID uint64
	model  *model // nil until load
}

// model is what a worker says that it has loaded.
type model struct {
	ref  string
	dims int
	d    *protocol.Description // nil where the worker does not know DESCRIBE
}

// start launches a worker that has not said HELLO yet.
func start(ctx context.Context, o Options) (*session, error) {
	p, err := connect(ctx, o)
	if err != nil {
		return nil, err
	}
	return &session{peer: p, o: o}, nil
}

// handshake reads HELLO and accepts the worker.
func (s *session) handshake() error {
	var h protocol.Hello
	if err := s.hear(&h); err != nil {
		return err
	}
	if err := protocol.CheckHello(h, s.nonce); err != nil {
		return err
	}
	if err := s.say(`{"type":"HELLO_ACK","v":1,"accept":true,"max_frame":%d}`, maxFrame); err != nil {
		return err
	}
	s.in.SetLimit(maxFrame)
	return nil
}

// id makes a request id that was not used before in this session.
func (s *session) id() string {
	s.nextID++
	return fmt.Sprintf(`"q%d"`, s.nextID)
}

// frame puts the length before a payload.
func frame(payload []byte) []byte {
	return append(binary.LittleEndian.AppendUint32(nil, uint32(len(payload))), payload...)
}

// send writes bytes as they are.
func (s *session) send(b []byte) error {
	if err := s.bound(s.patience); err != nil {
		return err
	}
	if _, err := s.conn.Write(b); err != nil {
		return fmt.Errorf("the worker does not take what is sent: %w", err)
	}
	return nil
}

// say sends a control frame of this very JSON.
func (s *session) say(format string, args ...any) error {
	return s.send(frame(fmt.Appendf(nil, format, args...)))
}

// sayRaw sends a control frame and a raw frame after it.
func (s *session) sayRaw(raw []byte, format string, args ...any) error {
	return s.send(append(frame(fmt.Appendf(nil, format, args...)), frame(raw)...))
}

// hear reads the answer that is due, a message of m's type, within the limit of
// what takes no time.
func (s *session) hear(m protocol.Message) error { return s.hearWithin(s.patience, m) }

func (s *session) hearWithin(d time.Duration, m protocol.Message) error {
	header, payload, err := s.read(d)
	if err != nil {
		return fmt.Errorf("%s is due: %w", m.MessageType(), err)
	}
	if header.Type != m.MessageType() {
		return fmt.Errorf("%s is due, the worker said %s", m.MessageType(), show(payload))
	}
	if err := header.Decode(m); err != nil {
		return fmt.Errorf("%s is malformed: %w", m.MessageType(), err)
	}
	return nil
}

func (s *session) read(d time.Duration) (protocol.Header, []byte, error) {
	if err := s.bound(d); err != nil {
		return protocol.Header{}, nil, err
	}
	payload, err := s.in.ReadControl(nil)
	if err != nil {
		return protocol.Header{}, nil, err
	}
	header, err := protocol.Parse(payload)
	return header, payload, err
}

// refused wants an ERR with this request id and one of the codes.
func (s *session) refused(id string, codes ...protocol.Code) error {
	_, err := s.refusal(id, codes...)
	return err
}

// refusal is refused, and returns the message.
func (s *session) refusal(id string, codes ...protocol.Code) (string, error) {
	var e protocol.Err
	if err := s.hearWithin(host.DefaultEmbedDeadline, &e); err != nil {
		return "", err
	}
	if e.ReqID.String() != id {
		return "", fmt.Errorf("ERR echoes req_id %s, sent was %s", e.ReqID, id)
	}
	if !slices.Contains(codes, e.Code) {
		return "", fmt.Errorf("ERR has code %q (%s), due is %q", e.Code, e.Msg, codes)
	}
	if e.Msg == "" {
		return "", errors.New("ERR has an empty msg: it must say who is at fault and what to do")
	}
	return e.Msg, nil
}

// inStep wants a PING answered, which shows that the stream is where it must be.
func (s *session) inStep() error {
	id := s.id()
	if err := s.say(`{"type":"PING","req_id":%s}`, id); err != nil {
		return err
	}
	var p protocol.Pong
	if err := s.hear(&p); err != nil {
		return fmt.Errorf("the stream is out of step afterwards: %w", err)
	}
	if p.ReqID.String() != id {
		return fmt.Errorf("the stream is out of step afterwards: PONG echoes req_id %s, sent was %s", p.ReqID, id)
	}
	return nil
}

// violation wants the worker to end the connection without an answer, to exit
// 76, and to have said why.
func (s *session) violation() error {
	if err := s.closed(); err != nil {
		return err
	}
	if err := s.exits(protocol.ExitViolation); err != nil {
		return err
	}
	if s.stderr.String() == "" {
		return errors.New("the worker did not say why on stderr")
	}
	return nil
}

// show is what an error repeats of a worker's frame.
func show(payload []byte) string {
	const most = 200
	if len(payload) > most {
		return fmt.Sprintf("%q and %d bytes more", payload[:most], len(payload)-most)
	}
	return fmt.Sprintf("%q", payload)
}
