package workerkit

import (
	"context"
	"math"
	"slices"

	"github.com/synapse-module/workers/protocol"
)

func (s *server) embed(ctx context.Context, r *request) (answer, error) {
	var q protocol.EmbedBatch
	if err := r.header.Decode(&q); err != nil {
		return answer{}, err
	}
	m, err := s.model(q.ModelRef)
	if err != nil {
		return answer{}, err
	}
	if m.embedder == nil {
		return answer{}, Unsupported("EMBED_BATCH: %s is no embedding model", m.desc.Arch)
	}
	pooling, err := choosePooling(m.desc, Pooling(q.Pooling))
	if err != nil {
		return answer{}, err
	}
	name := func(i int) string { return itemName(i, q.Items[i].ID) }
	rows, err := s.splitRows(r.raw, m.desc, len(q.Items), func(i int) int { return q.Items[i].NTokens }, name)
	if err != nil {
		return answer{}, err
	}
	if err := s.fits(len(rows), m.desc.Dims); err != nil {
		return answer{}, err
	}
	a := answer{message: protocol.Vectors{ReqID: q.ReqID, Dims: m.desc.Dims, N: len(rows)}, raw: [][]byte{}}
	if len(rows) == 0 {
		return a, nil
	}
	vectors, err := m.embedder.Embed(ctx, rows, pooling)
	if err != nil {
		return answer{}, err
	}
	if len(vectors) != len(rows) {
		return answer{}, EngineFailed("the engine gave %d vectors for %d rows", len(vectors), len(rows))
	}
	parts := s.parts[:0]
	for i, v := range vectors {
		if len(v) != m.desc.Dims {
			return answer{}, EngineFailed("the engine gave %d values for %s, this model has %d dims", len(v), name(i), m.desc.Dims)
		}
		if !finish(v, q.Normalize) {
			return answer{}, EngineFailed("the vector of %s holds a value that is not finite: the artifact or the engine's arithmetic is at fault; try this row alone and another precision", name(i))
		}
		parts = append(parts, protocol.Bytes(v))
	}
	s.parts, a.raw = parts, parts
	return a, nil
}

// choosePooling is the pooling asked for, or the model's own. One that the model
// has not is unsupported, never something near it.
func choosePooling(d Description, asked Pooling) (Pooling, error) {
	switch asked {
	case "":
		if d.DefaultPooling == "" {
			return "", RequestInvalid("pooling is absent, and the artifact does not say its own: name one of %v", d.Poolings)
		}
		return d.DefaultPooling, nil
	case PoolingMean, PoolingCLS, PoolingLast:
		if !slices.Contains(d.Poolings, asked) {
			return "", Unsupported("pooling %q: this model has %v", asked, d.Poolings)
		}
		return asked, nil
	}
	return "", RequestInvalid("pooling %.64q is none of %q, %q, %q", asked, PoolingMean, PoolingCLS, PoolingLast)
}

// finish scales v to Euclidean length 1 where that is asked for, and reports
// whether every value is finite. The sum is in float64: no f32 squared overflows
// it. A vector of zeros has no direction and stays as it is.
func finish(v []float32, normalize bool) bool {
	var sum float64
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	if math.IsNaN(sum) || math.IsInf(sum, 0) {
		return false
	}
	if normalize && sum > 0 {
		scale := 1 / math.Sqrt(sum)
		for i, x := range v {
			v[i] = float32(float64(x) * scale)
		}
	}
	return true
}
