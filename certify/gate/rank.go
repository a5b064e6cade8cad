package gate

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/synapse-module/workers/certify/suite"
)

// Rank holds the order in which documents come for each query, by cosine, to the
// order that the reference gives them: Kendall's tau over all documents, and the
// share of the reference's first TopK that are among ours. queries and docs are
// indices of rows; ids names the rows.
func Rank(ids []string, queries, docs []int, got, want [][]float32, t suite.Rank) []Check {
	var taus, overlaps []float64
	var names []string
	for _, q := range queries {
		ours, theirs := similarities(got, q, docs), similarities(want, q, docs)
		taus = append(taus, kendall(ours, theirs))
		overlaps = append(overlaps, overlap(ours, theirs, t.TopK))
		names = append(names, ids[q])
	}
	tau, worstTau := lowest(taus, names)
	share, worstShare := lowest(overlaps, names)
	mean := math.NaN()
	if len(overlaps) > 0 {
		mean = stat.Mean(overlaps, nil)
	}
	return []Check{
		hold("rank", "min Kendall tau", tau, AtLeast, t.Kendall, worstTau),
		hold("rank", "min overlap of the first", share, AtLeast, t.MinOverlap, worstShare),
		hold("rank", "mean overlap of the first", mean, AtLeast, t.MeanOverlap, ""),
	}
}

// similarities returns the cosine of row q to each of docs.
func similarities(rows [][]float32, q int, docs []int) []float64 {
	out := make([]float64, len(docs))
	for i, d := range docs {
		out[i] = cosine(rows[q], rows[d])
	}
	return out
}

// kendall is NaN where a value is: gonum's would count it as a tie.
func kendall(a, b []float64) float64 {
	if slices.ContainsFunc(a, math.IsNaN) || slices.ContainsFunc(b, math.IsNaN) || len(a) < 2 {
		return math.NaN()
	}
	return stat.Kendall(a, b, nil)
}

// overlap is the share of b's k largest that are among a's k largest.
func overlap(a, b []float64, k int) float64 {
	if slices.ContainsFunc(a, math.IsNaN) || len(a) == 0 {
		return math.NaN()
	}
	ours, theirs := largestOf(a, k), largestOf(b, k)
	hits := 0
	for _, i := range theirs {
		if slices.Contains(ours, i) {
			hits++
		}
	}
	return float64(hits) / float64(len(theirs))
}

// largestOf returns the indices of the k largest values, of all where there are
// fewer.
func largestOf(v []float64, k int) []int {
	order := make([]int, len(v))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int {
		switch {
		case v[i] > v[j]:
			return -1
		case v[i] < v[j]:
			return 1
		}
		return 0
	})
	return order[:min(k, len(order))]
}
