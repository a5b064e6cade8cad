package gate

import "fmt"

// MemoryGrowth holds resident memory at the end of many batches of varied shape
// to its peak while the first of them settled: a ratio within one run.
func MemoryGrowth(settled, final, limit float64) Check {
	c := hold("memory", "growth", final/settled, AtMost, limit, "")
	c.Detail = fmt.Sprintf("%.0f MiB after the first batches, %.0f MiB at the end", settled, final)
	return c
}

// Idle holds the share of one core that a worker burns without a request.
func Idle(share, limit float64) Check {
	return hold("idle", "share of a core", share, AtMost, limit, "")
}
