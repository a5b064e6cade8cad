package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/plot/plotter"

	"github.com/synapse-module/workers/certify"
)

// apart is how far a score lies from the reference's.
func apart(p certify.Scored) float64 {
	if d := math.Abs(float64(p.Ours) - p.Reference); !math.IsNaN(d) {
		return d
	}
	return math.Inf(1)
}

// worstPairs are those whose scores lie farthest from the reference's.
func worstPairs(pairs []certify.Scored) []certify.Scored {
	sorted := slices.Clone(pairs)
	slices.SortStableFunc(sorted, func(a, b certify.Scored) int { return cmp.Compare(apart(b), apart(a)) })
	return sorted[:min(worstRows, len(sorted))]
}

// scoreCharts draw the scores of a rerank suite.
func scoreCharts(run certify.ArtifactResult) ([]figure, error) {
	var both, lengths plotter.XYs
	low, high := math.Inf(1), math.Inf(-1)
	for _, p := range run.Pairs {
		if !isFinite(p.Ours) {
			continue
		}
		both = append(both, plotter.XY{X: p.Reference, Y: float64(p.Ours)})
		lengths = append(lengths, plotter.XY{X: float64(p.Tokens), Y: math.Log10(math.Max(apart(p), closest))})
		low, high = min(low, p.Reference), max(high, p.Reference)
	}
	if len(both) == 0 {
		return nil, nil
	}
	s, err := scatter("reference", "this worker", both, plotter.XYs{{X: low, Y: low}, {X: high, Y: high}})
	if err != nil {
		return nil, err
	}
	l, err := scatter("tokens", "log10(error)", lengths)
	return []figure{
		{"Scores", fmt.Sprintf("%d pairs of query and document; on the dashed line both agree.", len(both)), s},
		{"Length against error", "Each pair by its length; lower is better.", l},
	}, err
}

// answersChart draws how much of each answer is the reference's.
func answersChart(run certify.ArtifactResult) ([]figure, error) {
	var names []string
	var values plotter.Values
	for _, a := range run.Answers {
		if a.Grammar == "" {
			names, values = append(names, a.ID), append(values, float64(a.Equal))
		}
	}
	if len(names) == 0 {
		return nil, nil
	}
	h, err := histogram("leading tokens equal", "prompts", values, math.NaN())
	return []figure{{"Agreement of the answers", fmt.Sprintf("How many leading tokens of %d answers are the reference's.", len(names)), h}}, err
}
