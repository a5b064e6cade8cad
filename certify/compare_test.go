package certify

import (
	"strings"
	"testing"

	"github.com/synapse-module/workers/certify/gate"
	"github.com/synapse-module/workers/certify/machine"
)

func compared(change func(*Result)) Comparison {
	make := func() *Result {
		return &Result{
			Machine: machine.Machine{ISA: "x86-64-v4"},
			Suites: []SuiteResult{{Name: "s", Runs: []ArtifactResult{{
				Artifact:    "a",
				Checks:      []gate.Check{{Gate: "cosine", Figure: "min", Value: 1, Passed: true}, {Gate: "published", Figure: "max difference", Passed: true}, {Gate: "published", Figure: "max difference", Passed: true}},
				Performance: &Performance{Shapes: []Shape{{Rows: 1, Tokens: 8, TokensPerSecond: 1000}}},
			}}}},
		}
	}
	a, b := make(), make()
	change(b)
	return Compare(a, b)
}

func TestCompare(t *testing.T) {
	run := func(r *Result) *ArtifactResult { return &r.Suites[0].Runs[0] }
	for _, c := range []struct {
		name   string
		change func(*Result)
		want   string // of the only complaint; empty for none
	}{
		{"the same", func(*Result) {}, ""},
		{"a little slower", func(r *Result) { run(r).Performance.Shapes[0].TokensPerSecond = 900 }, ""},
		{"half as fast", func(r *Result) { run(r).Performance.Shapes[0].TokensPerSecond = 500 }, "1 × 8 tokens took 2.00 times as long"},
		{"half as fast elsewhere", func(r *Result) {
			run(r).Performance.Shapes[0].TokensPerSecond = 500
			r.Machine.ISA = "x86-64-v3"
		}, ""},
		{"a check fails", func(r *Result) { run(r).Checks[0] = gate.Check{Gate: "cosine", Figure: "min", Value: 0.5} }, "s a: cosine, min passed with 1, and fails with 0.5"},
		{"the second of two alike fails", func(r *Result) { run(r).Checks[2].Passed = false }, "published, max difference passed"},
		{"a check is gone", func(r *Result) { run(r).Checks = run(r).Checks[:2] }, "published, max difference was held before"},
		{"the run is gone", func(r *Result) { r.Suites[0].Runs = nil }, "s a: was measured before"},
	} {
		t.Run(c.name, func(t *testing.T) {
			worse := compared(c.change).Worse(1.3)
			if c.want == "" && len(worse) > 0 || c.want != "" && (len(worse) != 1 || !strings.Contains(worse[0], c.want)) {
				t.Errorf("worse in %q, want %q", worse, c.want)
			}
		})
	}
	if worse := compared(func(r *Result) { run(r).Performance.Shapes[0].TokensPerSecond = 1 }).Worse(0); len(worse) > 0 {
		t.Errorf("without a bound: %q", worse)
	}
}

func TestVerdicts(t *testing.T) {
	good, bad := gate.Check{Passed: true}, gate.Check{}
	held, passed := gate.Control{Held: true}, gate.Control{}
	problem := &Problem{Message: "it died"}
	for _, c := range []struct {
		want Verdict
		r    ArtifactResult
	}{
		{Passed, ArtifactResult{Checks: []gate.Check{good}, Controls: []gate.Control{held}}},
		{Failed, ArtifactResult{Checks: []gate.Check{good, bad}, Controls: []gate.Control{held}}},
		{Void, ArtifactResult{Checks: []gate.Check{good}, Controls: []gate.Control{held, passed}}},
		{Failed, ArtifactResult{Checks: []gate.Check{bad}, Controls: []gate.Control{passed}}},
		{Unmeasured, ArtifactResult{Checks: []gate.Check{good}, Problem: problem}},
		{Failed, ArtifactResult{Checks: []gate.Check{bad}, Problem: problem}},
		{Unmeasured, ArtifactResult{}},
	} {
		c.r.judge()
		if c.r.Verdict != c.want {
			t.Errorf("%+v is %s, want %s", c.r, c.r.Verdict, c.want)
		}
	}
	for want, verdicts := range map[Verdict][]Verdict{
		Passed:     {Passed, Passed},
		Failed:     {Passed, Failed, Unmeasured, Void},
		Unmeasured: {Passed, Void, Unmeasured},
		Void:       {Void, Passed},
	} {
		var r Result
		for _, v := range verdicts {
			r.Suites = append(r.Suites, SuiteResult{Runs: []ArtifactResult{{Verdict: v}}})
		}
		if r.judge(); r.Verdict != want {
			t.Errorf("%v together are %s, want %s", verdicts, r.Verdict, want)
		}
	}
	var nothing Result
	if nothing.judge(); nothing.Verdict != Unmeasured {
		t.Errorf("a result without a run is %s", nothing.Verdict)
	}
	for v, status := range map[Verdict]int{Passed: 0, Failed: 1, Void: 3, Unmeasured: 3} {
		if v.ExitStatus() != status {
			t.Errorf("%s exits %d, want %d", v, v.ExitStatus(), status)
		}
	}
}
