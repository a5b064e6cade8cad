package gate

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/synapse-module/workers/certify/suite"
	"github.com/synapse-module/workers/protocol"
)

var (
	nan = float32(math.NaN())
	inf = float32(math.Inf(1))
	ids = []string{"a", "b", "c"}

	unit = [][]float32{{1, 0}, {0, 1}, {0.6, 0.8}}
)

// with returns unit with row i replaced.
func with(i int, row ...float32) [][]float32 {
	rows := append([][]float32(nil), unit...)
	rows[i] = row
	return rows
}

func find(t *testing.T, checks []Check, figure string) Check {
	t.Helper()
	for _, c := range checks {
		if c.Figure == figure {
			return c
		}
	}
	t.Fatalf("no figure %q in %v", figure, checks)
	return Check{}
}

func TestCosine(t *testing.T) {
	limits := suite.Cosine{Min: 0.9999, P01: 0.9999, Mean: 0.9999}
	if checks := Cosine(ids, unit, unit, limits); !Passed(checks) {
		t.Errorf("equal rows fail: %v", checks)
	}
	for _, c := range []struct {
		name  string
		got   [][]float32
		value float64
		worst string
	}{
		{"swapped axes", with(1, 1, 0), 0, "b"},
		{"turned a little", with(2, 0.8, 0.6), 0.96, "c"},
		{"opposite", with(0, -1, 0), -1, "a"},
		{"zero", with(1, 0, 0), math.NaN(), "b"},
		{"NaN", with(1, nan, 1), math.NaN(), "b"},
		{"infinite", with(1, inf, 1), math.NaN(), "b"},
		{"short", with(1, 1), math.NaN(), "b"},
	} {
		t.Run(c.name, func(t *testing.T) {
			checks := Cosine(ids, c.got, unit, limits)
			low := find(t, checks, "min")
			if low.Passed || low.Worst != c.worst || !near(float64(low.Value), c.value) {
				t.Errorf("min is %+v, want %v at %s, failed", low, c.value, c.worst)
			}
			if mean := find(t, checks, "mean"); mean.Passed {
				t.Errorf("mean passed: %+v", mean)
			}
		})
	}
}

// One bad row in 300 leaves p01 alone and not the minimum: p01 is the third
// lowest there.
func TestCosinePercentileIsNotTheMinimum(t *testing.T) {
	many, names := make([][]float32, 300), make([]string, 300)
	for i := range many {
		many[i], names[i] = []float32{1, 0}, "row"
	}
	got := append([][]float32(nil), many...)
	limits := suite.Cosine{Min: 0.9, P01: 0.9, Mean: 0.9}
	for bad, want := range []bool{true, true, true, false} {
		checks := Cosine(names, got, many, limits)
		if p := find(t, checks, "p01"); p.Passed != want {
			t.Errorf("with %d bad rows of 300 p01 is %+v, want passed %t", bad, p, want)
		}
		if low := find(t, checks, "min"); low.Passed != (bad == 0) {
			t.Errorf("with %d bad rows min is %+v", bad, low)
		}
		got[bad] = []float32{0, 1}
	}
}

func TestNothingPassesWithoutVectors(t *testing.T) {
	checks := Cosine(nil, nil, nil, suite.Cosine{Min: -1, P01: -1, Mean: -1})
	checks = append(checks, MaxAbsDiff(nil, nil, nil, 1), Norm(nil, nil, 1), Finite(nil, nil),
		Invariance("batches of 2", nil, nil, nil, 1), Repeats(nil, nil))
	for _, c := range checks {
		if c.Passed {
			t.Errorf("passed without a vector: %+v", c)
		}
	}
	if Passed(nil) {
		t.Error("no checks at all passed")
	}
}

func TestMaxAbsDiff(t *testing.T) {
	if c := MaxAbsDiff(ids, unit, unit, 1e-6); !c.Passed || c.Value != 0 {
		t.Errorf("equal rows: %+v", c)
	}
	if c := MaxAbsDiff(ids, with(1, 0.25, 1), unit, 0.125); c.Passed || c.Worst != "b" || c.Value != 0.25 {
		t.Errorf("a component 0.25 off: %+v", c)
	}
	for _, bad := range []float32{nan, inf} {
		if c := MaxAbsDiff(ids, with(2, 0.6, bad), unit, 1e9); c.Passed || c.Worst != "c" {
			t.Errorf("%v passed: %+v", bad, c)
		}
	}
}

func TestNorm(t *testing.T) {
	if c := Norm(ids, unit, 1e-5); !c.Passed {
		t.Errorf("unit vectors: %+v", c)
	}
	for _, row := range [][]float32{{0.5, 0}, {2, 0}, {0, 0}, {nan, 0}, {1.0001, 0}} {
		if c := Norm(ids, with(1, row...), 1e-5); c.Passed || c.Worst != "b" {
			t.Errorf("length of %v passed: %+v", row, c)
		}
	}
}

func TestFinite(t *testing.T) {
	if c := Finite(ids, unit); !c.Passed {
		t.Errorf("finite vectors: %+v", c)
	}
	for _, bad := range []float32{nan, inf, -inf} {
		if c := Finite(ids, with(2, 0, bad)); c.Passed || c.Worst != "c" || c.Value != 1 {
			t.Errorf("%v: %+v", bad, c)
		}
	}
}

