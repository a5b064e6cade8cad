package gate

import (
	"slices"
	"testing"

	"github.com/synapse-module/workers/certify/suite"
	"github.com/synapse-module/workers/protocol"
)

func TestScores(t *testing.T) {
	limit := suite.Score{Max: 0.01, Mean: 0.005}
	want := []float32{0.1, 0.5, -0.3}
	if checks := Scores(ids, []float32{0.1, 0.509, -0.3}, want, limit); !Passed(checks) {
		t.Errorf("one off by 0.009: %v", checks)
	}
	for name, c := range map[string]struct {
		got    []float32
		figure string
		worst  string
	}{
		"one far off":      {[]float32{0.1, 0.52, -0.3}, "max error", "b"},
		"all off a little": {[]float32{0.107, 0.507, -0.307}, "mean error", ""},
		"NaN":              {[]float32{0.1, 0.5, nan}, "max error", "c"},
		"infinite":         {[]float32{inf, 0.5, -0.3}, "finite", ""},
	} {
		t.Run(name, func(t *testing.T) {
			checks := Scores(ids, c.got, want, limit)
			failed := slices.IndexFunc(checks, func(k Check) bool { return !k.Passed && (k.Figure == c.figure || k.Gate == c.figure) })
			if failed < 0 || checks[failed].Worst != c.worst {
				t.Errorf("%v", checks)
			}
		})
	}
	if Passed(Scores(nil, nil, nil, limit)) {
		t.Error("no scores pass")
	}
}

func TestOrder(t *testing.T) {
	limit := suite.Order{Kendall: 0.9, First: 1}
	queries := []string{"q0", "q1"}
	want := [][]float32{{3, 2, 1, 0}, {0, 1, 2, 3}}
	if checks := Order(queries, [][]float32{{9, 8, 7, 6}, {-4, -3, -2, -1}}, want, limit); !Passed(checks) {
		t.Errorf("other scores in the same order: %v", checks)
	}
	checks := Order(queries, [][]float32{{3, 2, 1, 0}, {0, 1, 3, 2}}, want, limit)
	if tau := find(t, checks, "min Kendall tau"); tau.Passed || tau.Worst != "q1" || !near(float64(tau.Value), 4.0/6) {
		t.Errorf("two neighbours swapped: %+v", tau)
	}
	if first := find(t, checks, "queries with the same first"); first.Passed || first.Value != 0.5 || first.Worst != "q1" {
		t.Errorf("another first document: %+v", first)
	}
	for _, got := range [][][]float32{{{3, 2, nan, 0}, {0, 1, 2, 3}}, nil} {
		if Passed(Order(queries, got, want, limit)) {
			t.Errorf("%v passes", got)
		}
	}
}

var long = suite.Answer{ID: "a", IDs: []int32{1, 2, 3, 4}, Pieces: []string{"one", " two", " three", " four"}, Finish: protocol.FinishLength}

func TestGreedy(t *testing.T) {
	short := suite.Answer{ID: "b", IDs: []int32{1, 9}, Pieces: []string{"yes", ""}, Finish: protocol.FinishStop}
	limit := suite.Greedy{Tokens: 3}
	answers := func(text string, n int, finish protocol.FinishReason) []Generation {
		return []Generation{{"a", text, 4, protocol.FinishLength}, {"b", "yes", n, finish}}
	}
	sound := answers("one two three four", 2, protocol.FinishStop)
	if checks := Greedy(sound, []suite.Answer{long, short}, limit); !Passed(checks) {
		t.Errorf("the reference itself: %v", checks)
	}
	if checks := Greedy(answers("one two three five", 2, protocol.FinishStop), []suite.Answer{long, short}, limit); !Passed(checks) {
		t.Errorf("another token behind those that are held: %v", checks)
	}
	for name, c := range map[string]struct {
		got   []Generation
		gate  string
		worst string
	}{
		"another token":       {answers("one two four", 2, protocol.FinishStop), "greedy", "a"},
		"too short":           {answers("one two", 2, protocol.FinishStop), "greedy", "a"},
		"nothing":             {answers("", 2, protocol.FinishStop), "greedy", "a"},
		"does not stop":       {answers("one two three four", 4, protocol.FinishLength), "stops", "b"},
		"stops a token later": {answers("one two three four", 3, protocol.FinishStop), "stops", "b"},
		"no answer at all":    {nil, "greedy", ""},
	} {
		t.Run(name, func(t *testing.T) {
			checks := Greedy(c.got, []suite.Answer{long, short}[:len(c.got)], limit)
			for _, k := range checks {
				if k.Passed == (k.Gate == c.gate) || !k.Passed && k.Worst != c.worst {
					t.Errorf("%+v", k)
				}
			}
		})
	}
}

