package conformance

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/synapse-module/workers/protocol"
)

// sameVector is how far two vectors of one row may be apart in company and alone:
// certify's suites hold the tight tolerance, here it is about their order.
const sameVector = 1e-3

// embedCase is a case about a model that embeds.
func embedCase(name, rule string, run func(*session, *protocol.Description) error) Case {
	return Case{name, rule, loaded, false, func(_ context.Context, s *session) error {
		d, err := s.embedding()
		if err != nil {
			return err
		}
		return run(s, d)
	}}
}

var embedCases = []Case{
	embedCase("embed/vectors", "VECTORS has one row of dims f32 an item, in the order of the items", func(s *session, d *protocol.Description) error {
		one, other := filled(1, 0), filled(min(3, d.MaxTokens), int32(d.VocabSize-1))
		alone, err := s.embed(true, one)
		if err != nil {
			return err
		}
		both, err := s.embed(true, one, other)
		if err != nil {
			return err
		}
		swapped, err := s.embed(true, other, one)
		if err != nil {
			return err
		}
		if apart(alone[0], both[0]) > sameVector || apart(alone[0], swapped[1]) > sameVector || apart(both[1], swapped[0]) > sameVector {
			return errors.New("the vectors do not follow the order of the items")
		}
		if apart(alone[0], both[1]) <= sameVector {
			return errors.New("two different rows have one vector")
		}
		return nil
	}),
	embedCase("embed/normalize", "normalize true gives vectors of length 1", func(s *session, _ *protocol.Description) error {
		v, err := s.embed(true, filled(1, 0))
		if err != nil {
			return err
		}
		if l := length(v[0]); math.Abs(l-1) > sameVector {
			return fmt.Errorf("the vector's length is %v", l)
		}
		_, err = s.embed(false, filled(1, 0))
		return err
	}),
	embedCase("embed/no items", "no items and a raw frame of length 0 give n 0 and a raw frame of length 0", func(s *session, _ *protocol.Description) error {
		_, err := s.embed(true)
		return err
	}),
	embedCase("embed/labels", "an item's id is the module's own label", func(s *session, d *protocol.Description) error {
		id := s.id()
		if err := s.sayRaw(someIDs[:0], `{"type":"EMBED_BATCH","req_id":%s,"model_ref":%q,"pooling":%q,"normalize":true,"items":[{"id":"label-7","n_tokens":0}]}`, id, s.model.ref, d.Pooling[0]); err != nil {
			return err
		}
		return s.refused(id, protocol.CodeRequestInvalid)
	}),
	embedCase("embed/raw frame too short", "a raw frame with fewer ids than the header says is request_invalid", func(s *session, d *protocol.Description) error {
		return s.embedRefused(d.Pooling[0], []int{1, 1}, []int32{0}, protocol.CodeRequestInvalid)
	}),
	embedCase("embed/raw frame too long", "a raw frame with more ids than the header says is request_invalid", func(s *session, d *protocol.Description) error {
		return s.embedRefused(d.Pooling[0], []int{1}, []int32{0, 0}, protocol.CodeRequestInvalid)
	}),
	embedCase("embed/raw frame of no whole ids", "a raw frame that is no whole number of ids is request_invalid", func(s *session, d *protocol.Description) error {
		id := s.id()
		if err := s.sayRaw([]byte{0, 0, 0, 0, 0}, `{"type":"EMBED_BATCH","req_id":%s,"model_ref":%q,"pooling":%q,"normalize":true,"items":[{"n_tokens":1}]}`, id, s.model.ref, d.Pooling[0]); err != nil {
			return err
		}
		return s.refused(id, protocol.CodeRequestInvalid)
	}),
	embedCase("embed/token ids", "an id below 0 or not below vocab_size is request_invalid; the last of the vocabulary passes", func(s *session, d *protocol.Description) error {
		for _, bad := range []int64{-1, math.MinInt32, int64(d.VocabSize), math.MaxInt32} {
			if bad > math.MaxInt32 || bad == math.MaxInt32 && d.VocabSize > math.MaxInt32 {
				continue // every i32 from 0 is in the vocabulary
			}
			if err := s.embedRefused(d.Pooling[0], []int{1}, []int32{int32(bad)}, protocol.CodeRequestInvalid); err != nil {
				return fmt.Errorf("id %d: %w", bad, err)
			}
		}
		_, err := s.embed(true, filled(1, int32(d.VocabSize-1)))
		return err
	}),
	embedCase("embed/row lengths", "a row of no tokens, or of a negative or absurd number, is request_invalid", func(s *session, d *protocol.Description) error {
		for _, c := range []struct {
			lengths []int
			ids     []int32
		}{
			{[]int{0}, nil},
			{[]int{1, 0}, []int32{0}},
			{[]int{2, -1}, []int32{0}},
			{[]int{math.MinInt64}, []int32{0}},
			{[]int{math.MaxInt64}, []int32{0}},
			{[]int{math.MaxInt32 + 1}, []int32{0}},
			{[]int{math.MaxInt64, math.MaxInt64, 3}, []int32{0}}, // in 64 bits the sum is 1
		} {
			if err := s.embedRefused(d.Pooling[0], c.lengths, c.ids, protocol.CodeRequestInvalid); err != nil {
				return fmt.Errorf("n_tokens %v: %w", c.lengths, err)
			}
		}
		return nil
	}),
	embedCase("embed/max_tokens", "a row of max_tokens passes, one token more is request_invalid", func(s *session, d *protocol.Description) error {
		const idBytes = 4
		if most := maxFrame/idBytes - 1; d.MaxTokens > most {
			return skip(fmt.Sprintf("max_tokens is %d, a frame of this session takes %d", d.MaxTokens, most))
		}
		if _, err := s.embed(true, filled(d.MaxTokens, 0)); err != nil {
			return err
		}
		return s.embedRefused(d.Pooling[0], []int{d.MaxTokens + 1}, filled(d.MaxTokens+1, 0), protocol.CodeRequestInvalid)
	}),
	embedCase("embed/pooling", "a pooling that the protocol does not know is request_invalid or unsupported, one that the model has not is unsupported", func(s *session, d *protocol.Description) error {
		if err := s.embedRefused("zz-grease", []int{1}, []int32{0}, protocol.CodeRequestInvalid, protocol.CodeUnsupported); err != nil {
			return err
		}
		for _, p := range []string{"mean", "cls", "last"} {
			if slices.Contains(d.Pooling, p) {
				continue
			}
			if err := s.embedRefused(p, []int{1}, []int32{0}, protocol.CodeUnsupported); err != nil {
				return fmt.Errorf("pooling %s: %w", p, err)
			}
		}
		return nil
	}),
	embedCase("embed/answer too large", "an answer over max_frame is response_too_large, the largest that fits passes", func(s *session, d *protocol.Description) error {
		const f32, itemBytes = 4, len(`{"n_tokens":1},`)
		fits := maxFrame / (f32 * d.Dims)
		if over := fits + 1; over*itemBytes+1024 > maxFrame {
			return skip(fmt.Sprintf("a request for more than a frame of vectors of %d dims does not fit a frame itself", d.Dims))
		}
		rows := make([][]int32, fits)
		for i := range rows {
			rows[i] = filled(1, 0)
		}
		if _, err := s.embed(true, rows...); err != nil {
			return fmt.Errorf("%d rows: %w", fits, err)
		}
		ones := make([]int, fits+1)
		for i := range ones {
			ones[i] = 1
		}
		if err := s.embedRefused(d.Pooling[0], ones, make([]int32, fits+1), protocol.CodeResponseTooLarge); err != nil {
			return fmt.Errorf("%d rows: %w", fits+1, err)
		}
		return nil
	}),
}
