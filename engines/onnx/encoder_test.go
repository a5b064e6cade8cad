//go:build cgo

package onnx

import (
	"bytes"
	"context"
	"math"
	"testing"

	"github.com/synapse-module/workers/engines/onnx/internal/onnxfile"
	"github.com/synapse-module/workers/engines/onnx/internal/onnxtest"
	"github.com/synapse-module/workers/protocol"
	"github.com/synapse-module/workers/workerkit"
)

// wantVectors holds an encoder to its reference, for rows of mixed lengths in
// one request and each pooling.
func wantVectors(t *testing.T, m workerkit.Model, e onnxtest.Encoder, tolerance float64) {
	t.Helper()
	var rows [][]int32
	for _, n := range []int{1, 5, 2, 5, 9, m.Describe().MaxTokens, 3} {
		row := make([]int32, n)
		for i := range row {
			row[i] = int32((i*13 + n) % e.Vocab)
		}
		rows = append(rows, row)
	}
	for _, p := range []workerkit.Pooling{workerkit.PoolingMean, workerkit.PoolingCLS, workerkit.PoolingLast} {
		for i, got := range embed(t, m, p, rows...) {
			states := e.States(rows[i], nil)
			for col := range got {
				want := states[0][col]
				switch p {
				case workerkit.PoolingLast:
					want = states[len(states)-1][col]
				case workerkit.PoolingMean:
					want = 0
					for _, s := range states {
						want += s[col] / float64(len(states))
					}
				}
				if math.Abs(float64(got[col])-want) > tolerance {
					t.Fatalf("row %d (%d tokens), %s: value %d is %g, want %g", i, len(rows[i]), p, col, got[col], want)
				}
			}
		}
	}
}

