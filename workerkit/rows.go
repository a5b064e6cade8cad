package workerkit

import (
	"fmt"

	"github.com/synapse-module/workers/protocol"
)

// splitRows cuts a raw frame's ids into rows of the given lengths: views into
// raw, put into s.rows. A frame that does not fit the header, an empty row and an
// id outside the vocabulary are refused; name says which row is at fault.
func (s *server) splitRows(raw []byte, d Description, n int, length func(int) int, name func(int) string) ([][]int32, error) {
	ids, err := protocol.View[int32](raw)
	if err != nil {
		return nil, err
	}
	rows, rest := s.rows[:0], ids
	for i := range n {
		l := length(i)
		switch {
		case l <= 0:
			return nil, RequestInvalid("%s has n_tokens %d: a row of no tokens has no answer", name(i), l)
		case l > d.MaxTokens:
			return nil, RequestInvalid("%s has %d tokens, this model takes at most %d; nothing is truncated here", name(i), l, d.MaxTokens)
		case l > len(rest):
			return nil, RequestInvalid("the raw frame holds %d ids, the header's lengths up to %s ask for more", len(ids), name(i))
		}
		row := rest[:l:l]
		if at := outside(row, d.VocabSize); at >= 0 {
			return nil, RequestInvalid("%s: token %d has the id %d, this model's vocabulary is 0 to %d", name(i), at, row[at], d.VocabSize-1)
		}
		rows, rest = append(rows, row), rest[l:]
	}
	if len(rest) > 0 {
		return nil, RequestInvalid("the raw frame holds %d ids, the header's lengths sum to %d", len(ids), len(ids)-len(rest))
	}
	s.rows = rows
	return rows, nil
}

// outside returns the index of the first id that is negative or not below vocab,
// or -1.
func outside(row []int32, vocab int) int {
	for i, id := range row {
		if id < 0 || int(id) >= vocab {
			return i
		}
	}
	return -1
}

// fits refuses an answer of n values before any work is done for it.
func (s *server) fits(n, width int) error {
	const valueBytes = 4
	if need := uint64(n) * uint64(width) * valueBytes; need > uint64(s.maxFrame) {
		return protocol.Errorf(protocol.CodeResponseTooLarge, "%d rows of %d values are %d bytes, a frame takes %d: send fewer rows", n, width, need, s.maxFrame)
	}
	return nil
}

// itemName names an item in messages: by its place, and by the module's label
// where it gave one.
func itemName(i int, id protocol.ID) string {
	if id == "" {
		return fmt.Sprintf("items[%d]", i)
	}
	return fmt.Sprintf("items[%d] (id %s)", i, id)
}