func TestGreedyShare(t *testing.T) {
	got := []Generation{{"a", "one two", 4, protocol.FinishLength}}
	checks := Greedy(got, []suite.Answer{long}, suite.Greedy{Tokens: 1, Share: 0.6})
	if share := find(t, checks, "mean share equal"); share.Passed || share.Value != 0.5 {
		t.Errorf("half of the tokens: %+v", share)
	}
	if checks := Greedy(nil, nil, suite.Greedy{Tokens: 1, Share: 0.1}); find(t, checks, "mean share equal").Passed {
		t.Error("no answers pass")
	}
}

func TestObedience(t *testing.T) {
	got := []Generation{{ID: "a"}, {ID: "b"}}
	if c := Obedience(got, []string{"", ""}); !c.Passed {
		t.Errorf("all obey: %+v", c)
	}
	if c := Obedience(got, []string{"", "no digit"}); c.Passed || c.Worst != "b" || c.Detail != "no digit" {
		t.Errorf("one disobeys: %+v", c)
	}
	if c := Obedience(nil, nil); c.Passed {
		t.Error("no answers pass")
	}
}

func TestLimits(t *testing.T) {
	whole := []Generation{{"a", "one two three", 3, protocol.FinishStop}}
	for _, c := range []struct {
		limit int
		got   Generation
		want  bool
	}{
		{2, Generation{"a", "one two", 2, protocol.FinishLength}, true},
		{3, Generation{"a", "one two three", 3, protocol.FinishLength}, true},
		{3, Generation{"a", "one two three", 3, protocol.FinishStop}, true},
		{9, Generation{"a", "one two three", 3, protocol.FinishStop}, true},
		{2, Generation{"a", "one two three", 3, protocol.FinishStop}, false},
		{2, Generation{"a", "one", 1, protocol.FinishLength}, false},
		{2, Generation{"a", "one too", 2, protocol.FinishLength}, false},
		{2, Generation{"a", "one two", 2, protocol.FinishStop}, false},
		{9, Generation{"a", "one two three", 3, protocol.FinishLength}, false},
	} {
		if k := Limits(c.limit, whole, []Generation{c.got}); k.Passed != c.want {
			t.Errorf("max_tokens %d, %+v: %+v", c.limit, c.got, k)
		}
	}
}

func TestSameAnswers(t *testing.T) {
	before := []Generation{{"a", "x", 1, protocol.FinishStop}, {"b", "y", 1, protocol.FinishStop}}
	if c := SameAnswers("repeats", "f", before, slices.Clone(before)); !c.Passed {
		t.Errorf("the same: %+v", c)
	}
	again := slices.Clone(before)
	again[1].NGen = 2
	if c := SameAnswers("repeats", "f", before, again); c.Passed || c.Value != 1 || c.Worst != "b" {
		t.Errorf("another count: %+v", c)
	}
	if c := SameAnswers("repeats", "f", nil, nil); c.Passed {
		t.Error("nothing passes")
	}
}

func TestHiddenControlsAreNotVoid(t *testing.T) {
	if c := HiddenControl("int8", "this processor has VNNI"); c.Held || c.Void() {
		t.Errorf("%+v", c)
	}
	if c := NewControl("int8", []Check{{Passed: true}}); !c.Void() {
		t.Errorf("%+v", c)
	}
}
