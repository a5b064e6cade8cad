package llama

import (
	"errors"
	"fmt"
	"slices"

	"github.com/synapse-module/workers/engines/internal/pairs"
	"github.com/synapse-module/workers/engines/llama/internal/gguf"
	"github.com/synapse-module/workers/workerkit"
)

// role is what a model is for. Its file says so by the pooling that it declares.
type role int

const (
	roleEmbedder role = iota
	roleReranker
	roleGenerator
)

// plan is what a file's header says of its model, checked before the library
// sees the file.
type plan struct {
	arch      string
	role      role
	encoder   bool // no KV cache
	whole     bool // every token sees every other
	pooling   workerkit.Pooling
	poolings  []workerkit.Pooling
	trained   int // context length of the training
	faithful  reach
	maxTokens int
	vocab     int // ids that the module may send
	shape     shape

	layout        pairs.Layout // roleReranker
	segmentOffset int32        // roleReranker: added to ids of the second segment; 0 for none
	template      *template    // roleReranker: nil for one with a head
	headOfFirst   bool         // roleReranker: ModernBERT's head takes the first token, not the mean
}

// reach is the longest row that llama.cpp computes as the model does, where that is
// shorter than what the model was trained with.
type reach struct {
	tokens int // 0 for all
	why    string
}

// shape is what decides the memory that a model needs.
type shape struct {
	layers, embd, ff, heads int64
	kvValues                int64 // of one token in one layer, keys and values together
	kvOdd                   int64 // a length of keys or values of one head that is no multiple of kvBlock; 0 for none
	table                   int64 // rows of the embedding table
}

// Upper ends of hyperparameters. llama.cpp sizes its tables by them before it
// compares them with the tensors.
const (
	maxLayers    = 512 // LLAMA_MAX_LAYERS; more is an abort
	maxEmbedding = 1 << 17
	maxFF        = 1 << 22
	maxHeads     = 1 << 12
	maxTrained   = 1 << 24
)

// The numbers of enum llama_pooling_type, as files have them.
const (
	filePoolingNone = iota
	filePoolingMean
	filePoolingCLS
	filePoolingLast
	filePoolingRank
)

// newPlan reads a header. Its errors are of artifact_invalid and config_invalid.
func newPlan(f *gguf.File, s settings) (plan, error) {
	p := plan{arch: f.Text("general.architecture")}
	if err := p.read(f); err != nil {
		return p, workerkit.ArtifactInvalid("%v", err)
	}
	return p, p.limit(s)
}

func (p *plan) read(f *gguf.File) error {
	if p.arch == "" || len(p.arch) > 64 {
		return errors.New("general.architecture does not say what kind of model it is")
	}
	if kind := f.Text("general.type"); kind != "" && kind != "model" {
		return fmt.Errorf("the file holds no model but a %.64q", kind)
	}
	if n, err := f.Int("split.count", 1); err != nil || n > 1 {
		return fmt.Errorf("the file is one of %d parts: merge them into one (llama-gguf-split --merge)", n)
	}
	if why := refused[p.arch]; why != "" {
		return fmt.Errorf("the architecture %q cannot be run by this worker: %s", p.arch, why)
	}
	p.encoder = encoders[p.arch]
	causal, err := f.Bool(p.arch+".attention.causal", true)
	if err != nil {
		return err
	}
	p.whole = p.encoder || wholeRow[p.arch] || !causal
	for _, read := range []func(*gguf.File) error{p.readShape, p.checkCounts, p.checkEpsilons, p.readVocabulary, p.readRole, p.checkArchitecture} {
		if err := read(f); err != nil {
			return err
		}
	}
	return nil
}

// positive reads an integer of the model's own namespace, 1 to hi.
func (p *plan) positive(f *gguf.File, name string, hi int64) (int64, error) {
	key := p.arch + "." + name
	n, err := f.Int(key, -1)
	switch {
	case err != nil:
		return 0, err
	case !f.Has(key):
		return 0, fmt.Errorf("%s is missing", key)
	case n < 1 || n > hi:
		return 0, fmt.Errorf("%s is %d, 1 to %d are taken", key, n, hi)
	}
	return n, nil
}

