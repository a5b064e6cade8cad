package llama

import (
	"fmt"
	"slices"

	"github.com/synapse-module/workers/engines/llama/internal/gguf"
)

// encoders are the architectures that llama.cpp runs as encoders: without a KV
// cache, every token sees every other.
var encoders = map[string]bool{
	"bert": true, "nomic-bert": true, "jina-bert-v2": true, "jina-bert-v3": true,
	"modern-bert": true, "eurobert": true, "gemma-embedding": true,
}

// wholeRow are decoders that were trained anew with every token seeing every other.
// Of other architectures the file says so; llama.cpp computes these causally where
// it does not.
var wholeRow = map[string]bool{"llama-embed": true}

// erfGELU are the architectures whose models were trained with the exact GELU, by
// the error function. llama.cpp computes the tanh approximation for all: for the
// others it is right (Gemma, GPT-2, Phi-2, StarCoder 2), or they have none (SwiGLU).
var erfGELU = map[string]bool{
	"bert": true, "jina-bert-v2": true, "jina-bert-v3": true, "modern-bert": true,
	"falcon": true, "gptneox": true,
}

// rankers are the architectures whose graphs end in the ranking head of the
// model that they were converted from: a dense layer and then one score.
var rankers = map[string]bool{"bert": true, "modern-bert": true}

// refused are architectures that the library loads and this engine does not run:
// with a separate decoder, that generate by diffusion, whose input is no text, or
// of which llama.cpp computes something else than their reference (arch_test.go).
var refused = map[string]string{
	"nomic-bert-moe":   "conversion leaves out the bias behind its experts, and llama.cpp has no place for it, so its vectors are not the model's; use an ONNX export",
	"neo-bert":         "llama.cpp takes its heads' queries, keys and values apart in another order than converters write them, so its vectors have nothing to do with the model's; use an ONNX export",
	"gpt-oss":          "llama.cpp rounds the two dimensions between which YaRN stretches its positions, which this model was trained without, so its logits are not the model's; use an ONNX export",
	"t5":               "it is an encoder with a decoder",
	"t5encoder":        "it is the encoder of a translation model",
	"dream":            "it generates by diffusion",
	"llada":            "it generates by diffusion",
	"llada-moe":        "it generates by diffusion",
	"rnd1":             "it generates by diffusion",
	"clip":             "it takes images",
	"wavtokenizer-dec": "it gives sound",
	"pockettts":        "it gives sound",
	"eagle3":           "it only drafts for another model",
	"dflash":           "it only drafts for another model",
	"gemma4-assistant": "it only drafts for another model",
}

// denseAfterPooling are architectures whose reference has dense layers behind
// the pooling. Conversions that leave them out compute vectors that have nothing
// to do with the model's.
var denseAfterPooling = map[string][]string{
	"gemma-embedding": {"dense_2.weight", "dense_3.weight"},
}

// needed are the keys, in the architecture's namespace, for which llama.cpp has a
// default that is not the model's.
var needed = map[string][]string{
	"nomic-bert":      {"rope.freq_base"},
	"jina-bert-v3":    {"rope.freq_base"},
	"eurobert":        {"rope.freq_base"},
	"gemma-embedding": {"rope.freq_base"},
	"modern-bert":     {"rope.freq_base", "attention.sliding_window"},
}

// gatedBy are the activations of ModernBERT's feed-forward layers that llama.cpp
// knows. For any other it computes the GELU.
var gatedBy = []string{"", "gelu", "silu"}

// checkArchitecture refuses what the library computes, without a word, as another
// model than the file's.
func (p *plan) checkArchitecture(f *gguf.File) error {
	for _, name := range needed[p.arch] {
		if key := p.arch + "." + name; !f.Has(key) {
			return fmt.Errorf("%s is missing, and what llama.cpp takes in its place is not what this model was trained with: convert it with a newer converter", key)
		}
	}
	switch p.arch {
	case "modern-bert":
		key := p.arch + ".hidden_activation"
		if act := f.Text(key); !slices.Contains(gatedBy, act) {
			return fmt.Errorf("%s is %.64q; llama.cpp knows gelu and silu, and would compute the first", key, act)
		}
	case "gemma-embedding":
		if err := p.checkDense(f); err != nil {
			return err
		}
	case "jina-bert-v2":
		if up, ok := f.Tensor("blk.0.ffn_up.weight"); ok && (len(up.Dims) != 2 || up.Dims[1] != p.shape.ff && up.Dims[1] != 2*p.shape.ff) {
			return fmt.Errorf("blk.0.ffn_up.weight is %v, with a feed_forward_length of %d", up.Dims, p.shape.ff)
		}
		_, normed := f.Tensor("blk.0.attn_q_norm.weight")
		if _, split := f.Tensor("blk.0.ffn_gate.weight"); normed && !split {
			return fmt.Errorf("the gate of its feed-forward layers (blk.0.ffn_up) is joined to the value in the order of jina-embeddings-v2-base-code, which llama.cpp takes for the other order: use a conversion with blk.0.ffn_gate, or an ONNX export")
		}
	}
	if err := p.checkReach(f); err != nil {
		return err
	}
	return p.checkWindows(f)
}

// unwindowed are architectures whose files may tell of a window that every layer
// sees, and that llama.cpp computes without one.
var unwindowed = map[string]bool{"phi3": true, "llama": true, "mistral3": true, "qwen2": true, "qwen2moe": true, "qwen3": true, "qwen3moe": true}

// contextPadding is what llama.cpp rounds the length of a context up to.
const contextPadding = 256

// checkReach finds what rows llama.cpp computes as the model does: within a window
// that it leaves out, and by the factors for positions of short rows, which the
// reference takes by a row's length and llama.cpp by the context's.
func (p *plan) checkReach(f *gguf.File) error {
	if key := p.arch + ".attention.sliding_window"; unwindowed[p.arch] && f.Has(key) {
		window, err := f.Int(key, 0)
		if err != nil {
			return err
		}
		if window < 0 || window > maxTrained {
			return fmt.Errorf("%s is %d, 0 to %d are taken", key, window, maxTrained)
		}
		if window > 0 && int(window) < p.trained {
			p.faithful = reach{int(window), "llama.cpp computes this architecture without its sliding window, so longer rows would be another model's"}
		}
	}
	if _, long := f.Tensor("rope_factors_long.weight"); !long {
		return nil
	}
	key := p.arch + ".rope.scaling.original_context_length"
	original, err := f.Int(key, int64(p.trained))
	if err != nil {
		return err
	}
	short := int(min(original, maxTrained)) / contextPadding * contextPadding
	if short < 1 {
		return fmt.Errorf("%s is %d: llama.cpp needs %d and more to compute short rows by their own factors", key, original, contextPadding)
	}
	if short < p.trained && (p.faithful.tokens == 0 || short < p.faithful.tokens) {
		p.faithful = reach{short, "over that llama.cpp computes all rows, short ones as well, by the factors for long ones (rope_factors_long.weight), which the model has not"}
	}
	return nil
}

// segmentKey is the metadata key of files of our converter that hold the word
// embeddings twice, for the two segments of a pair; see tools/gguf/convert.py.
const segmentKey = "synapse.segment_b_offset"
