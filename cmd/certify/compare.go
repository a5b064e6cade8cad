package main

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/synapse-module/workers/certify"
	"github.com/synapse-module/workers/certify/gate"
	"github.com/synapse-module/workers/certify/report"
)

type compareCmd struct {
	Before string `arg:"" placeholder:"A" predictor:"file" help:"A result.json."`
	After  string `arg:"" placeholder:"B" predictor:"file" help:"A result.json that must not be worse."`

	MaxSlowdown float64  `placeholder:"RATIO" help:"How many times as long a batch may take as before; counted on the same machine only."`
	Parity      float64  `placeholder:"COSINE" help:"The least cosine between the vectors of any artifact of A and any of B, text by text."`
	Only        []string `placeholder:"NAME" help:"With --parity: hold these artifacts only. The others are shown."`
}

// Help is shown under the flags.
func (compareCmd) Help() string {
	return `Exit status 1: B is worse than A.

Examples:
  certify compare before/result.json after/result.json --max-slowdown 1.3
  certify compare onnx/result.json llama/result.json --parity 0.9999 --only minilm-onnx-f32 --only minilm-gguf-f32`
}

func (c compareCmd) Run(con console) error {
	a, err := certify.ReadResult(c.Before)
	if err != nil {
		return &certify.UsageError{Msg: err.Error()}
	}
	b, err := certify.ReadResult(c.After)
	if err != nil {
		return &certify.UsageError{Msg: err.Error()}
	}
	if len(c.Only) > 0 && c.Parity == 0 {
		return &certify.UsageError{Msg: "--only chooses what --parity holds: give both"}
	}
	var worse []string
	if c.Parity != 0 {
		if worse, err = c.parity(con.out, a, b); err != nil {
			return &certify.UsageError{Msg: err.Error()}
		}
	} else {
		both := certify.Compare(a, b)
		report.Comparison(con.out, both)
		worse = both.Worse(c.MaxSlowdown)
	}
	if len(worse) == 0 {
		return nil
	}
	for _, w := range worse {
		fmt.Fprintf(con.out, "WORSE %s\n", w)
	}
	return statusError(certify.ExitFailed)
}

// parity shows how far the vectors of each artifact of a lie from those of each of
// b, over the texts that both embedded, and holds those that were chosen.
func (c compareCmd) parity(w io.Writer, a, b *certify.Result) (worse []string, err error) {
	pairs, held := 0, 0
	for _, s := range a.Suites {
		at := slices.IndexFunc(b.Suites, func(o certify.SuiteResult) bool { return o.Name == s.Name && o.Digest == s.Digest })
		if at < 0 {
			continue
		}
		for _, x := range s.Runs {
			for _, y := range b.Suites[at].Runs {
				va, err := report.ReadVectors(filepath.Dir(c.Before), s.Name, x)
				if err != nil {
					return nil, err
				}
				vb, err := report.ReadVectors(filepath.Dir(c.After), s.Name, y)
				if err != nil {
					return nil, err
				}
				if va == nil || len(va) != len(vb) {
					continue
				}
				pairs++
				cosines := gate.Cosines(va, vb)
				low := slices.Min(cosines)
				id := x.Rows[slices.Index(cosines, low)].ID
				fmt.Fprintf(w, "%s: %s against %s: min cosine %.8f (%s), %d texts\n", s.Name, x.Artifact, y.Artifact, low, id, len(va))
				if !c.holds(x.Artifact, y.Artifact) {
					continue
				}
				held++
				if !(low >= c.Parity) {
					worse = append(worse, fmt.Sprintf("%s: %s and %s are as far apart as a cosine of %.8f, allowed is %v", s.Name, x.Artifact, y.Artifact, low, c.Parity))
				}
			}
		}
	}
	if pairs == 0 {
		return nil, fmt.Errorf("no vectors to compare: both results need the same suite, and their .f32.zst files beside them")
	}
	if held == 0 {
		return nil, fmt.Errorf("--only %s names no two artifacts, one of each result, of the same suite: nothing would be held", strings.Join(c.Only, " --only "))
	}
	return worse, nil
}

// holds reports whether both artifacts are among the chosen; all are where none is.
func (c compareCmd) holds(a, b string) bool {
	return len(c.Only) == 0 || slices.Contains(c.Only, a) && slices.Contains(c.Only, b)
}
