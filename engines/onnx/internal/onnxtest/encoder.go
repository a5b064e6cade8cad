package onnxtest

import (
	"math"

	"github.com/synapse-module/workers/engines/onnx/internal/onnxfile"
)

// Positions is how a test encoder comes by its positions.
type Positions string

// The ways of exporters.
const (
	NoPositions     Positions = ""
	SlicedNumbers   Positions = "sliced numbers" // a stored 0, 1, 2, … cut to length (BERT)
	SlicedTable     Positions = "sliced table"   // the table itself cut to length
	RangeNumbers    Positions = "range"          // numbers made by Range
	PositionInput   Positions = "input"          // an input of the graph
	CountedFromMask Positions = "counted"        // the mask's running sum, plus one (RoBERTa)
)

// Encoder describes a small encoder: hidden states are the sum of the token's,
// type's and position's embeddings, plus their mean over the row's tokens by the
// mask, so that padding, order and types all show in them.
type Encoder struct {
	Vocab, Hidden int
	Rows          int // of the table of positions
	Positions     Positions

	IDs, Mask, Types, Position string // names of inputs; Mask, Types empty for none
	IDType                     onnxfile.Type
	Batch, Width               int64 // of the inputs, -1 for open

	Output    string
	OutType   onnxfile.Type
	Quantized bool  // one dynamically quantised product of bytes
	Pooled    bool  // the output is the row's mean: of rank 2
	Labels    int   // the output is logits of a head on the first state; 0 for no head
	NaN       int64 // the id whose embedding is not a number; -1 for none
	Sidecar   string
}

// BERT is an encoder of the usual form.
func BERT() Encoder {
	return Encoder{
		Vocab: 100, Hidden: 8, Rows: 16, Positions: SlicedNumbers,
		IDs: "input_ids", Mask: "attention_mask", Types: "token_type_ids", Position: "position_ids",
		IDType: onnxfile.Int64, Batch: -1, Width: -1,
		Output: "last_hidden_state", OutType: onnxfile.Float, NaN: -1,
	}
}

// Word is an element of the table of words. All such values are exact in 16-bit
// floats.
func (e Encoder) Word(id, col int) float32 {
	if int64(id) == e.NaN {
		return float32(math.NaN())
	}
	return float32((id*31+col*17)%128-64) / 64
}

// Graph builds it.
func (e Encoder) Graph() *Graph {
	g := &Graph{Sidecar: e.Sidecar}
	v, h := int64(e.Vocab), int64(e.Hidden)
	for _, name := range []string{e.IDs, e.Mask, e.Types} {
		if name != "" {
			g.Input(name, e.IDType, e.Batch, e.Width)
		}
	}
	words := make([]float32, 0, v*h)
	for id := range e.Vocab {
		for col := range e.Hidden {
			words = append(words, e.Word(id, col))
		}
	}
	g.Floats("words", onnxfile.Float, words, v, h)
	g.Node("Gather", []string{"words", e.IDs}, []string{"x"})
	x := "x"
	add := func(y string) {
		g.Node("Add", []string{x, y}, []string{x + "+" + y})
		x += "+" + y
	}
	if e.Types != "" {
		g.Floats("types", onnxfile.Float, ramp(2*e.Hidden, 0.5), 2, h)
		g.Node("Gather", []string{"types", e.Types}, []string{"typed"})
		add("typed")
	}
	if e.Positions != NoPositions {
		e.place(g)
		add("placed")
	}
	e.mean(g, x)
	add("mean")
	if e.Quantized {
		x = quantize(g, x, h)
	}
	dims := []int64{e.Batch, e.Width, h}
	if e.Pooled {
		g.Node("ReduceMean", []string{x}, []string{"pooled"}, Ints("axes", 1), Int("keepdims", 0))
		x, dims = "pooled", []int64{e.Batch, h}
	}
	if e.Labels > 0 {
		n := int64(e.Labels)
		g.Floats("head", onnxfile.Float, e.head(), h, n)
		g.Int64s("first", []int64{0})
		g.Node("Gather", []string{x, "first"}, []string{"cls"}, Int("axis", 1))
		g.Node("MatMul", []string{"cls", "head"}, []string{"labelled"})
		x, dims = "labelled", []int64{e.Batch, n}
	}
	g.Node("Cast", []string{x}, []string{e.Output}, Int("to", int64(e.OutType)))
	g.Output(e.Output, e.OutType, dims...)
	return g
}

// CrossEncoder is a ranking model with the given number of labels.
func CrossEncoder(labels int) Encoder {
	e := BERT()
	e.Labels, e.Output = labels, "logits"
	return e
}

// head is the weights of the head, Hidden×Labels.
func (e Encoder) head() []float32 {
	w := make([]float32, e.Hidden*e.Labels)
	for i := range w {
		w[i] = float32((i*7)%11-5) / 16
	}
	return w
}

// Model is its file.
func (e Encoder) Model() []byte { return e.Graph().Model() }

