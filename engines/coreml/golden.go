package coreml

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/synapse-module/workers/protocol"
	"github.com/synapse-module/workers/workerkit"
)

// What golden answers are held to at LOAD. Float16 and the devices' own
// arithmetic stay well within them; a wrong mask, an overflow or a bucket that
// computes something else does not. Certification measures far closer.
const (
	minGoldenCosine    = 0.99
	maxGoldenScoreDiff = 0.1
)

// goldenResult is how far a bucket's golden rows were from what they should be.
type goldenResult struct {
	bucket *bucket
	rows   int     // golden rows that fit the bucket
	worst  float64 // the least cosine of vectors, or the largest difference of scores
}

// checkGolden runs every golden row through every bucket that it fits. A model
// was seen to be right at most lengths and wrong at some.
func (s *session) checkGolden(ctx context.Context, m model) (results []goldenResult, err error) {
	all := s.buckets
	defer func() { s.buckets = all }()
	for i := range all {
		s.buckets = all[i : i+1]
		r := goldenResult{bucket: &all[i], worst: math.NaN()}
		for n, g := range s.meta.golden {
			if s.goldenLength(g) > all[i].tokens {
				continue
			}
			got, err := m.golden(ctx, g)
			if err != nil {
				return nil, workerkit.ArtifactInvalid("golden row %d fails in the bucket %v of %v, so its other answers cannot be trusted either: %v", n, &all[i], all[i].unit, reason(err))
			}
			if r.rows++; !m.better(got, r.worst) {
				r.worst = got
			}
		}
		results = append(results, r)
	}
	return results, nil
}

func (s *session) goldenLength(g golden) int {
	if s.meta.pair != nil {
		return s.meta.pair.Len(s.meta.pair.Bare(g.Query), s.meta.pair.Bare(g.Document))
	}
	return len(g.IDs)
}

// golden returns the cosine of a golden row's vector to what it should be.
func (m *encoder) golden(ctx context.Context, g golden) (float64, error) {
	if len(g.IDs) == 0 || len(g.Vector) != m.dims {
		return 0, fmt.Errorf("it has %d ids and a vector of %d values, this model gives %d", len(g.IDs), len(g.Vector), m.dims)
	}
	p := m.desc.DefaultPooling
	if p == "" {
		return 0, fmt.Errorf("nobody says which pooling its vector has: set the metadata %s or runtime_config.%s", keyPooling, optPooling)
	}
	got, err := m.Embed(ctx, [][]int32{g.IDs}, p)
	if err != nil {
		return 0, err
	}
	c := cosine(got[0], g.Vector)
	if math.IsNaN(c) || c < minGoldenCosine {
		return 0, fmt.Errorf("its vector has the cosine %.6f to the golden one, at least %g is due", c, minGoldenCosine)
	}
	return c, nil
}

// better says that a is not the worse one; nothing is better than no result.
func (m *encoder) better(a, b float64) bool { return a >= b }

// golden returns how far a golden pair's score is from what it should be.
func (m *reranker) golden(ctx context.Context, g golden) (float64, error) {
	if len(g.Query) == 0 || len(g.Document) == 0 {
		return 0, fmt.Errorf("a ranking head's golden row has a query and a document")
	}
	got, err := m.Rerank(ctx, g.Query, [][]int32{g.Document})
	if err != nil {
		return 0, err
	}
	d := math.Abs(float64(got[0]) - float64(g.Score))
	if math.IsNaN(d) || d > maxGoldenScoreDiff {
		return 0, fmt.Errorf("its score is %g, the golden one %g: at most %g apart is due", got[0], g.Score, maxGoldenScoreDiff)
	}
	return d, nil
}

func (m *reranker) better(a, b float64) bool { return a <= b }

// cosine is NaN where a vector is all zeros or not finite.
func cosine(a, b []float32) float64 {
	var dot, aa, bb float64
	for i, x := range a {
		y := float64(b[i])
		dot, aa, bb = dot+float64(x)*y, aa+float64(x)*float64(x), bb+y*y
	}
	return dot / math.Sqrt(aa*bb)
}

// reason is an error's text without the code that the wire carries beside it.
func reason(err error) string {
	var refusal *protocol.Error
	if errors.As(err, &refusal) {
		return refusal.Msg
	}
	return err.Error()
}
