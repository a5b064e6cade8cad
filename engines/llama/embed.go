package llama

import (
	"context"

	"github.com/synapse-module/workers/workerkit"
)

// embedder is a model that gives vectors.
type embedder struct {
	*base
	keep    []float32   // vectors of all batches but the last
	vectors [][]float32 // reused
}

// Embed implements [workerkit.Embedder].
func (m *embedder) Embed(ctx context.Context, rows [][]int32, p workerkit.Pooling) (vectors [][]float32, err error) {
	err = m.run(ctx, func() error {
		vectors, err = m.pooled(filePoolings[p], rows, m.dims, &m.keep, m.vectors[:0])
		return err
	})
	if err != nil {
		return nil, err
	}
	m.vectors = vectors
	return vectors, nil
}
