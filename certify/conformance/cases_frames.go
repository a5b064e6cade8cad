package conformance

import (
	"context"
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/synapse-module/workers/protocol"
)

var frameCases = []Case{
	{"frames/in pieces", "a frame may arrive a byte at a time", serving, false, func(_ context.Context, s *session) error {
		id := s.id()
		for _, b := range frame(fmt.Appendf(nil, `{"type":"PING","req_id":%s}`, id)) {
			if err := s.send([]byte{b}); err != nil {
				return err
			}
		}
		return s.pong(id)
	}},
	{"frames/as large as allowed", "a frame of exactly max_frame bytes passes", serving, false, func(_ context.Context, s *session) error {
		id := s.id()
		head, end := fmt.Sprintf(`{"type":"PING","req_id":%s,"pad":"`, id), `"}`
		if err := s.say("%s%s%s", head, strings.Repeat("x", maxFrame-len(head)-len(end)), end); err != nil {
			return err
		}
		return s.pong(id)
	}},
	{"frames/one byte too large", "a frame of max_frame + 1 bytes is a violation: exit 76", serving, true, func(_ context.Context, s *session) error {
		return s.breaks(binary.LittleEndian.AppendUint32(nil, maxFrame+1))
	}},
	{"frames/length 2^32-1", "a hostile length is a violation, and costs nothing: exit 76", serving, true, func(_ context.Context, s *session) error {
		return s.breaks([]byte{0xFF, 0xFF, 0xFF, 0xFF})
	}},
	{"frames/raw frame too large", "a raw frame over max_frame is a violation too: exit 76", serving, true, func(_ context.Context, s *session) error {
		header := frame([]byte(`{"type":"EMBED_BATCH","req_id":1,"model_ref":"none","normalize":true,"items":[]}`))
		return s.breaks(binary.LittleEndian.AppendUint32(header, maxFrame+1))
	}},
	{"frames/empty control frame", "a control frame of length 0 is a violation: exit 76", serving, true, func(_ context.Context, s *session) error {
		return s.breaks(frame(nil))
	}},
	{"frames/no JSON", "a control frame that is not JSON is a violation: exit 76", serving, true, func(_ context.Context, s *session) error {
		return s.breaks(frame([]byte("PING")))
	}},
	{"frames/JSON array", "a control frame that is no JSON object is a violation: exit 76", serving, true, func(_ context.Context, s *session) error {
		return s.breaks(frame([]byte(`[{"type":"PING","req_id":1}]`)))
	}},
	{"frames/two objects", "bytes after the JSON object are a violation: exit 76", serving, true, func(_ context.Context, s *session) error {
		return s.breaks(frame([]byte(`{"type":"PING","req_id":1}{}`)))
	}},
	{"frames/no UTF-8", "a control frame that is not UTF-8 is a violation: exit 76", serving, true, func(_ context.Context, s *session) error {
		return s.breaks(frame([]byte("{\"type\":\"PING\",\"req_id\":\"\xff\"}")))
	}},
	{"frames/no type", "a control frame without a type is a violation: exit 76", serving, true, func(_ context.Context, s *session) error {
		return s.breaks(frame([]byte(`{"req_id":1}`)))
	}},
	{"frames/type is a number", "a type that is no string is a violation: exit 76", serving, true, func(_ context.Context, s *session) error {
		return s.breaks(frame([]byte(`{"type":7,"req_id":1}`)))
	}},
	{"frames/two types", "a type that stands there twice is a violation: exit 76", serving, true, func(_ context.Context, s *session) error {
		return s.breaks(frame([]byte(`{"type":"PING","type":"PING","req_id":1}`)))
	}},
	{"frames/raw_frames too many", "an unknown type with raw_frames over 16 is a violation: exit 76", serving, true, func(_ context.Context, s *session) error {
		return s.breaks(frame([]byte(`{"type":"ZZ_GREASE","req_id":1,"raw_frames":17}`)))
	}},
	{"frames/half a frame", "a module that closes inside a frame broke the protocol: exit 76", serving, true, func(_ context.Context, s *session) error {
		if err := s.send(append(binary.LittleEndian.AppendUint32(nil, 100), `{"type"`...)); err != nil {
			return err
		}
		if err := s.conn.Close(); err != nil {
			return err
		}
		return s.exits(protocol.ExitViolation)
	}},
}

// breaks sends what is a violation, after the stream was seen to be in step.
func (s *session) breaks(b []byte) error {
	if err := s.inStep(); err != nil {
		return err
	}
	if err := s.send(b); err != nil {
		return err
	}
	return s.violation()
}
