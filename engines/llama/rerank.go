package llama

import (
	"context"

	"github.com/synapse-module/workers/engines/llama/internal/capi"
	"github.com/synapse-module/workers/workerkit"
)

// reranker is a cross-encoder. Its score is the model's one logit, as trained.
type reranker struct {
	*base
	pairs   []int32 // ids of all pairs, one after another
	rows    [][]int32
	keep    []float32
	vectors [][]float32
	scores  []float32
}

// Rerank implements [workerkit.Reranker].
func (m *reranker) Rerank(ctx context.Context, query []int32, docs [][]int32) ([]float32, error) {
	if err := m.pair(query, docs); err != nil {
		return nil, err
	}
	err := m.run(ctx, func() (err error) {
		m.vectors, err = m.pooled(capi.PoolingRank, m.rows, 1, &m.keep, m.vectors[:0])
		return err
	})
	if err != nil {
		return nil, err
	}
	m.scores = m.scores[:0]
	for _, v := range m.vectors {
		m.scores = append(m.scores, v[0])
	}
	return m.scores, nil
}

// pair lays out the rows. Ids of the second segment are moved to its own
// embeddings, where the file has them.
func (m *reranker) pair(query []int32, docs [][]int32) error {
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
