package conformance

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/synapse-module/workers/protocol"
)

var handshakeCases = []Case{
	{"handshake/hello", "the first frame is HELLO of version 1 with the spawn nonce, the process's id and a legal max_frame", connected, true, func(_ context.Context, s *session) error {
		var h protocol.Hello
		if err := s.hear(&h); err != nil {
			return err
		}
		if err := protocol.CheckHello(h, s.nonce); err != nil {
			return err
		}
		if pid := s.cmd.Process.Pid; h.PID != pid {
			return fmt.Errorf("HELLO has pid %d, the process has %d", h.PID, pid)
		}
		if h.Engine.Name == "" || h.Engine.Version == "" {
			return fmt.Errorf("HELLO names the engine %q, version %q", h.Engine.Name, h.Engine.Version)
		}
		return nil
	}},
	{"handshake/refused", "HELLO_ACK with accept false: the worker exits 77", connected, true, func(_ context.Context, s *session) error {
		return s.ack(protocol.ExitRefused, `{"type":"HELLO_ACK","v":1,"accept":false,"max_frame":65536}`)
	}},
	{"handshake/closed", "a module that closes after HELLO has refused: the worker exits 77", connected, true, func(_ context.Context, s *session) error {
		var h protocol.Hello
		if err := s.hear(&h); err != nil {
			return err
		}
		if err := s.conn.Close(); err != nil {
			return err
		}
		return s.exits(protocol.ExitRefused)
	}},
	{"handshake/other version", "HELLO_ACK of another version: the worker exits 76 or 77", connected, true, func(_ context.Context, s *session) error {
		var h protocol.Hello
		if err := s.hear(&h); err != nil {
			return err
		}
		if err := s.say(`{"type":"HELLO_ACK","v":2,"accept":true,"max_frame":65536}`); err != nil {
			return err
		}
		if err := s.closed(); err != nil {
			return err
		}
		return s.exits(protocol.ExitViolation, protocol.ExitRefused)
	}},
	{"handshake/early request", "anything but HELLO_ACK after HELLO is a violation: exit 76", connected, true, func(_ context.Context, s *session) error {
		return s.ack(protocol.ExitViolation, `{"type":"PING","req_id":1}`)
	}},
	{"handshake/no JSON", "a HELLO_ACK that is not JSON is a violation: exit 76", connected, true, func(_ context.Context, s *session) error {
		return s.ack(protocol.ExitViolation, `HELLO_ACK`)
	}},
	{"handshake/max_frame too large", "a max_frame over the one offered is a violation: exit 76", connected, true, func(_ context.Context, s *session) error {
		return s.ack(protocol.ExitViolation, `{"type":"HELLO_ACK","v":1,"accept":true,"max_frame":1073741825}`)
	}},
	{"handshake/max_frame too small", "a max_frame under 64 KiB is a violation: exit 76", connected, true, func(_ context.Context, s *session) error {
		return s.ack(protocol.ExitViolation, `{"type":"HELLO_ACK","v":1,"accept":true,"max_frame":65535}`)
	}},
	{"handshake/frame too large", "until HELLO_ACK a frame over 64 KiB is a violation: exit 76", connected, true, func(_ context.Context, s *session) error {
		var h protocol.Hello
		if err := s.hear(&h); err != nil {
			return err
		}
		if err := s.send(binary.LittleEndian.AppendUint32(nil, protocol.HandshakeMaxFrame+1)); err != nil {
			return err
		}
		return s.violation()
	}},
	{"handshake/grease", "unknown members of HELLO_ACK are ignored", connected, true, func(_ context.Context, s *session) error {
		var h protocol.Hello
		if err := s.hear(&h); err != nil {
			return err
		}
		if err := s.say(`{"zz":[{"type":"PING"}],"type":"HELLO_ACK","v":1,"Accept":false,"accept":true,"max_frame":65536,"":null}`); err != nil {
			return err
		}
		return s.inStep()
	}},
}

// ack answers HELLO with this JSON, which the worker must not accept.
func (s *session) ack(status int, answer string) error {
	var h protocol.Hello
	if err := s.hear(&h); err != nil {
		return err
	}
	if err := s.say("%s", answer); err != nil {
		return err
	}
	if err := s.closed(); err != nil {
		return err
	}
	return s.exits(status)
}
