package gate

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/synapse-module/workers/certify/suite"
)

// lowPercentile is what p01 stands for: the value that 1 % of the rows reach or
// lie under.
const lowPercentile = 0.01

// Cosine holds the cosine of each row of got to the same row of want. ids name
// the rows.
func Cosine(ids []string, got, want [][]float32, t suite.Cosine) []Check {
	cosines := Cosines(got, want)
	low, id := lowest(cosines, ids)
	p01, mean := math.NaN(), math.NaN()
	if len(cosines) > 0 {
		sorted := slices.Sorted(slices.Values(cosines))
		p01 = stat.Quantile(lowPercentile, stat.Empirical, sorted, nil)
		mean = stat.Mean(cosines, nil)
	}
	return []Check{
		hold("cosine", "min", low, AtLeast, t.Min, id),
		hold("cosine", "p01", p01, AtLeast, t.P01, ""),
		hold("cosine", "mean", mean, AtLeast, t.Mean, ""),
	}
}

// Cosines returns the cosine of each row of a to the same row of b, computed in
// float64: float32 would lose as much as the gate looks for. It is NaN where a
// row is zero, not finite, or has another length.
func Cosines(a, b [][]float32) []float64 {
	out := make([]float64, len(a))
	for i := range a {
		out[i] = cosine(a[i], b[i])
	}
	return out
}

// Similarity is the cosine of two vectors.
func Similarity(a, b []float32) Figure { return Figure(cosine(a, b)) }

func cosine(a, b []float32) float64 {
	if len(a) != len(b) {
		return math.NaN()
	}
	x, y := wide(a), wide(b)
	return floats.Dot(x, y) / (floats.Norm(x, 2) * floats.Norm(y, 2))
}

// wide copies v to float64.
func wide(v []float32) []float64 {
	out := make([]float64, len(v))
	for i, x := range v {
		out[i] = float64(x)
	}
	return out
}
