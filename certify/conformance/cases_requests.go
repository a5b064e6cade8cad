package conformance

import (
	"context"
	"fmt"
	"strings"

	"github.com/synapse-module/workers/protocol"
)

// someIDs are the payload of a raw frame of one id.
var someIDs = protocol.Bytes([]int32{1})

var requestCases = []Case{
	{"requests/req_id", "req_id is a number or a string of at most 128 bytes, echoed byte for byte", serving, false, func(_ context.Context, s *session) error {
		for _, id := range []string{
			"1", "0", "-7", "1.50", "1E+2", "18446744073709551616", `""`, `"a"`, `"\u0041\/\n"`, `"ünï"`, `"` + strings.Repeat("y", 128) + `"`,
		} {
			if err := s.say(`{"type":"PING","req_id":%s}`, id); err != nil {
				return err
			}
			if err := s.pong(id); err != nil {
				return err
			}
		}
		return nil
	}},
	{"requests/bad req_id", "another req_id is request_invalid, and ERR has req_id null", serving, false, func(_ context.Context, s *session) error {
		for _, id := range []string{"null", "true", "[1]", `{"a":1}`, `"` + strings.Repeat("y", 129) + `"`} {
			if err := s.say(`{"type":"PING","req_id":%s}`, id); err != nil {
				return err
			}
			if err := s.refused("null", protocol.CodeRequestInvalid); err != nil {
				return fmt.Errorf("req_id %.40s: %w", id, err)
			}
		}
		if err := s.say(`{"type":"PING"}`); err != nil {
			return err
		}
		return s.refused("null", protocol.CodeRequestInvalid)
	}},
	{"requests/case", "the names of members are case-sensitive", serving, false, func(_ context.Context, s *session) error {
		if err := s.say(`{"type":"PING","REQ_ID":1}`); err != nil {
			return err
		}
		return s.refused("null", protocol.CodeRequestInvalid)
	}},
	{"requests/doubled member", "a doubled member is request_invalid", serving, false, func(_ context.Context, s *session) error {
		if err := s.say(`{"type":"UNLOAD","req_id":5,"model_ref":"a","model_ref":"b"}`); err != nil {
			return err
		}
		return s.refused("5", protocol.CodeRequestInvalid)
	}},
	{"requests/grease", "an unknown member is ignored", serving, false, func(_ context.Context, s *session) error {
		id := s.id()
		if err := s.say(`{"zz":{"req_id":9,"type":"SHUTDOWN"},"type":"PING","raw_frames":3,"req_id":%s,"Type":[1.5e300,null]}`, id); err != nil {
			return err
		}
		return s.pong(id)
	}},
	{"requests/pong", "PONG has rss_mb over 0 and models_loaded", serving, false, func(_ context.Context, s *session) error {
		id := s.id()
		if err := s.say(`{"type":"PING","req_id":%s}`, id); err != nil {
			return err
		}
		var p protocol.Pong
		if err := s.hear(&p); err != nil {
			return err
		}
		if p.RSSMB <= 0 || p.ModelsLoaded < 0 {
			return fmt.Errorf("PONG has rss_mb %d and models_loaded %d", p.RSSMB, p.ModelsLoaded)
		}
		if share := p.PlacementShare; share != nil && !(*share >= 0 && *share <= 1) {
			return fmt.Errorf("PONG has placement_share %v, legal is 0 to 1 or absent", *share)
		}
		return nil
	}},
	{"requests/unknown type", "a message of unknown type is unknown_type", serving, false, func(_ context.Context, s *session) error {
		id := s.id()
		if err := s.say(`{"type":"ZZ_GREASE","req_id":%s}`, id); err != nil {
			return err
		}
		return s.refused(id, protocol.CodeUnknownType)
	}},
	{"requests/type is case-sensitive", "ping is not PING", serving, false, func(_ context.Context, s *session) error {
		id := s.id()
		if err := s.say(`{"type":"ping","req_id":%s}`, id); err != nil {
			return err
		}
		return s.refused(id, protocol.CodeUnknownType)
	}},
	{"requests/raw frames of an unknown type", "as many raw frames as raw_frames says are read before ERR unknown_type", serving, false, func(_ context.Context, s *session) error {
		id := s.id()
		b := frame(fmt.Appendf(nil, `{"type":"ZZ_GREASE","req_id":%s,"raw_frames":3}`, id))
		b = append(b, frame([]byte(`{"type":"SHUTDOWN"}`))...)
		b = append(b, frame(nil)...)
		b = append(b, frame([]byte{1, 2, 3})...)
		if err := s.send(b); err != nil {
			return err
		}
		return s.refused(id, protocol.CodeUnknownType)
	}},
	{"requests/no such model", "a model_ref that is not loaded is model_not_found, its raw frame read", serving, false, func(_ context.Context, s *session) error {
		for _, q := range []string{
			`{"type":"EMBED_BATCH","req_id":%s,"model_ref":"none","pooling":"mean","normalize":true,"items":[{"n_tokens":1}]}`,
			`{"type":"RERANK","req_id":%s,"model_ref":"none","query_n_tokens":1,"candidates":[]}`,
			`{"type":"GENERATE","req_id":%s,"model_ref":"none","max_tokens":1}`,
		} {
			id := s.id()
			if err := s.sayRaw(someIDs, q, id); err != nil {
				return err
			}
			if err := s.refused(id, protocol.CodeModelNotFound); err != nil {
				return err
			}
		}
		id := s.id()
		if err := s.say(`{"type":"UNLOAD","req_id":%s,"model_ref":"none"}`, id); err != nil {
			return err
		}
		return s.refused(id, protocol.CodeModelNotFound)
	}},
	{"requests/malformed members", "a member that is missing or of the wrong kind is request_invalid, its raw frame read", serving, false, func(_ context.Context, s *session) error {
		for _, q := range []string{
			`{"type":"EMBED_BATCH","req_id":%s,"normalize":true,"items":[{"n_tokens":1}]}`,
			`{"type":"EMBED_BATCH","req_id":%s,"model_ref":"none","items":[{"n_tokens":1}]}`,
			`{"type":"EMBED_BATCH","req_id":%s,"model_ref":"none","normalize":"yes","items":[{"n_tokens":1}]}`,
			`{"type":"EMBED_BATCH","req_id":%s,"model_ref":"none","normalize":true,"items":{"n_tokens":1}}`,
			`{"type":"EMBED_BATCH","req_id":%s,"model_ref":"none","normalize":true,"items":[{"n_tokens":1.5}]}`,
			`{"type":"EMBED_BATCH","req_id":%s,"model_ref":7,"normalize":true,"items":[{"n_tokens":1}]}`,
			`{"type":"RERANK","req_id":%s,"model_ref":"none","candidates":[]}`,
			`{"type":"GENERATE","req_id":%s,"model_ref":"none","max_tokens":"1"}`,
		} {
			id := s.id()
			if err := s.sayRaw(someIDs, q, id); err != nil {
				return err
			}
			if err := s.refused(id, protocol.CodeRequestInvalid); err != nil {
				return fmt.Errorf("%s: %w", q, err)
			}
		}
		return nil
	}},
}

// pong wants PONG with this request id.
func (s *session) pong(id string) error {
	var p protocol.Pong
	if err := s.hear(&p); err != nil {
		return err
	}
	if p.ReqID.String() != id {
		return fmt.Errorf("PONG echoes req_id %s, sent was %s", p.ReqID, id)
	}
	return nil
}
