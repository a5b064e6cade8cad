package gate

import (
	"fmt"
	"math"
)

// Finite counts the vectors that hold a NaN or an infinity.
func Finite(ids []string, got [][]float32) Check {
	bad, first := 0, ""
	for i, v := range got {
		if finite(v) {
			continue
		}
		if bad == 0 {
			first = ids[i]
		}
		bad++
	}
	c := hold("finite", "vectors with NaN or Inf", float64(bad), Equal, 0, first)
	if len(got) == 0 {
		c.Passed = false
		c.Detail = "no vectors"
	}
	if bad > 0 {
		c.Detail = fmt.Sprintf("%d of %d vectors; the first is %s", bad, len(got), first)
	}
	return c
}

func finite(v []float32) bool {
	for _, x := range v {
		if f := float64(x); math.IsNaN(f) || math.IsInf(f, 0) {
			return false
		}
	}
	return true
}
