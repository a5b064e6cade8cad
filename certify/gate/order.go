package gate

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/synapse-module/workers/certify/suite"
)

// Scores holds each score of got to the reference's of the same pair, which ids
// name.
func Scores(ids []string, got, want []float32, t suite.Score) []Check {
	far := make([]float64, len(got))
	bad := 0
	for i := range got {
		far[i] = math.Abs(float64(got[i]) - float64(want[i]))
		if math.IsNaN(far[i]) || math.IsInf(far[i], 0) {
			far[i] = math.NaN()
			bad++
		}
	}
	most, id := largest(far, ids)
	mean := math.NaN()
	if len(far) > 0 {
		mean = stat.Mean(far, nil)
	}
	finite := hold("finite", "scores that are NaN or Inf", float64(bad), Equal, 0, "")
	finite.Passed = finite.Passed && len(got) > 0
	return []Check{
		finite,
		hold("score", "max error", most, AtMost, t.Max, id),
		hold("score", "mean error", mean, AtMost, t.Mean, ""),
	}
}

// Order holds, for each query, the order of its documents by score to the
// reference's. ids names the queries.
func Order(ids []string, got, want [][]float32, t suite.Order) []Check {
	var taus []float64
	firsts, query := 0, ""
	for i := range got {
		ours, theirs := wide(got[i]), wide(want[i])
		taus = append(taus, kendall(ours, theirs))
		if !slices.ContainsFunc(ours, math.IsNaN) && slices.Equal(largestOf(ours, 1), largestOf(theirs, 1)) {
			firsts++
		} else if query == "" {
			query = ids[i]
		}
	}
	tau, worst := lowest(taus, ids)
	return []Check{
		hold("order", "min Kendall tau", tau, AtLeast, t.Kendall, worst),
		hold("order", "queries with the same first", float64(firsts)/float64(len(got)), AtLeast, t.First, query),
	}
}
