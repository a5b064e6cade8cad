package onnxtest

import (
	"bytes"
	"testing"

	"github.com/synapse-module/workers/engines/onnx/internal/onnxfile"
)

// What the writer writes the reader reads: the two are checked against each
// other here, and both against the library in package onnx.
func TestEncodersReadBack(t *testing.T) {
	for _, p := range []Positions{NoPositions, SlicedNumbers, SlicedTable, RangeNumbers, PositionInput, CountedFromMask} {
		e := BERT()
		e.Positions, e.Rows, e.Vocab, e.Hidden = p, 514, 77, 12
		model := e.Model()
		m, err := onnxfile.Read(bytes.NewReader(model), int64(len(model)))
		if err != nil {
			t.Fatalf("%s: %v", p, err)
		}
		want := map[Positions]int{NoPositions: 0, CountedFromMask: 512}
		room, known := want[p]
		if !known {
			room = 514
		}
		if got := m.MaxPositions(e.IDs, e.Position); got != room {
			t.Errorf("%s: room for %d tokens, want %d", p, got, room)
		}
		if m.Rows(e.IDs) != 77 || m.Rows(e.Types) != 2 || m.Rows(e.Mask) != 0 || m.Width(e.IDs) != 12 {
			t.Errorf("%s: tables of %d, %d and %d rows, width %d", p, m.Rows(e.IDs), m.Rows(e.Types), m.Rows(e.Mask), m.Width(e.IDs))
		}
	}
}
