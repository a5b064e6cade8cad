//go:build cgo

package onnx

import (
	"slices"

	"github.com/synapse-module/workers/engines/internal/pairs"
	"github.com/synapse-module/workers/engines/onnx/internal/onnxfile"
	"github.com/synapse-module/workers/engines/onnx/internal/sidecar"
	"github.com/synapse-module/workers/protocol"
	"github.com/synapse-module/workers/workerkit"
)

// plan is what is known of a model before its session is made.
type plan struct {
	arch          string
	inputs        []input
	output        output
	dims          int // of the output; 0 where the file does not say
	vocab         int
	maxTokens     int
	firstPosition int
	width         int // of every call, where the graph fixes it; else 0
	batcher       batcher
	placement     *protocol.Placement // nil for the CPU alone

	pooling workerkit.Pooling // an embedder's own; empty where it is not known
	after   []sidecar.Layer

	layout pairs.Layout // a reranker's
	scores sidecar.Scores
	label  int // -1 where none was told
}

// makePlan decides everything about a model that can be decided without the
// library.
func makePlan(s source, c workerkit.Config) (p plan, err error) {
	if p.inputs, err = assignInputs(s.graph); err != nil {
		return p, err
	}
	if p.output, err = chooseOutput(s.graph, s.meta, c.String(optOutput)); err != nil {
		return p, err
	}
	if p.vocab, p.maxTokens, err = limits(s, p.inputs, c); err != nil {
		return p, err
	}
	p.arch, p.firstPosition = s.meta.Arch, s.meta.FirstPosition
	if p.arch == "" {
		p.arch = "onnx" // a bare file has no name for it
	}
	if k := len(p.output.Dims); k > 0 && p.output.Dims[k-1] > 0 {
		p.dims = int(p.output.Dims[k-1])
	} else if p.output.kind == hiddenStates {
		p.dims = s.graph.Width(nameOf(p.inputs, roleIDs))
	}
	if err := p.planCalls(s.graph, c); err != nil {
		return p, err
	}
	if p.output.kind == logits {
		return p, p.planReranker(s, c)
	}
	return p, p.planEmbedder(s, c)
}

// planCalls decides which rows may share a call.
func (p *plan) planCalls(m *onnxfile.Model, c workerkit.Config) error {
	if level := c.String(optOptimization); saturates() && multipliesBytes(m) && (level == "off" || level == "basic") {
		return workerkit.ConfigInvalid("runtime_config.%s is %q: without the level \"extended\" this CPU (%s) computes int8 models wrong", optOptimization, level, cpuClass())
	}
	masked := nameOf(p.inputs, roleMask) != ""
	p.batcher = batcher{tokens: c.Int(optBatchTokens), padded: masked}
	switch c.String(optBatching) {
	case batchingAlone:
		p.batcher.alone = true
	case batchingAuto:
		p.batcher.alone = quantizes(m)
	}
	for _, in := range p.inputs {
		if len(in.Dims) != 2 {
			continue
		}
		switch batch := in.Dims[0]; {
		case batch > 1:
			return workerkit.ArtifactInvalid("the graph's input %v fixes the batch to %d rows; export it with an open batch, or 1", in.Value, batch)
		case batch == 1:
			p.batcher.alone = true
		}
		if width := in.Dims[1]; width > 0 {
			p.width = int(width)
		}
	}
	if p.width == 0 {
		return nil
	}
	if !masked {
		return workerkit.ArtifactInvalid("the graph fixes the length to %d tokens and has no attention mask: shorter rows cannot be told from padding", p.width)
	}
	p.maxTokens = min(p.maxTokens, p.width)
	return nil
}

// quantizesToInt8 is the accuracy_level of MatMulNBits that quantises the
// activations as well as the weights.
const quantizesToInt8 = 4

// quantizes says that rows in one call can move each other: the graph takes
// scales over all values of a call, or its kernels for quantised activations
// depend on how many rows there are.
func quantizes(m *onnxfile.Model) bool {
	if m.Ops["DynamicQuantizeLinear"]+m.Ops["DynamicQuantizeMatMul"]+m.Ops["DynamicQuantizeLSTM"] > 0 {
		return true
	}
	return slices.ContainsFunc(m.Nodes, func(n onnxfile.Node) bool {
		return n.Op == "MatMulNBits" && n.Ints["accuracy_level"] == quantizesToInt8
	})
}

// multipliesBytes says that the graph has integer products, whose kernels
// saturate on some CPUs.
func multipliesBytes(m *onnxfile.Model) bool {
	return m.Ops["MatMulInteger"]+m.Ops["DynamicQuantizeMatMul"]+m.Ops["QLinearMatMul"]+m.Ops["QGemm"]+m.Ops["QAttention"] > 0
}

// allPoolings is what hidden states can become.
var allPoolings = []workerkit.Pooling{workerkit.PoolingMean, workerkit.PoolingCLS, workerkit.PoolingLast}

func (p *plan) planEmbedder(s source, c workerkit.Config) error {
	p.pooling, p.after = s.meta.Pooling, s.meta.After
	if told := workerkit.Pooling(c.String(optPooling)); told != "" {
		if p.pooling != "" && told != p.pooling && p.needsOwnPooling() {
			return workerkit.ConfigInvalid("runtime_config.%s is %q; this model works with its own, %q, alone", optPooling, told, p.pooling)
		}
		p.pooling = told
	}
	if p.output.kind == pooledRows {
		// The graph's output has passed through the layers already.
		p.after = nil
	}
	if p.needsOwnPooling() && p.pooling == "" {
		return workerkit.ConfigInvalid("the graph or the layers behind it go with one pooling alone, and no sidecar says which: set runtime_config.%s", optPooling)
	}
	return nil
}

// needsOwnPooling says that only the model's own pooling gives its embedding:
// the graph pools itself, or layers follow that were trained on it.
func (p *plan) needsOwnPooling() bool { return p.output.kind == pooledRows || len(p.after) > 0 }

func (p *plan) planReranker(s source, c workerkit.Config) error {
	var told bool
	var err error
	if names := c.Strings(optPair); len(names) > 0 {
		p.layout, err = parsePair(names)
		told = err == nil
	} else if s.files.FS != nil {
		if p.layout, told, err = sidecar.PairLayout(s.files); err != nil {
			err = workerkit.ArtifactInvalid("%s: %v", s.name, err)
		}
	}
	if err != nil {
		return err
	}
	if !told {
		return workerkit.ConfigInvalid("the model ranks pairs, and no tokenizer.json beside it tells how they are laid out: set runtime_config.%s", optPair)
	}
	for _, piece := range p.layout.Pair {
		if i := slices.IndexFunc(piece.IDs, func(id int32) bool { return id < 0 || int(id) >= p.vocab }); i >= 0 {
			return workerkit.ConfigInvalid("the pair's layout has the id %d, the vocabulary is 0 to %d", piece.IDs[i], p.vocab-1)
		}
	}
	p.scores, p.label = s.meta.Scores, -1
	if told := sidecar.Scores(c.String(optScores)); told != "" {
		p.scores = told
	}
	if c.Has(optLabel) {
		p.label = c.Int(optLabel)
	}
	if p.scores == "" {
		return workerkit.ConfigInvalid("the model ranks pairs, and no config.json tells what its logits become: set runtime_config.%s", optScores)
	}
	return nil
}
