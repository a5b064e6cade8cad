//go:build cgo

package onnx

import (
	"slices"
	"strings"

	"github.com/synapse-module/workers/engines/onnx/internal/detokenizer"
	"github.com/synapse-module/workers/engines/onnx/internal/onnxfile"
	"github.com/synapse-module/workers/engines/onnx/internal/sidecar"
	"github.com/synapse-module/workers/workerkit"
)

// The names of exporters for a decoder's cache of keys and values: what goes in
// as past_key_values.3.key comes out, longer, as present.3.key.
const (
	pastPrefix    = "past_key_values"
	presentPrefix = "present"
	useCache      = "use_cache_branch" // of graphs that hold a branch without cache as well
)

// maxLogitsBytes bounds the logits of one call: a graph gives those of every
// token fed, and a vocabulary is 200 KiB a token.
const maxLogitsBytes = 32 << 20

// cached is one tensor of the cache: [1, heads, tokens, dims].
type cached struct {
	past, present string
	heads, dims   int64
}

// decoderPlan is what is known of a generating graph before its session is made.
type decoderPlan struct {
	arch          string
	inputs        []input
	useCache      bool // the graph has that input
	logits        onnxfile.Value
	cache         []cached
	cacheType     onnxfile.Type
	vocab         int
	context       int // tokens that prompt and continuation may have together
	firstPosition int
	chunk         int // most tokens of a prompt fed at once
	words         *detokenizer.Vocabulary
}

// isDecoder says that the graph generates with a cache.
func isDecoder(m *onnxfile.Model) bool {
	return slices.ContainsFunc(m.Inputs, func(v onnxfile.Value) bool { return strings.HasPrefix(v.Name, pastPrefix) })
}

func planDecoder(s source, c workerkit.Config) (p decoderPlan, err error) {
	rest := onnxfile.Model{}
	for _, v := range s.graph.Inputs {
		switch {
		case strings.HasPrefix(v.Name, pastPrefix):
			if err := p.addCache(s.graph, v); err != nil {
				return p, err
			}
		case v.Name == useCache && v.Tensor && v.Type == onnxfile.Bool:
			p.useCache = true
		default:
			rest.Inputs = append(rest.Inputs, v)
		}
	}
	// The roles of the others are an encoder's; the tables are looked up in the
	// whole graph.
	whole := *s.graph
	whole.Inputs = rest.Inputs
	if p.inputs, err = assignInputs(&whole); err != nil {
		return p, err
	}
	if nameOf(p.inputs, roleTypes) != "" {
		return p, workerkit.ArtifactInvalid("a generating graph with token types is not supported")
	}
	if p.logits, err = decoderLogits(s.graph); err != nil {
		return p, err
	}
	if p.vocab, p.context, err = limits(s, p.inputs, c); err != nil {
		return p, err
	}
	if n := p.logits.Dims[2]; n > 0 {
		// Heads are padded to a round number over what the tokenizer has, or not.
		p.vocab = min(p.vocab, int(n))
	}
	p.arch, p.firstPosition = s.meta.Arch, s.meta.FirstPosition
	if p.arch == "" {
		p.arch = "onnx"
	}
	p.chunk = max(1, min(c.Int(optBatchTokens), maxLogitsBytes/(4*p.width())))
	return p, p.readWords(s)
}

// width is the length of a token's logits.
func (p *decoderPlan) width() int {
	if n := p.logits.Dims[2]; n > 0 {
		return int(n)
	}
	return p.vocab
}

// names are the inputs' and outputs' of a session for the plan, in order.
func (p *decoderPlan) names() (inputs, outputs []string) {
	for _, in := range p.inputs {
		inputs = append(inputs, in.Name)
	}
	if p.useCache {
		inputs = append(inputs, useCache)
	}
	outputs = append(outputs, p.logits.Name)
	for _, c := range p.cache {
		inputs, outputs = append(inputs, c.past), append(outputs, c.present)
	}
	return inputs, outputs
}

func (p *decoderPlan) addCache(m *onnxfile.Model, v onnxfile.Value) error {
	present := presentPrefix + strings.TrimPrefix(v.Name, pastPrefix)
	i := slices.IndexFunc(m.Outputs, func(o onnxfile.Value) bool { return o.Name == present })
	if i < 0 {
		return workerkit.ArtifactInvalid("the graph takes %v and does not give %.64q back", v, present)
	}
	if !v.Tensor || len(v.Dims) != 4 || v.Dims[1] < 1 || v.Dims[3] < 1 || m.Outputs[i].Type != v.Type ||
		(v.Type != onnxfile.Float && v.Type != onnxfile.Float16 && v.Type != onnxfile.BFloat16) {
		return workerkit.ArtifactInvalid("the graph's cache %v must be float [batch, heads, tokens, dims] with heads and dims fixed, and come back as the same type", v)
	}
	if p.cacheType != 0 && p.cacheType != v.Type {
		return workerkit.ArtifactInvalid("the graph's cache has tensors of the types %v and %v", p.cacheType, v.Type)
	}
	p.cacheType = v.Type
	p.cache = append(p.cache, cached{v.Name, present, v.Dims[1], v.Dims[3]})
	return nil
}

func decoderLogits(m *onnxfile.Model) (onnxfile.Value, error) {
	for _, v := range m.Outputs {
		float := v.Type == onnxfile.Float || v.Type == onnxfile.Float16 || v.Type == onnxfile.BFloat16
		if v.Name == outputNames[logits][0] && v.Tensor && float && len(v.Dims) == 3 {
			return v, nil
		}
	}
	return onnxfile.Value{}, workerkit.ArtifactInvalid("a generating graph must give %q, float [batch, sequence, vocabulary]; its outputs are %s", outputNames[logits][0], list(m.Outputs))
}

// readWords reads the text of the tokens, and which of them end a text.
func (p *decoderPlan) readWords(s source) error {
	if s.files.FS == nil {
		return workerkit.ArtifactInvalid("%s generates, and a bare file does not say the text of its tokens: load its directory, with tokenizer.json, under a tree digest", s.name)
	}
	tokenizer, err := sidecar.Tokenizer(s.files)
	if err != nil {
		return workerkit.ArtifactInvalid("%s: %v", s.name, err)
	}
	if tokenizer == nil {
		return workerkit.ArtifactInvalid("%s generates, and there is no tokenizer.json that says the text of its tokens", s.name)
	}
	if p.words, err = detokenizer.New(tokenizer, p.vocab, s.meta.Ends); err != nil {
		return workerkit.ArtifactInvalid("%s: %v", s.name, err)
	}
	return nil
}
