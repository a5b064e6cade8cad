package gate

import (
	"math"

	"gonum.org/v1/gonum/floats"
)

// MaxAbsDiff holds the largest difference of any component of got from want.
func MaxAbsDiff(ids []string, got, want [][]float32, limit float64) Check {
	value, id := largest(differences(got, want), ids)
	return hold("max_abs_diff", "max", value, AtMost, limit, id)
}

// differences returns the largest absolute difference of each row of a from the
// same row of b: NaN where a component is not finite or the lengths differ.
func differences(a, b [][]float32) []float64 {
	out := make([]float64, len(a))
	for i := range a {
		out[i] = difference(a[i], b[i])
	}
	return out
}

func difference(a, b []float32) float64 {
	if len(a) != len(b) {
		return math.NaN()
	}
	d := floats.Distance(wide(a), wide(b), math.Inf(1))
	// The maximum norm of gonum passes over NaN: every comparison with it is
	// false.
	if !finite(a) || !finite(b) {
		return math.NaN()
	}
	return d
}
