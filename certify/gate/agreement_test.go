package gate

import (
	"math"
	"slices"
	"testing"

	"github.com/synapse-module/workers/certify/suite"
	"github.com/synapse-module/workers/protocol"
)

// onCircle places one unit vector at each angle, in degrees, so that cosines are
// the angles' order.
func onCircle(degrees ...float64) [][]float32 {
	rows := make([][]float32, len(degrees))
	for i, d := range degrees {
		rows[i] = []float32{float32(math.Cos(d * math.Pi / 180)), float32(math.Sin(d * math.Pi / 180))}
	}
	return rows
}

func TestRank(t *testing.T) {
	limits := suite.Rank{TopK: 2, Kendall: 0.99, MinOverlap: 1, MeanOverlap: 1}
	names := []string{"q", "d1", "d2", "d3", "d4"}
	queries, docs := []int{0}, []int{1, 2, 3, 4}
	reference := onCircle(0, 10, 20, 30, 40)
	if checks := Rank(names, queries, docs, reference, reference, limits); !Passed(checks) {
		t.Errorf("the same order fails: %v", checks)
	}
	// The two nearest change places: tau loses 2 of 6 pairs' signs, the first two
	// are still the same documents.
	checks := Rank(names, queries, docs, onCircle(0, 20, 10, 30, 40), reference, limits)
	if tau := find(t, checks, "min Kendall tau"); tau.Passed || !near(float64(tau.Value), 4.0/6) || tau.Worst != "q" {
		t.Errorf("two neighbours swapped: %+v", tau)
	}
	if share := find(t, checks, "min overlap of the first"); !share.Passed {
		t.Errorf("two neighbours swapped within the first two: %+v", share)
	}
	checks = Rank(names, queries, docs, onCircle(0, 40, 20, 30, 10), reference, limits)
	if share := find(t, checks, "min overlap of the first"); share.Passed || share.Value != 0.5 {
		t.Errorf("one of the first two is another: %+v", share)
	}
	bad := onCircle(0, 10, 20, 30, 40)
	bad[2][0] = nan
	if checks := Rank(names, queries, docs, bad, reference, limits); slices.ContainsFunc(checks, func(c Check) bool { return c.Passed }) {
		t.Errorf("NaN passes: %v", checks)
	}
	if checks := Rank(names, nil, nil, reference, reference, limits); Passed(checks) {
		t.Errorf("no query passes: %v", checks)
	}
}

func TestPeople(t *testing.T) {
	rows := onCircle(0, 10, 50, 90)
	index := map[string]int{"a": 0, "b": 1, "c": 2, "d": 3}
	pairs := []suite.Pair{
		{Set: "own", A: "a", B: "b", Score: 9},
		{Set: "own", A: "a", B: "c", Score: 5},
		{Set: "own", A: "a", B: "d", Score: 1},
		{Set: "other", A: "b", B: "c", Score: 100},
	}
	set := suite.PeopleSet{Name: "own", Pairs: 3, Pearson: 0.95, Spearman: 1}
	limit := suite.PeopleGate{BelowReference: 0.01}
	checks := People(set, pairs, rows, index, limit)
	if !Passed(checks) || !near(float64(find(t, checks, "own: Spearman").Value), 1) {
		t.Errorf("agreement in full: %v", checks)
	}
	// The nearest pair is now the one that people found least alike.
	checks = People(set, pairs, onCircle(0, 90, 50, 10), index, limit)
	if s := find(t, checks, "own: Spearman"); s.Passed || !near(float64(s.Value), -1) {
		t.Errorf("the opposite of what people said: %+v", s)
	}
	for name, vectors := range map[string][][]float32{
		"NaN":                {rows[0], {nan, 0}, rows[2], rows[3]},
		"one vector for all": {rows[0], rows[0], rows[0], rows[0]},
	} {
		for _, c := range People(set, pairs, vectors, index, limit) {
			if c.Passed {
				t.Errorf("%s: %+v", name, c)
			}
		}
	}
	if Passed(People(suite.PeopleSet{Name: "none"}, pairs, rows, index, limit)) {
		t.Error("a set without pairs passes")
	}
}

func TestRanksShareTheMeanOfTies(t *testing.T) {
	got := ranks([]float64{3, 1, 3, 2, 3})
	if want := []float64{3, 0, 3, 1, 3}; !slices.Equal(got, want) {
		t.Errorf("ranks %v, want %v", got, want)
	}
}

func TestPlacement(t *testing.T) {
	share := func(v float64) *float64 { return &v }
	limit := suite.Placement{MinShare: 0.9, MinCostShare: 0.95}
	full := &protocol.Placement{Share: 0.97, CostShare: share(0.99)}
	if checks := Placement(limit, share(0.97), full); !Passed(checks) || len(checks) != 3 {
		t.Errorf("enough on the Neural Engine: %v", checks)
	}
	for name, c := range map[string]struct {
		pong *float64
		d    *protocol.Placement
	}{
		"absent in PONG":        {nil, full},
		"absent in DESCRIPTION": {share(0.97), nil},
		"too little":            {share(0.5), full},
		"too little described":  {share(0.97), &protocol.Placement{Share: 0.5, CostShare: share(0.99)}},
		"cheap ones only":       {share(0.97), &protocol.Placement{Share: 0.97, CostShare: share(0.2)}},
		"cost not known":        {share(0.97), &protocol.Placement{Share: 0.97}},
		"NaN":                   {share(math.NaN()), full},
	} {
		if Passed(Placement(limit, c.pong, c.d)) {
			t.Errorf("%s passes", name)
		}
	}
	if checks := Placement(suite.Placement{MinShare: 0.9}, share(0.9), &protocol.Placement{Share: 0.9}); !Passed(checks) {
		t.Errorf("exactly the limit, no bound on cost: %v", checks)
	}
}
