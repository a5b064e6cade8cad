//go:build cgo

package onnx

import (
	"context"
	"slices"

	"github.com/synapse-module/workers/engines/internal/pooling"
	"github.com/synapse-module/workers/engines/onnx/internal/sidecar"
	"github.com/synapse-module/workers/workerkit"
)

// encoder is a loaded graph that gives embeddings.
type encoder struct {
	runner  *runner
	batcher batcher
	desc    workerkit.Description
	width   int // of every call, where the graph fixes it; else 0
	after   []sidecar.Layer

	values  []float32 // the vectors of the last request
	vectors [][]float32
	scratch []float32 // between the layers after pooling
}

func newEncoder(r *runner, p plan, desc workerkit.Description) (*encoder, error) {
	desc.Dims, desc.DefaultPooling = r.dims, p.pooling
	desc.Poolings = allPoolings
	if p.needsOwnPooling() {
		desc.Poolings = []workerkit.Pooling{p.pooling}
	}
	for _, l := range p.after {
		if l.Normalize {
			continue
		}
		if l.In != desc.Dims {
			return nil, workerkit.ArtifactInvalid("a dense layer takes %d values, what stands before it gives %d", l.In, desc.Dims)
		}
		desc.Dims = l.Out
	}
	return &encoder{runner: r, batcher: p.batcher, desc: desc, width: p.width, after: p.after}, nil
}

func (e *encoder) Describe() workerkit.Description { return e.desc }

func (e *encoder) Close() error { return e.runner.close() }

// Embed implements [workerkit.Embedder].
func (e *encoder) Embed(ctx context.Context, ids [][]int32, p workerkit.Pooling) ([][]float32, error) {
	n, dims, states := len(ids), e.desc.Dims, e.runner.dims
	e.values = slices.Grow(e.values[:0], n*dims)[:n*dims]
	e.vectors = slices.Grow(e.vectors[:0], n)[:n]
	order, cuts := e.batcher.pack(ids)
	start := 0
	for _, end := range cuts {
		if err := ctx.Err(); err != nil {
			return nil, givenUp(err)
		}
		batch := order[start:end]
		start = end
		width := max(e.width, len(ids[batch[0]]))
		out, err := e.runner.run(rows{ids: ids}, batch, width)
		if err != nil {
			return nil, runError(err)
		}
		for k, i := range batch {
			e.vectors[i] = e.values[i*dims : (i+1)*dims : (i+1)*dims]
			row := out[k*states:][:states]
			if e.runner.output.kind == hiddenStates {
				row = out[k*width*states:][:len(ids[i])*states]
			}
			e.finish(e.vectors[i], row, p)
		}
	}
	return e.vectors, nil
}

// finish pools a row's states, or takes the embedding that the graph pooled, and
// passes it through the layers that follow.
func (e *encoder) finish(dst, row []float32, p workerkit.Pooling) {
	if len(e.after) == 0 {
		pool(dst, row, p)
		return
	}
	e.scratch = slices.Grow(e.scratch[:0], e.runner.dims)[:e.runner.dims]
	pool(e.scratch, row, p)
	e.scratch = apply(dst, e.scratch, e.after)
}

// pool reduces a row's states. Of one state, the graph's own embedding, every
// pooling is the state itself.
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
