package onnx

import (
	"context"
	"slices"

	"github.com/synapse-module/workers/engines/internal/pooling"
	"github.com/synapse-module/workers/workerkit"
)

// encoder is a loaded graph whose hidden states are pooled here.
type encoder struct {
	runner  *runner
	batcher batcher
	desc    workerkit.Description
	width   int // of every call, where the graph fixes it; else 0

	values  []float32 // the vectors of the last request
	vectors [][]float32
}

func (e *encoder) Describe() workerkit.Description { return e.desc }

func (e *encoder) Close() error { return e.runner.close() }

// Embed implements [workerkit.Embedder].
func (e *encoder) Embed(ctx context.Context, rows [][]int32, p workerkit.Pooling) ([][]float32, error) {
	n, d := len(rows), e.desc.Dims
	e.values = slices.Grow(e.values[:0], n*d)[:n*d]
	e.vectors = slices.Grow(e.vectors[:0], n)[:n]
	order, cuts := e.batcher.pack(rows)
	start := 0
	for _, end := range cuts {
		if err := ctx.Err(); err != nil {
			return nil, workerkit.EngineFailed("the request was given up: %v", err)
		}
		batch := order[start:end]
		start = end
		width := max(e.width, len(rows[batch[0]]))
		states, err := e.runner.run(rows, batch, width)
		if err != nil {
			return nil, runError(err)
		}
		for k, i := range batch {
			at := k * width * d
			e.vectors[i] = e.values[i*d : (i+1)*d : (i+1)*d]
			pool(e.vectors[i], states[at:at+len(rows[i])*d], p)
		}
	}
	return e.vectors, nil
}

func pool(dst, states []float32, p workerkit.Pooling) {
	switch p {
	case workerkit.PoolingCLS:
		pooling.CLS(dst, states)
	case workerkit.PoolingLast:
		pooling.Last(dst, states)
	default:
		pooling.Mean(dst, states)
	}
}
