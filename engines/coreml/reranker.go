package coreml

import (
	"context"
	"slices"

	"github.com/synapse-module/workers/workerkit"
)

// reranker is a session that reads a query and a document as one row and gives
// one score.
type reranker struct {
	*session
	desc workerkit.Description

	ids, types []int32 // the pairs of a request, one behind the other
	rows       batch   // views into them
	scores     []float32
}

// Describe implements [workerkit.Model].
func (m *reranker) Describe() workerkit.Description     { return m.desc }
func (m *reranker) description() *workerkit.Description { return &m.desc }

// Close implements [workerkit.Model].
func (m *reranker) Close() error {
	m.close()
	return nil
}

// checkRanker refuses what cannot be a faithful cross-encoder.
func (s *session) checkRanker() error {
	layout := s.meta.pair
	if s.rank != 2 || s.dims != 1 {
		return workerkit.ArtifactInvalid("the artifact says how a pair is laid out, but the model gives %d values a row where a ranking head gives one", s.dims)
	}
	if n := layout.Len([]int32{0}, []int32{0}); n > s.longest() {
		return workerkit.ArtifactInvalid("a pair has %d tokens at least, the longest bucket %d", n, s.longest())
	}
	for _, piece := range layout.Pair {
		if piece.Type != 0 && s.roles.types == "" {
			return workerkit.ArtifactInvalid("the pair's layout has the token type %d and the model no input for token types: its scores cannot be those of the model it was made from; convert it with %s", piece.Type, inputNames.types[0])
		}
		for _, id := range piece.IDs {
			if s.meta.vocabSize > 0 && int(id) >= s.meta.vocabSize {
				return workerkit.ArtifactInvalid("the pair's layout has the id %d, the vocabulary is 0 to %d", id, s.meta.vocabSize-1)
			}
		}
	}
	return nil
}

// Rerank implements [workerkit.Reranker].
func (m *reranker) Rerank(ctx context.Context, query []int32, docs [][]int32) ([]float32, error) {
	if err := m.checkPadding(slices.Concat([][]int32{query}, docs)); err != nil {
		return nil, err
	}
	if err := m.lay(query, docs); err != nil {
		return nil, err
	}
	m.scores = slices.Grow(m.scores[:0], len(docs))[:len(docs)]
	err := m.run(ctx, m.rows, func(row int, values []float32) { m.scores[row] = values[0] })
	if err != nil {
		return nil, workerkit.EngineFailed("%v", err)
	}
	return m.scores, nil
}

// lay writes the pairs. One that is too long is refused, never cut.
func (m *reranker) lay(query []int32, docs [][]int32) error {
	layout := m.meta.pair
	query = layout.Bare(query)
	total := 0
	for i, doc := range docs {
		n := layout.Len(query, layout.Bare(doc))
		if n > m.desc.MaxTokens {
			return workerkit.RequestInvalid("candidates[%d]: the query and this document make a pair of %d tokens, this model takes at most %d; nothing is truncated here", i, n, m.desc.MaxTokens)
		}
		total += n
	}
	// Room for all at once: the rows are views, which must not move.
	m.ids, m.types = slices.Grow(m.ids[:0], total), slices.Grow(m.types[:0], total)
	m.rows.ids, m.rows.types = m.rows.ids[:0], m.rows.types[:0]
	for _, doc := range docs {
		doc, from := layout.Bare(doc), len(m.ids)
		m.ids, _ = layout.Append(m.ids, query, doc)
		m.types = layout.AppendTypes(m.types, query, doc)
		m.rows.ids = append(m.rows.ids, m.ids[from:len(m.ids):len(m.ids)])
		m.rows.types = append(m.rows.types, m.types[from:len(m.types):len(m.types)])
	}
	return nil
}
