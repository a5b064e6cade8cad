//go:build cgo

package onnx

import (
	"context"
	"math"
	"slices"

	"github.com/synapse-module/workers/engines/internal/pairs"
	"github.com/synapse-module/workers/engines/onnx/internal/sidecar"
	"github.com/synapse-module/workers/workerkit"
)

// reranker is a loaded cross-encoder: a graph that reads a query and a document
// as one row.
type reranker struct {
	runner  *runner
	batcher batcher
	desc    workerkit.Description
	width   int
	layout  pairs.Layout
	scores  sidecar.Scores
	label   int // whose logit is the score

	ids, types []int32 // the pairs of a request, one behind the other
	rows       rows    // views into them
	values     []float32
}

func newReranker(r *runner, p plan, desc workerkit.Description) (*reranker, error) {
	label := p.label
	switch labels := r.dims; {
	case label >= labels:
		return nil, workerkit.ConfigInvalid("runtime_config.%s is %d; the head has the labels 0 to %d", optLabel, label, labels-1)
	case labels > 1 && label < 0:
		return nil, workerkit.ConfigInvalid("the head has %d labels: say with runtime_config.%s which one is the score", labels, optLabel)
	case labels > 1 && p.scores == sidecar.Sigmoid:
		return nil, workerkit.ConfigInvalid("runtime_config.%s is %q, but the head has %d labels: allowed are %q and %q", optScores, p.scores, labels, sidecar.Raw, scoresSoftmax)
	case labels == 1 && p.scores == scoresSoftmax:
		return nil, workerkit.ConfigInvalid("runtime_config.%s is %q, but the head has one label: allowed are %q and %q", optScores, p.scores, sidecar.Raw, sidecar.Sigmoid)
	}
	m := &reranker{
		runner: r, batcher: p.batcher, desc: desc, width: p.width,
		layout: p.layout, scores: p.scores, label: max(0, label),
	}
	// The pair's special tokens and token types have not been run yet.
	if n := m.layout.Len([]int32{0}, []int32{0}); n > p.maxTokens {
		return nil, workerkit.ArtifactInvalid("a pair has %d tokens at least, the model takes %d", n, p.maxTokens)
	}
	if _, err := m.Rerank(context.Background(), []int32{0}, [][]int32{{0}}); err != nil {
		return nil, workerkit.ArtifactInvalid("the model fails on a pair laid out as its tokenizer says: %v", err)
	}
	return m, nil
}

func (m *reranker) Describe() workerkit.Description { return m.desc }

func (m *reranker) Close() error { return m.runner.close() }

// Rerank implements [workerkit.Reranker].
func (m *reranker) Rerank(ctx context.Context, query []int32, docs [][]int32) ([]float32, error) {
	if err := m.lay(query, docs); err != nil {
		return nil, err
	}
	m.values = slices.Grow(m.values[:0], len(docs))[:len(docs)]
	order, cuts := m.batcher.pack(m.rows.ids)
	start := 0
	for _, end := range cuts {
		if err := ctx.Err(); err != nil {
			return nil, givenUp(err)
		}
		batch := order[start:end]
		start = end
		out, err := m.runner.run(m.rows, batch, max(m.width, len(m.rows.ids[batch[0]])))
		if err != nil {
			return nil, runError(err)
		}
		labels := m.runner.dims
		for k, i := range batch {
			m.values[i] = m.score(out[k*labels : (k+1)*labels])
		}
	}
	return m.values, nil
}

// lay writes the pairs. A pair that is too long is refused, never cut.
func (m *reranker) lay(query []int32, docs [][]int32) error {
	query = m.layout.Bare(query)
	total := 0
	for i, doc := range docs {
		n := m.layout.Len(query, m.layout.Bare(doc))
		if n > m.desc.MaxTokens {
			return workerkit.RequestInvalid("candidates[%d]: the query and this document make a pair of %d tokens, this model takes at most %d; nothing is truncated here", i, n, m.desc.MaxTokens)
		}
		total += n
	}
	// Room for all at once: the rows are views, which must not move.
	m.ids = slices.Grow(m.ids[:0], total)
	m.types = slices.Grow(m.types[:0], total)
	m.rows.ids, m.rows.types = m.rows.ids[:0], m.rows.types[:0]
	for _, doc := range docs {
		doc, from := m.layout.Bare(doc), len(m.ids)
		m.ids, _ = m.layout.Append(m.ids, query, doc)
		m.types = m.layout.AppendTypes(m.types, query, doc)
		m.rows.ids = append(m.rows.ids, m.ids[from:])
		m.rows.types = append(m.rows.types, m.types[from:])
	}
	return nil
}

// score turns a pair's logits into its score.
func (m *reranker) score(logits []float32) float32 {
	x := float64(logits[m.label])
	switch m.scores {
	case sidecar.Sigmoid:
		return float32(1 / (1 + math.Exp(-x)))
	case scoresSoftmax:
		var sum float64
		for _, y := range logits {
			sum += math.Exp(float64(y) - x)
		}
		return float32(1 / sum)
	}
	return logits[m.label]
}
