package llama

import (
	"context"

	"github.com/synapse-module/workers/engines/llama/internal/capi"
	"github.com/synapse-module/workers/workerkit"
)

// reranker is a cross-encoder, whose score is the model's one logit, as trained;
// or a decoder that is asked by a template, whose score is the share of "yes".
type reranker struct {
	*base
	vocabulary *vocabulary // of a template
	width      int         // values that the model gives for a pair
	score      int         // which of them is the score

	pairs   []int32 // ids of all pairs, one after another
	rows    [][]int32
	keep    []float32
	vectors [][]float32
	scores  []float32
}

// newReranker is for a loaded model. It runs on the library's thread.
func newReranker(b *base) (workerkit.Model, error) {
	lib, m := b.engine.lib, &reranker{base: b, width: 1}
	if t := b.plan.template; t != nil {
		m.width, m.score = 2, t.yes
		m.vocabulary = newVocabulary(lib, b.model, b.plan.vocab)
		var err error
		if b.plan.layout, err = t.layout(m.vocabulary); err != nil {
			return nil, err
		}
	}
	if n := lib.ModelNClsOut(b.model); int(n) != m.width {
		return nil, workerkit.ArtifactInvalid("llama.cpp reads a head of %d values, this kind of reranker has %d", n, m.width)
	}
	if b.plan.headOfFirst && !lib.ReadsHeadPooling() {
		return nil, workerkit.ArtifactInvalid("its head takes the first token's state, and llama.cpp %s would give it the mean of all: run it with the libraries of `make llama-libs` (0.5 and later)", lib.LlamaCPP)
	}
	_, err := b.context(capi.PoolingRank, b.settings.batchTokens)
	return m, err
}

// Rerank implements [workerkit.Reranker].
func (m *reranker) Rerank(ctx context.Context, query []int32, docs [][]int32) ([]float32, error) {
	err := m.run(ctx, func() (err error) {
		if err = m.pair(query, docs); err != nil {
			return err
		}
		m.vectors, err = m.pooled(capi.PoolingRank, m.rows, m.width, &m.keep, m.vectors[:0])
		return err
	})
	if err != nil {
		return nil, err
	}
	m.scores = m.scores[:0]
	for _, v := range m.vectors {
		m.scores = append(m.scores, v[m.score])
	}
	return m.scores, nil
}

// pair lays out the rows. Ids of the second segment are moved to its own
// embeddings, where the file has them.
func (m *reranker) pair(query []int32, docs [][]int32) error {
	if t := m.plan.template; t != nil {
		if err := t.check(m.vocabulary, query, docs); err != nil {
			return err
		}
	}
	layout := m.plan.layout
	query = layout.Bare(query)
	total := 0
	for i, doc := range docs {
		n := layout.Len(query, layout.Bare(doc))
		if n > m.plan.maxTokens {
			return workerkit.RequestInvalid("the query with candidates[%d] has %d tokens, %d of them special ones; this model takes at most %d; nothing is truncated here", i, n, n-len(query)-len(layout.Bare(doc)), m.plan.maxTokens)
		}
		total += n
	}
	if cap(m.pairs) < total {
		m.pairs = make([]int32, 0, total)
	}
	m.pairs, m.rows = m.pairs[:0], m.rows[:0]
	for _, doc := range docs {
		start := len(m.pairs)
		var second int
		m.pairs, second = layout.Append(m.pairs, query, layout.Bare(doc))
		for i := second; i < len(m.pairs); i++ {
			m.pairs[i] += m.plan.segmentOffset
		}
		m.rows = append(m.rows, m.pairs[start:])
	}
	return nil
}
