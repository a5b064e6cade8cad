package gate

import (
	"fmt"
	"math"
)

// Repeats counts the runs whose bits are not those of the first. Each run holds
// the vectors of the same rows, which ids name.
func Repeats(ids []string, runs [][][]float32) Check {
	bad, detail, id := 0, "", ""
	for n, run := range runs {
		row := firstUnequal(runs[0], run)
		if row < 0 {
			continue
		}
		if bad == 0 {
			id, detail = ids[row], fmt.Sprintf("run %d of %d is the first that differs", n+1, len(runs))
		}
		bad++
	}
	c := hold("repeats", "runs with other bits", float64(bad), Equal, 0, id)
	c.Detail = detail
	if len(runs) < 2 {
		c.Passed = false
		c.Detail = "fewer than two runs"
	}
	return c
}

// firstUnequal returns the first row whose bits differ, -1 for none.
func firstUnequal(a, b [][]float32) int {
	for i := range a {
		if i >= len(b) || !sameBits(a[i], b[i]) {
			return i
		}
	}
	return -1
}

func sameBits(a, b []float32) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if math.Float32bits(a[i]) != math.Float32bits(b[i]) {
			return false
		}
	}
	return true
}