// place makes the value "placed", the embeddings of the positions.
func (e Encoder) place(g *Graph) {
	rows := int64(e.Rows)
	g.Floats("places", onnxfile.Float, ramp(e.Rows*e.Hidden, 0.25), rows, int64(e.Hidden))
	g.Int64s("zero", []int64{0}, 1)
	g.Int64s("one", []int64{1}, 1)
	g.Node("Shape", []string{e.IDs}, []string{"shape"})
	g.Node("Slice", []string{"shape", "one", "two"}, []string{"length"})
	g.Int64s("two", []int64{2}, 1)
	switch e.Positions {
	case SlicedNumbers:
		numbers := make([]int64, e.Rows)
		for i := range numbers {
			numbers[i] = int64(i)
		}
		g.Int64s("numbers", numbers, 1, rows)
		g.Node("Slice", []string{"numbers", "zero", "length", "one"}, []string{"at"})
	case SlicedTable:
		g.Node("Slice", []string{"places", "zero", "length", "zero"}, []string{"placed"})
		return
	case RangeNumbers:
		g.Int64s("begin", []int64{0})
		g.Int64s("step", []int64{1})
		g.Node("Squeeze", []string{"length"}, []string{"end"})
		g.Node("Range", []string{"begin", "end", "step"}, []string{"range"})
		g.Node("Unsqueeze", []string{"range", "zero"}, []string{"at"})
	case PositionInput:
		g.Input(e.Position, e.IDType, e.Batch, e.Width)
		g.Node("Identity", []string{e.Position}, []string{"at"})
	case CountedFromMask:
		g.Int64s("axis", []int64{1})
		g.Int64s("padding id", []int64{1})
		g.Node("Cast", []string{e.Mask}, []string{"mask64"}, Int("to", int64(onnxfile.Int64)))
		g.Node("CumSum", []string{"mask64", "axis"}, []string{"running"})
		g.Node("Mul", []string{"running", "mask64"}, []string{"counted"})
		g.Node("Add", []string{"counted", "padding id"}, []string{"at"})
	}
	g.Node("Gather", []string{"places", "at"}, []string{"placed"})
}

// mean makes the value "mean", that of x over the tokens that the mask names.
func (e Encoder) mean(g *Graph, x string) {
	if e.Mask == "" {
		g.Node("ReduceMean", []string{x}, []string{"mean"}, Ints("axes", 1), Int("keepdims", 1))
		return
	}
	g.Int64s("tokens", []int64{1}, 1)
	g.Int64s("last", []int64{-1}, 1)
	g.Node("Cast", []string{e.Mask}, []string{"maskf"}, Int("to", int64(onnxfile.Float)))
	g.Node("Unsqueeze", []string{"maskf", "last"}, []string{"mask3"})
	g.Node("Mul", []string{x, "mask3"}, []string{"masked"})
	g.Node("ReduceSum", []string{"masked", "tokens"}, []string{"sum"})
	g.Node("ReduceSum", []string{"mask3", "tokens"}, []string{"count"})
	g.Node("Div", []string{"sum", "count"}, []string{"mean"})
}

// quantize multiplies x by a matrix of bytes, as onnxruntime.quantization writes
// it for dynamic quantisation.
func quantize(g *Graph, x string, h int64) string {
	weights := make([]byte, h*h)
	for i := range h {
		weights[i*h+i] = 100
	}
	g.Bytes("weights", onnxfile.Int8, weights, h, h)
	g.Bytes("weights zero", onnxfile.Int8, []byte{0})
	g.Floats("weights scale", onnxfile.Float, []float32{0.01})
	g.Node("DynamicQuantizeLinear", []string{x}, []string{"bytes", "scale", "zero point"})
	g.Node("MatMulInteger", []string{"bytes", "weights", "zero point", "weights zero"}, []string{"product"})
	g.Node("Cast", []string{"product"}, []string{"productf"}, Int("to", int64(onnxfile.Float)))
	g.Node("Mul", []string{"scale", "weights scale"}, []string{"product scale"})
	g.Node("Mul", []string{"productf", "product scale"}, []string{"quantized"})
	return "quantized"
}

// ramp is n numbers that go up by step, from 0 at every 64th anew.
func ramp(n int, step float32) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(i%64) * step
	}
	return v
}

// States is what the encoder gives for a row, a state a token: the reference
// that tests hold an engine to. types are the tokens', or nil for all 0. A
// quantised encoder has no reference.
func (e Encoder) States(row, types []int32) [][]float64 {
	states := make([][]float64, len(row))
	mean := make([]float64, e.Hidden)
	for i, id := range row {
		states[i] = make([]float64, e.Hidden)
		for col := range e.Hidden {
			x := float64(e.Word(int(id), col))
			if e.Types != "" {
				kind := 0
				if types != nil {
					kind = int(types[i])
				}
				x += float64(ramp(2*e.Hidden, 0.5)[kind*e.Hidden+col])
			}
			if at := i; e.Positions != NoPositions {
				if e.Positions == CountedFromMask {
					at += 2
				}
				x += float64(ramp(e.Rows*e.Hidden, 0.25)[at*e.Hidden+col])
			}
			states[i][col] = x
			mean[col] += x / float64(len(row))
		}
	}
	for i := range states {
		for col := range mean {
			states[i][col] += mean[col]
		}
	}
	return states
}

// Logits is what a cross-encoder gives for a row.
func (e Encoder) Logits(row, types []int32) []float64 {
	state := e.States(row, types)[0]
	out := make([]float64, e.Labels)
	for col, x := range state {
		for label := range out {
			out[label] += x * float64(e.head()[col*e.Labels+label])
		}
	}
	return out
}