// largest reads an integer, or an array of one for each layer, and returns the
// largest; def where the key is absent.
func (p *plan) largest(f *gguf.File, name string, hi, def int64) (int64, error) {
	key := p.arch + "." + name
	if !f.Has(key) {
		return def, nil
	}
	values, err := f.Ints(key, maxLayers)
	if err != nil {
		return 0, err
	}
	if len(values) == 0 || slices.Min(values) < 0 || slices.Max(values) > hi {
		return 0, fmt.Errorf("%s is %v, 0 to %d are taken", key, clip(values), hi)
	}
	return slices.Max(values), nil
}

func clip(values []int64) []int64 { return values[:min(len(values), 8)] }

func (p *plan) readShape(f *gguf.File) error {
	h := &p.shape
	var trained, keys, values, kvHeads int64
	for _, step := range []func() error{
		func() (err error) { trained, err = p.positive(f, "context_length", maxTrained); return },
		func() (err error) { h.embd, err = p.positive(f, "embedding_length", maxEmbedding); return },
		func() (err error) { h.layers, err = p.positive(f, "block_count", maxLayers); return },
		func() (err error) { h.ff, err = p.largest(f, "feed_forward_length", maxFF, 4*h.embd); return },
		func() (err error) { h.heads, err = p.largest(f, "attention.head_count", maxHeads, 0); return },
		func() (err error) { kvHeads, err = p.largest(f, "attention.head_count_kv", maxHeads, h.heads); return },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	p.trained = int(trained)
	if h.heads == 0 {
		if p.encoder || oneWidth[p.arch] || partly[p.arch] {
			return fmt.Errorf("%s.attention.head_count is missing or 0", p.arch)
		}
		return nil // a model without attention has no cache that grows with its context
	}
	headSize := h.embd / h.heads
	if p.encoder && (headSize < 1 || h.embd%h.heads != 0 || h.heads%max(kvHeads, 1) != 0) {
		return fmt.Errorf("%d attention heads, %d of them for keys, do not divide an embedding of %d", h.heads, kvHeads, h.embd)
	}
	var err error
	if keys, err = p.largest(f, "attention.key_length", maxEmbedding, headSize); err != nil {
		return err
	}
	if values, err = p.largest(f, "attention.value_length", maxEmbedding, headSize); err != nil {
		return err
	}
	if keys < 1 || values < 1 {
		return fmt.Errorf("heads of %d values for keys and %d for values are none", keys, values)
	}
	if err := p.checkHeads(f, kvHeads, keys, values); err != nil {
		return err
	}
	h.kvValues = kvHeads * (keys + values)
	for _, n := range []int64{keys, values} {
		if n%kvBlock != 0 {
			h.kvOdd = n
		}
	}
	if positions, ok := f.Tensor("position_embd.weight"); ok {
		if rows := positions.Dims[len(positions.Dims)-1]; len(positions.Dims) != 2 || rows < trained {
			return fmt.Errorf("%s.context_length is %d, but the table of positions has %d rows", p.arch, trained, rows)
		}
	}
	return nil
}

// checkEpsilons holds what is added under a norm's root to a number that can be:
// llama.cpp aborts in the first computation else.
func (p *plan) checkEpsilons(f *gguf.File) error {
	for _, name := range []string{"layer_norm_epsilon", "layer_norm_rms_epsilon", "group_norm_epsilon"} {
		key := p.arch + ".attention." + name
		if eps, ok := f.Float32(key); ok && !(eps >= 0 && eps <= 1) {
			return fmt.Errorf("%s is %v, 0 to 1 are taken", key, eps)
		}
	}
	return nil
}

// readVocabulary holds the tokenizer's tables to one length. llama.cpp indexes
// the others with the first one's.
func (p *plan) readVocabulary(f *gguf.File) error {
	table, ok := f.Tensor("token_embd.weight")
	if !ok || len(table.Dims) != 2 {
		return errors.New("the table token_embd.weight is missing or no table")
	}
	p.shape.table = table.Dims[1]
	p.vocab = int(table.Dims[1])
	tokens := f.Count("tokenizer.ggml.tokens")
	if tokens == 0 || f.Text("tokenizer.ggml.model") == "" {
		return errors.New("the file has no vocabulary (tokenizer.ggml.model, tokenizer.ggml.tokens), without which llama.cpp cannot tell where a text ends")
	}
	if tokens != table.Dims[1] {
		return fmt.Errorf("the vocabulary has %d tokens, the embedding table %d rows", tokens, table.Dims[1])
	}
	for key, element := range map[string]gguf.Kind{
		"tokenizer.ggml.tokens":     gguf.String,
		"tokenizer.ggml.scores":     gguf.Float32,
		"tokenizer.ggml.token_type": gguf.Int32,
		"tokenizer.ggml.merges":     gguf.String,
	} {
		kind, ok := f.ElementKind(key)
		if !ok {
			continue
		}
		if kind != element || key != "tokenizer.ggml.merges" && f.Count(key) != tokens {
			return fmt.Errorf("%s has %d elements of %s, the vocabulary %d tokens", key, f.Count(key), kind, tokens)
		}
	}
	return distinctTokens(f, tokens)
}

// distinctTokens refuses a token that stands in the vocabulary twice: llama.cpp
// keeps a map from texts to ids, and aborts where it has fewer than there are ids.
func distinctTokens(f *gguf.File, n int64) error {
	tokens, err := f.Strings("tokenizer.ggml.tokens", n)
	if err != nil {
		return err
	}
	ids := make(map[string]int, n)
	for id, text := range tokens {
		if text == "" {
			text = fmt.Sprintf("[EMPTY_%d]", id) // what llama.cpp calls it
		}
		if first, twice := ids[text]; twice {
			return fmt.Errorf("the tokens %d and %d of the vocabulary are both %.64q", first, id, text)
		}
		ids[text] = id
	}
	return nil
}

func (p *plan) readRole(f *gguf.File) error {
	pooling, err := f.Int(p.arch+".pooling_type", -1)
	if err != nil {
		return err
	}
	all := []workerkit.Pooling{workerkit.PoolingMean, workerkit.PoolingCLS, workerkit.PoolingLast}
	switch pooling {
	case filePoolingMean, filePoolingCLS, filePoolingLast:
		p.role, p.pooling, p.poolings = roleEmbedder, all[pooling-filePoolingMean], all
	case filePoolingRank:
		p.role = roleReranker
		return p.readRanking(f)
	case filePoolingNone, -1:
		if p.hasHead(f) {
			p.role = roleReranker
			return p.readRanking(f)
		}
		p.role = roleGenerator
		if p.whole {
			p.role, p.poolings = roleEmbedder, all
		}
	default:
		return fmt.Errorf("%s.pooling_type is %d, which is none of llama.cpp's", p.arch, pooling)
	}
	for _, name := range denseAfterPooling[p.arch] {
		if _, ok := f.Tensor(name); !ok {
			return fmt.Errorf("the dense layers behind the pooling (%s) were left out when this file was converted, and without them its vectors have nothing to do with the model's: convert it with --sentence-transformers-dense-modules", name)
		}
		p.poolings = []workerkit.Pooling{p.pooling} // the layers were trained behind this one
	}
	return nil
}

// limit decides the longest row.
func (p *plan) limit(s settings) error {
	p.maxTokens = p.trained
	if !p.encoder {
		p.maxTokens = min(p.trained, defaultDecoderContext)
	}
	if s.contextLength > p.trained {
		return workerkit.ConfigInvalid("runtime_config.%s is %d; allowed is 1 to %d, which this model was trained with", optContextLength, s.contextLength, p.trained)
	}
	if r := p.faithful; r.tokens > 0 {
		if s.contextLength > r.tokens {
			return workerkit.ConfigInvalid("runtime_config.%s is %d; allowed is 1 to %d: %s", optContextLength, s.contextLength, r.tokens, r.why)
		}
		p.maxTokens = min(p.maxTokens, r.tokens)
	}
	if s.contextLength > 0 {
		p.maxTokens = s.contextLength
	}
	if s.kvType == "q8_0" && p.shape.kvOdd != 0 {
		return workerkit.ConfigInvalid(`runtime_config.%s is "q8_0", which comes in blocks of %d, and this model's heads are %d wide: allowed are f16, bf16 and f32`, optKVType, kvBlock, p.shape.kvOdd)
	}
	if p.role == roleGenerator && p.maxTokens < 2 {
		return workerkit.ConfigInvalid("runtime_config.%s is %d; a prompt and one token need 2", optContextLength, p.maxTokens)
	}
	return nil
}
