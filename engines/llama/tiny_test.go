package llama

import (
	"fmt"
	"math"
	"slices"

	"github.com/synapse-module/workers/engines/llama/internal/ggufwriter"
)

// tinyModel is a model of few weights, to be loaded as it is or spoilt first.
type tinyModel struct{ file ggufwriter.File }

func (m *tinyModel) set(key string, value any) {
	m.unset(key)
	m.file.Pairs = append(m.file.Pairs, ggufwriter.Pair{Key: key, Value: value})
}

func (m *tinyModel) unset(key string) {
	m.file.Pairs = slices.DeleteFunc(m.file.Pairs, func(p ggufwriter.Pair) bool { return p.Key == key })
}

func (m *tinyModel) drop(names ...string) {
	m.file.Tensors = slices.DeleteFunc(m.file.Tensors, func(t ggufwriter.Tensor) bool { return slices.Contains(names, t.Name) })
}

// tensor adds an F32 tensor whose values are small and all different.
func (m *tinyModel) tensor(name string, dims ...uint64) {
	n := uint64(1)
	for _, d := range dims {
		n *= d
	}
	values := make([]float32, n)
	for i := range values {
		values[i] = float32(math.Sin(float64(i+17*len(m.file.Tensors)))) / 4
	}
	m.file.Tensors = append(m.file.Tensors, ggufwriter.Tensor{Name: name, Dims: dims, Data: ggufwriter.Floats(values)})
}

const (
	tinyVocab = 40
	tinyEmbd  = 32
	tinyCtx   = 24
)

// tinyBERT is an encoder of one layer, pooled by the mean.
func tinyBERT() *tinyModel { return tinyBERTOf(tinyVocab) }

func tinyBERTOf(vocab int) *tinyModel {
	m := &tinyModel{}
	m.file.Pairs = append(m.file.Pairs, []ggufwriter.Pair{
		{Key: "general.architecture", Value: "bert"},
		{Key: "bert.context_length", Value: uint32(tinyCtx)},
		{Key: "bert.embedding_length", Value: uint32(tinyEmbd)},
		{Key: "bert.feed_forward_length", Value: uint32(2 * tinyEmbd)},
		{Key: "bert.block_count", Value: uint32(1)},
		{Key: "bert.attention.head_count", Value: uint32(2)},
		{Key: "bert.attention.layer_norm_epsilon", Value: float32(1e-12)},
		{Key: "bert.attention.causal", Value: false},
		{Key: "bert.pooling_type", Value: uint32(1)},
		{Key: "tokenizer.ggml.token_type_count", Value: uint32(2)},
		{Key: "tokenizer.ggml.model", Value: "bert"},
		{Key: "tokenizer.ggml.bos_token_id", Value: uint32(1)},
		{Key: "tokenizer.ggml.eos_token_id", Value: uint32(2)},
	}...)
	m.vocabulary(vocab)
	m.tensor("token_embd.weight", tinyEmbd, uint64(vocab))
	m.tensor("token_types.weight", tinyEmbd, 2)
	m.tensor("position_embd.weight", tinyEmbd, tinyCtx)
	m.linear("token_embd_norm", tinyEmbd)
	for _, name := range []string{"attn_q", "attn_k", "attn_v", "attn_output"} {
		m.linear("blk.0."+name, tinyEmbd, tinyEmbd)
	}
	m.linear("blk.0.attn_output_norm", tinyEmbd)
	m.linear("blk.0.ffn_up", tinyEmbd, 2*tinyEmbd)
	m.linear("blk.0.ffn_down", 2*tinyEmbd, tinyEmbd)
	m.linear("blk.0.layer_output_norm", tinyEmbd)
	return m
}

func (m *tinyModel) vocabulary(n int) {
	tokens, kinds := make([]string, n), make([]int32, n)
	for i := range tokens {
		tokens[i], kinds[i] = fmt.Sprintf("\u2581%d", i), 1
	}
	copy(tokens, []string{"[PAD]", "[CLS]", "[SEP]", "[UNK]"})
	copy(kinds, []int32{3, 3, 3, 2})
	m.set("tokenizer.ggml.tokens", tokens)
	m.set("tokenizer.ggml.token_type", kinds)
}

// spell gives a token another text.
func (m *tinyModel) spell(id int, text string) {
	for _, p := range m.file.Pairs {
		if tokens, ok := p.Value.([]string); ok && p.Key == "tokenizer.ggml.tokens" {
			tokens[id] = text
		}
	}
}

// linear adds a weight and its bias.
func (m *tinyModel) linear(name string, dims ...uint64) {
	m.tensor(name+".weight", dims...)
	m.tensor(name+".bias", dims[len(dims)-1])
}

// tinyReranker is tinyBERT with a ranking head and the embeddings of both
// segments.
func tinyReranker() *tinyModel {
	m := tinyBERTOf(2 * tinyVocab)
	m.set("bert.pooling_type", uint32(4))
	m.set(segmentKey, uint32(tinyVocab))
	m.linear("cls", tinyEmbd, tinyEmbd)
	m.tensor("cls.output.weight", tinyEmbd, 1)
	m.tensor("cls.output.bias", 1)
	return m
}

// tinyDecoder is a generating model of one layer, of the architecture "llama".
func tinyDecoder() *tinyModel { return tinyDecoderOf(tinyVocab, tinyCtx) }

func tinyDecoderOf(vocab, ctx int) *tinyModel {
	m := &tinyModel{}
	m.file.Pairs = append(m.file.Pairs, []ggufwriter.Pair{
		{Key: "general.architecture", Value: "llama"},
		{Key: "llama.context_length", Value: uint32(ctx)},
		{Key: "llama.embedding_length", Value: uint32(tinyEmbd)},
		{Key: "llama.feed_forward_length", Value: uint32(2 * tinyEmbd)},
		{Key: "llama.block_count", Value: uint32(1)},
		{Key: "llama.attention.head_count", Value: uint32(2)},
		{Key: "llama.attention.layer_norm_rms_epsilon", Value: float32(1e-5)},
		{Key: "llama.rope.dimension_count", Value: uint32(tinyEmbd / 2)},
		{Key: "tokenizer.ggml.model", Value: "llama"},
		{Key: "tokenizer.ggml.bos_token_id", Value: uint32(1)},
		{Key: "tokenizer.ggml.eos_token_id", Value: uint32(2)},
	}...)
	m.vocabulary(vocab)
	scores := ggufwriter.Buffer{}
	scores.Put(uint32(9), uint32(6), uint64(vocab), make([]float32, vocab))
	m.set("tokenizer.ggml.scores", ggufwriter.Raw(scores.Bytes()))
	m.tensor("token_embd.weight", tinyEmbd, uint64(vocab))
	m.tensor("output_norm.weight", tinyEmbd)
	m.tensor("output.weight", tinyEmbd, uint64(vocab))
	m.tensor("blk.0.attn_norm.weight", tinyEmbd)
	for _, name := range []string{"attn_q", "attn_k", "attn_v", "attn_output"} {
		m.tensor("blk.0."+name+".weight", tinyEmbd, tinyEmbd)
	}
	m.tensor("blk.0.ffn_norm.weight", tinyEmbd)
	m.tensor("blk.0.ffn_gate.weight", tinyEmbd, 2*tinyEmbd)
	m.tensor("blk.0.ffn_up.weight", tinyEmbd, 2*tinyEmbd)
	m.tensor("blk.0.ffn_down.weight", 2*tinyEmbd, tinyEmbd)
	return m
}