func TestEncoders(t *testing.T) {
	for _, c := range []struct {
		name      string
		change    func(*onnxtest.Encoder)
		config    string
		maxTokens int
		tolerance float64
	}{
		{name: "BERT"},
		{name: "int32 ids", change: func(e *onnxtest.Encoder) { e.IDType = onnxfile.Int32 }},
		{name: "other names", change: func(e *onnxtest.Encoder) {
			e.IDs, e.Mask, e.Types, e.Output = "input.1", "input.3", "input.2", "output_0"
		}},
		{name: "no mask", change: func(e *onnxtest.Encoder) { e.Mask = "" }},
		{name: "float16 states", change: func(e *onnxtest.Encoder) { e.OutType = onnxfile.Float16 }, tolerance: 0.02},
		{name: "bfloat16 states", change: func(e *onnxtest.Encoder) { e.OutType = onnxfile.BFloat16 }, tolerance: 0.2},
		{name: "table cut to length", change: func(e *onnxtest.Encoder) { e.Positions = onnxtest.SlicedTable }},
		{name: "numbers from Range", change: func(e *onnxtest.Encoder) { e.Positions = onnxtest.RangeNumbers }},
		{name: "positions as input", change: func(e *onnxtest.Encoder) { e.Positions = onnxtest.PositionInput }},
		{name: "no positions", change: func(e *onnxtest.Encoder) { e.Positions = onnxtest.NoPositions }, config: `{"max_tokens": 30}`, maxTokens: 30},
		{name: "lowered limit", config: `{"max_tokens": 12}`, maxTokens: 12},
		{name: "fixed length", change: func(e *onnxtest.Encoder) { e.Width = 14 }, maxTokens: 14},
		{name: "fixed batch of one", change: func(e *onnxtest.Encoder) { e.Batch = 1 }},
		{name: "one thread, no rewriting", config: `{"threads": 1, "optimization": "off"}`},
		{name: "a budget below the longest row", config: `{"batch_tokens": 4}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := onnxtest.BERT()
			if c.change != nil {
				c.change(&e)
			}
			if c.maxTokens == 0 {
				c.maxTokens = e.Rows
			}
			m := mustLoad(t, e.Model(), c.config)
			if d := m.Describe(); d.MaxTokens != c.maxTokens || d.VocabSize != e.Vocab || d.Dims != e.Hidden || d.DefaultPooling != "" {
				t.Errorf("described as %+v", d)
			}
			wantVectors(t, m, e, max(c.tolerance, 1e-5))
		})
	}
}

func TestReport15_TokenTypesOnlyWhereTheGraphWantsThem(t *testing.T) {
	for _, types := range []string{"", "token_type_ids"} {
		e := onnxtest.BERT()
		e.Types = types
		wantVectors(t, mustLoad(t, e.Model(), ""), e, 1e-5)
	}
}

func TestReport09_PaddingDoesNotCount(t *testing.T) {
	e := onnxtest.BERT()
	e.Rows = 256
	m := mustLoad(t, e.Model(), "")
	short, long := []int32{5, 6, 7}, make([]int32, 200)
	alone := embed(t, m, workerkit.PoolingMean, short)[0]
	// callTokens would rather run them apart: a full batch of one width is forced.
	m.(*encoder).width = 200
	together := embed(t, m, workerkit.PoolingMean, long, short)[1]
	for i := range alone {
		if math.Abs(float64(alone[i]-together[i])) > 1e-5 {
			t.Fatalf("alone %v, beside 200 tokens %v", alone, together)
		}
	}
}

// The limit that is reported is the one that holds: it passes, and one more the
// graph itself refuses.
func TestReport06_ReportedLimitIsTheGraphs(t *testing.T) {
	for _, p := range []onnxtest.Positions{onnxtest.SlicedNumbers, onnxtest.SlicedTable, onnxtest.RangeNumbers, onnxtest.PositionInput, onnxtest.CountedFromMask} {
		t.Run(string(p), func(t *testing.T) {
			e := onnxtest.BERT()
			e.Positions = p
			m := mustLoad(t, e.Model(), "")
			limit := m.Describe().MaxTokens
			embed(t, m, workerkit.PoolingMean, make([]int32, limit))
			_, err := m.(workerkit.Embedder).Embed(t.Context(), [][]int32{make([]int32, limit+1)}, workerkit.PoolingMean)
			wantCode(t, err, protocol.CodeEngineFailed)
			embed(t, m, workerkit.PoolingMean, make([]int32, limit))
		})
	}
}

func TestReport23_PositionsThatBeginAtAnOffset(t *testing.T) {
	e := onnxtest.BERT()
	e.Positions, e.Rows = onnxtest.CountedFromMask, 514
	m := mustLoad(t, e.Model(), "")
	if got := m.Describe().MaxTokens; got != 512 {
		t.Fatalf("514 positions from 2 on leave %d tokens, want 512", got)
	}
	wantVectors(t, m, e, 1e-4)
}

// An id outside the vocabulary is workerkit's to refuse; the bound is ours to
// give. What the library makes of it must leave the model usable.
func TestReport22_VocabularyFromTheGraph(t *testing.T) {
	e := onnxtest.BERT()
	m := mustLoad(t, e.Model(), "")
	vocab := int32(m.Describe().VocabSize)
	embed(t, m, workerkit.PoolingMean, []int32{vocab - 1})
	_, err := m.(workerkit.Embedder).Embed(t.Context(), [][]int32{{vocab}}, workerkit.PoolingMean)
	wantCode(t, err, protocol.CodeEngineFailed)
	wantVectors(t, m, e, 1e-5)
}

// The engine must not hide it: workerkit refuses the vector by its row.
func TestReport12_NotANumberShows(t *testing.T) {
	e := onnxtest.BERT()
	e.NaN = 3
	m := mustLoad(t, e.Model(), "")
	got := embed(t, m, workerkit.PoolingMean, []int32{1, 2}, []int32{1, 3}, []int32{4})
	for i, want := range []bool{false, true, false} {
		if is := math.IsNaN(float64(got[i][0])); is != want {
			t.Errorf("row %d: not a number is %v, want %v", i, is, want)
		}
	}
}

func TestQuantizedRowsRunAlone(t *testing.T) {
	e := onnxtest.BERT()
	e.Quantized = true
	m := mustLoad(t, e.Model(), "")
	rows := [][]int32{{1, 2, 3}, {50}, {4, 5, 6, 7, 8, 9, 10}, {99, 98, 97}}
	together := embed(t, m, workerkit.PoolingMean, rows...)
	for i, row := range rows {
		alone := embed(t, m, workerkit.PoolingMean, row)[0]
		for col := range alone {
			if alone[col] != together[i][col] {
				t.Fatalf("row %d: alone %v, in a request of four %v", i, alone, together[i])
			}
		}
	}
}

// packed is asked for, alone is what a user gets who asks for nothing.
func TestBatchingIsTheUsersToChoose(t *testing.T) {
	quantized, float := onnxtest.BERT(), onnxtest.BERT()
	quantized.Quantized = true
	for _, c := range []struct {
		encoder onnxtest.Encoder
		config  string
		calls   int
	}{
		{float, "", 1},
		{float, `{"batching": "alone"}`, 3},
		{quantized, "", 3},
		{quantized, `{"batching": "packed"}`, 1},
	} {
		m := mustLoad(t, c.encoder.Model(), c.config)
		embed(t, m, workerkit.PoolingMean, []int32{1}, []int32{2}, []int32{3})
		if _, cuts := m.(*encoder).batcher.pack(rowsOf(1, 1, 1)); len(cuts) != c.calls {
			t.Errorf("quantised %v, %s: %d calls, want %d", c.encoder.Quantized, c.config, len(cuts), c.calls)
		}
	}
}

// Weights of few bits leave a row alone only where the activations are rounded
// too, and with them the kernels differ by how many rows there are.
func TestRoundedActivationsRunAlone(t *testing.T) {
	c, err := workerkit.DecodeConfig(options(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for level, alone := range map[int64]bool{0: false, 4: true} {
		g := onnxtest.BERT().Graph()
		g.DomainNode("com.microsoft", "MatMulNBits", []string{"x", "w", "s"}, []string{"y"}, onnxtest.Int("accuracy_level", level))
		model := g.Model()
		file, err := onnxfile.Read(bytes.NewReader(model), int64(len(model)))
		if err != nil {
			t.Fatal(err)
		}
		p, err := makePlan(source{graph: file}, c)
		if err != nil {
			t.Fatal(err)
		}
		if p.batcher.alone != alone {
			t.Errorf("accuracy level %d: rows run alone is %v", level, p.batcher.alone)
		}
	}
}

func TestEmbedGivenUp(t *testing.T) {
	m := mustLoad(t, onnxtest.BERT().Model(), "")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := m.(workerkit.Embedder).Embed(ctx, [][]int32{{1}}, workerkit.PoolingMean)
	wantCode(t, err, protocol.CodeEngineFailed, "given up")
}
