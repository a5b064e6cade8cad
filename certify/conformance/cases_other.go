package conformance

import (
	"context"
	"fmt"

	"github.com/synapse-module/workers/host"
	"github.com/synapse-module/workers/protocol"
)

var otherCases = []Case{
	{"rerank/scores", "SCORES has one f32 a candidate; without a ranking head RERANK is unsupported", loaded, false, func(_ context.Context, s *session) error {
		return s.optional("rerank", func(d *protocol.Description) bool { return d.Rerank }, func() error {
			id := s.id()
			raw := protocol.Bytes([]int32{0, 0, 0})
			if err := s.sayRaw(raw, `{"type":"RERANK","req_id":%s,"model_ref":%q,"query_n_tokens":1,"candidates":[{"n_tokens":1},{"n_tokens":1}]}`, id, s.model.ref); err != nil {
				return err
			}
			var v protocol.Scores
			if err := s.hearWithin(host.DefaultRerankDeadline, &v); err != nil {
				return err
			}
			if v.ReqID.String() != id || v.N != 2 {
				return fmt.Errorf("SCORES has req_id %s and n %d, due are %s and 2", v.ReqID, v.N, id)
			}
			_, err := s.in.ReadRawExact(nil, uint64(len(raw)/3*v.N))
			return err
		}, `{"type":"RERANK","req_id":%s,"model_ref":%q,"query_n_tokens":1,"candidates":[]}`)
	}},
	{"generate/text", "TEXT counts its tokens and says why it ended; a model that does not generate is unsupported", loaded, false, func(_ context.Context, s *session) error {
		return s.optional("generate", func(d *protocol.Description) bool { return d.Generate }, func() error {
			id := s.id()
			if err := s.sayRaw(someIDs, `{"type":"GENERATE","req_id":%s,"model_ref":%q,"max_tokens":2}`, id, s.model.ref); err != nil {
				return err
			}
			var t protocol.Text
			if err := s.hearWithin(host.DefaultGenerateDeadline, &t); err != nil {
				return err
			}
			known := t.FinishReason == protocol.FinishStop || t.FinishReason == protocol.FinishLength
			if t.ReqID.String() != id || t.NPrompt != 1 || t.NGen < 0 || t.NGen > 2 || !known {
				return fmt.Errorf("TEXT has req_id %s, n_prompt %d, n_gen %d, finish_reason %q for one token of prompt and at most two", t.ReqID, t.NPrompt, t.NGen, t.FinishReason)
			}
			return nil
		}, `{"type":"GENERATE","req_id":%s,"model_ref":%q,"max_tokens":2}`)
	}},
	{"generate/grammar", "a grammar that does not parse is request_invalid; a model that does not enforce one is unsupported", loaded, false, func(_ context.Context, s *session) error {
		if s.model.d == nil || !s.model.d.Generate {
			return skip("the model does not generate")
		}
		id := s.id()
		if err := s.sayRaw(someIDs, `{"type":"GENERATE","req_id":%s,"model_ref":%q,"max_tokens":2,"grammar":"root ::= ("}`, id, s.model.ref); err != nil {
			return err
		}
		if s.model.d.Grammar {
			return s.refused(id, protocol.CodeRequestInvalid)
		}
		return s.refused(id, protocol.CodeUnsupported)
	}},
}

// optional runs can where the model has the capability, and else wants the
// request, with its raw frame, to be unsupported.
func (s *session) optional(what string, has func(*protocol.Description) bool, can func() error, request string) error {
	if s.model.d == nil {
		return skip("the worker does not know DESCRIBE, so whether it can " + what + " is not known")
	}
	if has(s.model.d) {
		return can()
	}
	id := s.id()
	if err := s.sayRaw(someIDs, request, id, s.model.ref); err != nil {
		return err
	}
	return s.refused(id, protocol.CodeUnsupported)
}

var endCases = []Case{
	{"end/module gone in a request", "a worker whose module is gone while a request is in hand ends", loaded, true, func(_ context.Context, s *session) error {
		d, err := s.embedding()
		if err != nil {
			return err
		}
		row := filled(min(d.MaxTokens, maxFrame/8), 0)
		if err := s.sayEmbed(s.id(), d.Pooling[0], true, []int{len(row)}, row); err != nil {
			return err
		}
		if err := s.conn.Close(); err != nil {
			return err
		}
		_, err = s.status()
		return err
	}},
	{"end/module gone while idle", "the end of the stream between frames is the end: exit 0", serving, true, func(_ context.Context, s *session) error {
		if err := s.inStep(); err != nil {
			return err
		}
		if err := s.conn.Close(); err != nil {
			return err
		}
		return s.exits(protocol.ExitOK)
	}},
	{"end/shutdown", "SHUTDOWN has no answer: the worker closes and exits 0", serving, true, func(_ context.Context, s *session) error {
		if err := s.inStep(); err != nil {
			return err
		}
		return s.shutdown()
	}},
	{"end/shutdown with a model", "SHUTDOWN frees the models: exit 0", loaded, true, func(_ context.Context, s *session) error {
		return s.shutdown()
	}},
}

func (s *session) shutdown() error {
	if err := s.say(`{"type":"SHUTDOWN"}`); err != nil {
		return err
	}
	if err := s.closed(); err != nil {
		return err
	}
	return s.exits(protocol.ExitOK)
}
