package report

import (
	"fmt"
	"io"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/synapse-module/workers/certify"
)

// Comparison writes what changed between two results; figures that are the same
// are counted, not shown.
func Comparison(w io.Writer, c certify.Comparison) {
	for _, p := range c.Pairs {
		fmt.Fprintf(w, "\n%s\n", text.Bold.Sprintf("%s  %s", p.Suite, p.Artifact))
		t := table.NewWriter()
		t.SetOutputMirror(w)
		t.SetStyle(plain)
		t.AppendHeader(table.Row{"gate", "figure", "before", "after", ""})
		same := 0
		for _, k := range p.Checks {
			switch {
			case k.B == nil:
				t.AppendRow(table.Row{k.A.Gate, k.A.Figure, number(k.A.Value), "", text.FgRed.Sprint("gone")})
			case k.A.Value == k.B.Value && k.A.Passed == k.B.Passed:
				same++
			default:
				t.AppendRow(table.Row{k.A.Gate, k.A.Figure, number(k.A.Value), number(k.B.Value), mark(k.B.Passed, "pass", "FAIL")})
			}
		}
		for _, s := range p.Speeds {
			t.AppendRow(table.Row{"speed", s.Shape, fmt.Sprintf("%.0f/s", s.A), fmt.Sprintf("%.0f/s", s.B), fmt.Sprintf("× %.2f", s.B/s.A)})
		}
		if t.Length() > 0 {
			t.Render()
		}
		fmt.Fprintf(w, "%d figures are the same\n", same)
	}
	if !c.SameMachine {
		fmt.Fprintln(w, "the two were made on different machines: speeds are shown and not judged")
	}
}
