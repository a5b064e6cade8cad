package onnxtest

import "github.com/synapse-module/workers/engines/onnx/internal/onnxfile"

// Decoder describes a small generating graph with a cache: the logits behind a
// token are those of the sum of the embeddings of all tokens up to it, each moved
// by its position, so that a lost, doubled or misplaced token shows.
type Decoder struct {
	Vocab, Hidden int
	CacheType     onnxfile.Type
	LogitsType    onnxfile.Type
	Positions     bool // position_ids is an input
	UseCache      bool // use_cache_branch is an input
}

// GPT is a decoder of the usual form.
func GPT() Decoder {
	return Decoder{Vocab: 40, Hidden: 8, CacheType: onnxfile.Float, LogitsType: onnxfile.Float, Positions: true}
}

// positionStep is how far a position moves a token.
const positionStep = 0.125

func (d Decoder) word(id, col int) float32 { return float32((id*29+col*13)%32-16) / 16 }

func (d Decoder) head(col, id int) float32 { return float32((col*11+id*23)%64-32) / 32 }

// Graph builds it.
func (d Decoder) Graph() *Graph {
	g := &Graph{}
	h, v := int64(d.Hidden), int64(d.Vocab)
	g.Input("input_ids", onnxfile.Int64, -1, -1)
	g.Input("attention_mask", onnxfile.Int64, -1, -1)
	g.Input("past_key_values.0.key", d.CacheType, -1, 1, -1, h)
	g.Input("past_key_values.0.value", d.CacheType, -1, 1, -1, h)
	var words, head []float32
	for id := range d.Vocab {
		for col := range d.Hidden {
			words = append(words, d.word(id, col))
		}
	}
	for col := range d.Hidden {
		for id := range d.Vocab {
			head = append(head, d.head(col, id))
		}
	}
	g.Floats("words", onnxfile.Float, words, v, h)
	g.Floats("head", onnxfile.Float, head, h, v)
	g.Int64s("one", []int64{1}, 1)
	g.Int64s("two", []int64{2}, 1)
	g.Int64s("three", []int64{3}, 1)
	g.Int64s("last", []int64{-1}, 1)
	g.Int64s("axis", []int64{2})
	g.Int64s("far", []int64{1 << 40}, 1)
	g.Floats("step", onnxfile.Float, []float32{positionStep})
	g.Node("Gather", []string{"words", "input_ids"}, []string{"x"})
	x := "x"
	if d.Positions {
		g.Input("position_ids", onnxfile.Int64, -1, -1)
		g.Node("Cast", []string{"position_ids"}, []string{"positionf"}, Int("to", int64(onnxfile.Float)))
		g.Node("Mul", []string{"positionf", "step"}, []string{"moved"})
		g.Node("Unsqueeze", []string{"moved", "last"}, []string{"moved3"})
		g.Node("Add", []string{"x", "moved3"}, []string{"placed"})
		x = "placed"
	}
	if d.UseCache {
		g.Input("use_cache_branch", onnxfile.Bool, 1)
	}
	g.Node("Unsqueeze", []string{x, "one"}, []string{"x4"})
	g.Node("Cast", []string{"x4"}, []string{"stored"}, Int("to", int64(d.CacheType)))
	g.Node("Concat", []string{"past_key_values.0.key", "stored"}, []string{"present.0.key"}, Int("axis", 2))
	g.Node("Concat", []string{"past_key_values.0.value", "stored"}, []string{"present.0.value"}, Int("axis", 2))
	g.Node("Cast", []string{"present.0.value"}, []string{"all"}, Int("to", int64(onnxfile.Float)))
	g.Node("CumSum", []string{"all", "axis"}, []string{"sums"})
	g.Node("Shape", []string{"past_key_values.0.key"}, []string{"past shape"})
	g.Node("Slice", []string{"past shape", "two", "three"}, []string{"past"})
	g.Node("Slice", []string{"sums", "past", "far", "two"}, []string{"new"})
	g.Node("Squeeze", []string{"new", "one"}, []string{"states"})
	g.Node("MatMul", []string{"states", "head"}, []string{"scores"})
	g.Node("Cast", []string{"scores"}, []string{"logits"}, Int("to", int64(d.LogitsType)))
	g.Output("logits", d.LogitsType, -1, -1, v)
	g.Output("present.0.key", d.CacheType, -1, 1, -1, h)
	g.Output("present.0.value", d.CacheType, -1, 1, -1, h)
	return g
}

// Next is the likeliest token behind a sequence.
func (d Decoder) Next(sequence []int32) int32 {
	best, most := int32(0), -1e9
	for id := range d.Vocab {
		logit := 0.0
		for col := range d.Hidden {
			sum := 0.0
			for at, token := range sequence {
				sum += float64(d.word(int(token), col))
				if d.Positions {
					sum += positionStep * float64(at)
				}
			}
			logit += sum * float64(d.head(col, id))
		}
		if logit > most {
			best, most = int32(id), logit
		}
	}
	return best
}
