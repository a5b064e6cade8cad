package gate

import (
	"math"

	"github.com/synapse-module/workers/certify/suite"
)

// Published holds the first components of a vector to values that others have
// published: a reference that was not recorded here.
func Published(p suite.Published, vector []float32) Check {
	far := math.NaN()
	if len(vector) >= len(p.Values) {
		off := make([]float64, len(p.Values))
		for i, want := range p.Values {
			off[i] = math.Abs(float64(vector[i]) - want)
		}
		far, _ = largest(off, make([]string, len(off)))
	}
	c := hold("published", "max difference", far, AtMost, p.Tolerance, p.ID)
	c.Detail = p.Source
	return c
}
