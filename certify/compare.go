package certify

import (
	"fmt"
	"slices"

	"github.com/synapse-module/workers/certify/gate"
)

// Comparison is two results side by side, A before and B after.
type Comparison struct {
	Pairs       []Pair
	Missing     []string // runs of A that B has not
	SameMachine bool     // speeds can be compared
}

// Pair is one artifact of one suite in both results.
type Pair struct {
	Suite, Artifact string
	Checks          []CheckPair
	Speeds          []SpeedPair
}

// CheckPair is one figure in both results; B is nil where it is no longer there.
type CheckPair struct {
	A gate.Check
	B *gate.Check
}

// SpeedPair is one shape of batch in both results, in tokens per second.
type SpeedPair struct {
	Shape string
	A, B  float64
}

// Compare matches two results by suite and artifact.
func Compare(a, b *Result) Comparison {
	c := Comparison{SameMachine: a.Machine == b.Machine}
	for _, s := range a.Suites {
		for _, run := range s.Runs {
			other := b.run(s.Name, run.Artifact)
			if other == nil {
				c.Missing = append(c.Missing, s.Name+" "+run.Artifact)
				continue
			}
			c.Pairs = append(c.Pairs, pair(s.Name, run, *other))
		}
	}
	return c
}

func (r *Result) run(suite, artifact string) *ArtifactResult {
	for _, s := range r.Suites {
		for i := range s.Runs {
			if s.Name == suite && s.Runs[i].Artifact == artifact {
				return &s.Runs[i]
			}
		}
	}
	return nil
}

func pair(suite string, a, b ArtifactResult) Pair {
	p := Pair{Suite: suite, Artifact: a.Artifact}
	left := slices.Clone(b.Checks)
	for _, check := range a.Checks {
		cp := CheckPair{A: check}
		if i := slices.IndexFunc(left, func(c gate.Check) bool { return c.Gate == check.Gate && c.Figure == check.Figure }); i >= 0 {
			found := left[i]
			cp.B = &found
			left = slices.Delete(left, i, i+1)
		}
		p.Checks = append(p.Checks, cp)
	}
	if a.Performance == nil || b.Performance == nil {
		return p
	}
	for _, s := range a.Performance.Shapes {
		for _, o := range b.Performance.Shapes {
			if s.Rows == o.Rows && s.Tokens == o.Tokens {
				p.Speeds = append(p.Speeds, SpeedPair{fmt.Sprintf("%d × %d tokens", s.Rows, s.Tokens), s.TokensPerSecond, o.TokensPerSecond})
			}
		}
	}
	return p
}

// Worse says in what B is worse than A: a run or a check that is gone, a check
// that passed and fails now, and, on the same machine, a speed below 1/slowdown
// of what it was. A slowdown of 0 is no bound.
func (c Comparison) Worse(slowdown float64) []string {
	var all []string
	for _, m := range c.Missing {
		all = append(all, m+": was measured before, and is not now")
	}
	for _, p := range c.Pairs {
		name := p.Suite + " " + p.Artifact
		for _, k := range p.Checks {
			switch {
			case k.B == nil:
				all = append(all, fmt.Sprintf("%s: %s, %s was held before, and is not now", name, k.A.Gate, k.A.Figure))
			case k.A.Passed && !k.B.Passed:
				all = append(all, fmt.Sprintf("%s: %s, %s passed with %v, and fails with %v", name, k.A.Gate, k.A.Figure, k.A.Value, k.B.Value))
			}
		}
		for _, s := range p.Speeds {
			if c.SameMachine && slowdown > 0 && s.B*slowdown < s.A {
				all = append(all, fmt.Sprintf("%s: %s took %.2f times as long as before, allowed is %v", name, s.Shape, s.A/s.B, slowdown))
			}
		}
	}
	return all
}
