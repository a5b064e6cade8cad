package gate

import (
	"math"

	"gonum.org/v1/gonum/floats"
)

// Norm holds the distance of each vector's Euclidean length from 1.
func Norm(ids []string, got [][]float32, tolerance float64) Check {
	off := make([]float64, len(got))
	for i, v := range got {
		off[i] = math.Abs(floats.Norm(wide(v), 2) - 1)
	}
	value, id := largest(off, ids)
	return hold("norm", "max distance from 1", value, AtMost, tolerance, id)
}
