package gate

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/synapse-module/workers/certify/suite"
)

// recorded is the precision of the reference's correlations: six decimals.
const recorded = 1e6

// People holds how well cosines agree with what people said of the same pairs to
// how well the reference's cosines do. vectors are of all rows, index finds a
// row by its id.
func People(set suite.PeopleSet, pairs []suite.Pair, vectors [][]float32, index map[string]int, t suite.PeopleGate) []Check {
	var ours, theirs []float64
	for _, p := range pairs {
		if p.Set != set.Name {
			continue
		}
		ours = append(ours, cosine(vectors[index[p.A]], vectors[index[p.B]]))
		theirs = append(theirs, p.Score)
	}
	pearson, spearman := math.NaN(), math.NaN()
	if len(ours) > 1 && !slices.ContainsFunc(ours, math.IsNaN) {
		pearson = stat.Correlation(ours, theirs, nil)
		spearman = stat.Correlation(ranks(ours), ranks(theirs), nil)
	}
	against := func(figure string, value, reference float64) Check {
		limit := math.Round((reference-t.BelowReference)*recorded) / recorded
		c := hold("people", set.Name+": "+figure, value, AtLeast, limit, "")
		c.Detail = fmt.Sprintf("%d pairs; the reference's is %.6f", len(ours), reference)
		return c
	}
	return []Check{against("Pearson", pearson, set.Pearson), against("Spearman", spearman, set.Spearman)}
}

// ranks returns the rank of each value, equal values sharing the mean of theirs.
func ranks(v []float64) []float64 {
	order := make([]int, len(v))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int {
		switch {
		case v[i] < v[j]:
			return -1
		case v[i] > v[j]:
			return 1
		}
		return 0
	})
	out := make([]float64, len(v))
	for from := 0; from < len(order); {
		to := from + 1
		for to < len(order) && v[order[to]] == v[order[from]] {
			to++
		}
		for _, i := range order[from:to] {
			out[i] = float64(from+to-1) / 2
		}
		from = to
	}
	return out
}