func TestInvariance(t *testing.T) {
	if c := Invariance("batches of 2", ids, unit, unit, 1e-4); !c.Passed {
		t.Errorf("same vectors: %+v", c)
	}
	if c := Invariance("batches of 2", ids, unit, with(0, 1, 0.00005), 1e-4); !c.Passed {
		t.Errorf("half the tolerance: %+v", c)
	}
	for _, row := range [][]float32{{1, 0.0002}, {1, nan}} {
		if c := Invariance("batches of 2", ids, unit, with(0, row...), 1e-4); c.Passed || c.Worst != "a" || c.Figure != "batches of 2" {
			t.Errorf("%v in company passed: %+v", row, c)
		}
	}
}

func TestRepeatsCompareBits(t *testing.T) {
	negative := float32(math.Copysign(0, -1))
	if c := Repeats(ids, [][][]float32{unit, unit, unit}); !c.Passed {
		t.Errorf("same bits: %+v", c)
	}
	for name, row := range map[string][]float32{
		"one bit":   {1, math.Float32frombits(1)},
		"minus 0":   {1, negative},
		"a NaN":     {1, nan},
		"too short": {1},
	} {
		c := Repeats(ids, [][][]float32{unit, unit, with(0, row...)})
		if c.Passed || c.Worst != "a" || !strings.Contains(c.Detail, "run 3 of 3") {
			t.Errorf("%s: %+v", name, c)
		}
	}
}

func TestPublished(t *testing.T) {
	p := suite.Published{ID: "a", Values: []float64{0.6}, Tolerance: 1e-6, Source: "a thread"}
	if c := Published(p, []float32{0.6, 0.8}); !c.Passed || c.Detail != "a thread" {
		t.Errorf("same value: %+v", c)
	}
	for _, v := range [][]float32{{0.60001, 0.8}, {nan, 0}, {}} {
		if c := Published(p, v); c.Passed {
			t.Errorf("%v passed: %+v", v, c)
		}
	}
}

func TestMaxTokens(t *testing.T) {
	limit := suite.MaxTokens{Min: 512}
	refusal := protocol.Errorf(protocol.CodeRequestInvalid, "too long")
	if c := MaxTokens(limit, 512, unit[0], nil, refusal); !Passed(c) {
		t.Errorf("an honest limit: %+v", c)
	}
	for name, c := range map[string]struct {
		stated        int
		longest       []float32
		atMax, atOver error
		failing       string
	}{
		"less than the suite's": {256, unit[0], nil, refusal, "stated"},
		"max refused":           {512, nil, refusal, refusal, "rows of that length taken"},
		"max is NaN":            {512, []float32{nan}, nil, refusal, "rows of that length taken"},
		"max gives nothing":     {512, nil, nil, refusal, "rows of that length taken"},
		"one more embedded":     {512, unit[0], nil, nil, "rows of one more refused"},
		"one more is a crash":   {512, unit[0], nil, errors.New("crashed"), "rows of one more refused"},
		"one more is a failure": {512, unit[0], nil, protocol.Errorf(protocol.CodeEngineFailed, "broadcast"), "rows of one more refused"},
	} {
		for _, check := range MaxTokens(limit, c.stated, c.longest, c.atMax, c.atOver) {
			if check.Passed == (check.Figure == c.failing) {
				t.Errorf("%s: %+v", name, check)
			}
		}
	}
}

func TestPerformanceRatios(t *testing.T) {
	if c := MemoryGrowth(100, 104, 1.05); !c.Passed {
		t.Errorf("4 %% growth: %+v", c)
	}
	if c := MemoryGrowth(100, 106, 1.05); c.Passed {
		t.Errorf("6 %% growth: %+v", c)
	}
	if c := MemoryGrowth(0, 0, 1.05); c.Passed {
		t.Errorf("nothing was measured: %+v", c)
	}
	if c := Idle(0.01, 0.02); !c.Passed {
		t.Errorf("1 %% of a core: %+v", c)
	}
	if c := Idle(1, 0.02); c.Passed {
		t.Errorf("a spinning core: %+v", c)
	}
}

func TestControlHoldsWhereAGateFails(t *testing.T) {
	limits := suite.Cosine{Min: 0.9999, P01: 0.9999, Mean: 0.9999}
	if c := NewControl("swapped_pooling", Cosine(ids, with(0, 0, 1), unit, limits)); !c.Held {
		t.Errorf("wrong vectors were not caught: %+v", c)
	}
	if c := NewControl("swapped_pooling", Cosine(ids, unit, unit, limits)); c.Held {
		t.Errorf("right vectors count as caught: %+v", c)
	}
	if c := NewControl("swapped_pooling", nil); c.Held {
		t.Error("a control that met no gate holds")
	}
	if c := RefusedControl("swapped_pooling", protocol.Errorf(protocol.CodeUnsupported, "no cls")); !c.Held || c.Refused == "" {
		t.Errorf("a refusal: %+v", c)
	}
}

func TestFigureSurvivesJSON(t *testing.T) {
	for _, v := range []float64{0.1, -1e-300, math.NaN(), math.Inf(1), math.Inf(-1)} {
		b, err := json.Marshal(Figure(v))
		if err != nil {
			t.Fatal(err)
		}
		var back Figure
		if err := json.Unmarshal(b, &back); err != nil || !near(float64(back), v) {
			t.Errorf("%v became %s became %v, %v", v, b, back, err)
		}
	}
	var f Figure
	if json.Unmarshal([]byte(`"ten"`), &f) == nil {
		t.Error(`"ten" is a figure`)
	}
}

func near(a, b float64) bool {
	return a == b || math.IsNaN(a) && math.IsNaN(b) || math.Abs(a-b) < 1e-7
}
