package report

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/synapse-module/workers/certify"
	"github.com/synapse-module/workers/certify/gate"
)

// clipText is how much of an input's text a line shows.
const clipText = 60

// Table writes the gates of one artifact and its verdict. Colours follow the
// process-wide switch of package text.
func Table(w io.Writer, suite string, r certify.ArtifactResult) {
	fmt.Fprintf(w, "\n%s\n", text.Bold.Sprintf("%s  %s", suite, r.Artifact))
	if len(r.Checks) > 0 {
		t := table.NewWriter()
		t.SetOutputMirror(w)
		t.SetStyle(plain)
		t.AppendHeader(table.Row{"gate", "figure", "value", "limit", "worst", ""})
		for _, c := range r.Checks {
			t.AppendRow(table.Row{c.Gate, c.Figure, number(c.Value), string(c.Relation) + " " + limit(c.Limit), c.Worst, mark(c.Passed, "pass", "FAIL")})
		}
		for _, c := range r.Controls {
			t.AppendRow(controlRow(c))
		}
		t.SetColumnConfigs([]table.ColumnConfig{{Name: "value", Align: text.AlignRight}, {Name: "limit", Align: text.AlignLeft}})
		t.Render()
	}
	if p := r.Performance; p != nil {
		speed(w, p)
	}
	for _, c := range r.Checks {
		if !c.Passed {
			fmt.Fprintln(w, text.FgRed.Sprint(explain(r, c)))
		}
	}
	for _, a := range r.Agreement {
		fmt.Fprintf(w, "agreement with people, %s: Pearson %s (the reference %.6f), Spearman %s (%.6f), %d pairs\n",
			a.Set, number(a.Pearson.Ours), a.Pearson.Reference, number(a.Spearman.Ours), a.Spearman.Reference, a.Pairs)
	}
	for _, c := range r.Controls {
		if c.Hidden != "" {
			fmt.Fprintln(w, text.FgYellow.Sprintf("not shown here: control %s: %s", c.Name, c.Hidden))
		}
	}
	Verdict(w, suite, r)
}

// plain is a table without a frame, which survives a log and a narrow window.
var plain = table.Style{
	Name:    "plain",
	Box:     table.BoxStyle{PaddingRight: "  ", MiddleHorizontal: "─"},
	Format:  table.FormatOptions{Header: text.FormatLower},
	Options: table.Options{SeparateHeader: true},
}

// speed writes the performance record.
func speed(w io.Writer, p *certify.Performance) {
	t := table.NewWriter()
	t.SetOutputMirror(w)
	t.SetStyle(plain)
	t.AppendHeader(table.Row{"batch", "tokens/s", "p50 ms", "p99 ms"})
	for _, s := range p.Shapes {
		t.AppendRow(table.Row{fmt.Sprintf("%d × %d tokens", s.Rows, s.Tokens), fmt.Sprintf("%.0f", s.TokensPerSecond), fmt.Sprintf("%.2f", s.P50MS), fmt.Sprintf("%.2f", s.P99MS)})
	}
	right := func(name string) table.ColumnConfig { return table.ColumnConfig{Name: name, Align: text.AlignRight} }
	t.SetColumnConfigs([]table.ColumnConfig{right("tokens/s"), right("p50 ms"), right("p99 ms")})
	t.Render()
	fmt.Fprintf(w, "load %.0f ms, first answer %.1f ms, resident %.0f MiB loaded, %.0f at most\n", p.ColdLoadMS, p.FirstMS, p.Memory.LoadedMiB, p.Memory.PeakMiB)
}

func controlRow(c gate.Control) table.Row {
	row := table.Row{"control", c.Name, "", "must fail", "", mark(c.Held, "caught", "PASSED")}
	if c.Hidden != "" {
		row[5] = text.FgYellow.Sprint("not shown")
	} else if c.Refused != "" {
		row[2] = "refused"
	} else if i := slices.IndexFunc(c.Checks, func(k gate.Check) bool { return !k.Passed }); i >= 0 {
		row[1] = fmt.Sprintf("%s: %s %s", c.Name, c.Checks[i].Gate, c.Checks[i].Figure)
		row[2] = number(c.Checks[i].Value)
		row[4] = c.Checks[i].Worst
	}
	return row
}

// Verdict writes the one line that sums an artifact up, and for one that could
// not be measured the end of the worker's log.
func Verdict(w io.Writer, suite string, r certify.ArtifactResult) {
	name := suite + " " + r.Artifact
	switch r.Verdict {
	case certify.Passed:
		fmt.Fprintf(w, "%s: %s\n", text.FgGreen.Sprint("passed"), summary(name, r))
	case certify.Failed:
		fmt.Fprintf(w, "%s: %s\n", text.FgRed.Sprint("failed"), summary(name, r))
	case certify.Void:
		fmt.Fprintf(w, "%s: %s: a control that must fail passed all its gates, so they cannot tell right from wrong here\n", text.FgRed.Sprint("void"), name)
	case certify.Unmeasured:
		fmt.Fprintf(w, "%s: %s\n", text.FgYellow.Sprint("unmeasured"), name)
	}
	if r.Problem == nil {
		return
	}
	fmt.Fprintf(w, "%s: %s\n", name, r.Problem.Message)
	if tail := strings.TrimRight(r.Problem.LogTail, "\n"); tail != "" {
		fmt.Fprintf(w, "the end of the worker's log:\n  %s\n", strings.ReplaceAll(tail, "\n", "\n  "))
	}
}

func summary(name string, r certify.ArtifactResult) string {
	failed := 0
	for _, c := range r.Checks {
		if !c.Passed {
			failed++
		}
	}
	s := fmt.Sprintf("%s: %d of %d checks passed", name, len(r.Checks)-failed, len(r.Checks))
	if c, ok := headline(r); ok {
		s += ", " + c.Gate + " " + c.Figure + " " + number(c.Value)
	}
	return s + fmt.Sprintf(", %s, %.1f s", size(r), r.Seconds)
}

// headlines are the checks of which the first that a run has stands for it.
var headlines = []gate.Check{
	{Gate: "cosine", Figure: "min"}, {Gate: "score", Figure: "max error"}, {Gate: "greedy", Figure: "least leading tokens equal"},
}

// headline is the check that stands for a run where there is room for one.
func headline(r certify.ArtifactResult) (gate.Check, bool) {
	for _, h := range headlines {
		if i := slices.IndexFunc(r.Checks, func(c gate.Check) bool { return c.Gate == h.Gate && c.Figure == h.Figure }); i >= 0 {
			return r.Checks[i], true
		}
	}
	return gate.Check{}, false
}

// size says how much was asked.
func size(r certify.ArtifactResult) string {
	switch {
	case len(r.Pairs) > 0:
		return fmt.Sprintf("%d pairs", len(r.Pairs))
	case len(r.Answers) > 0:
		return fmt.Sprintf("%d prompts", len(r.Answers))
	default:
		return fmt.Sprintf("%d texts", len(r.Rows))
	}
}

// explain says of a failed check what the table has no room for.
func explain(r certify.ArtifactResult, c gate.Check) string {
	s := fmt.Sprintf("FAIL %s, %s: %s is not %s %s", c.Gate, c.Figure, number(c.Value), c.Relation, limit(c.Limit))
	if c.Detail != "" {
		s += " (" + c.Detail + ")"
	}
	tokens, input, ok := find(r, c.Worst)
	if !ok {
		return s
	}
	s += fmt.Sprintf("; worst %s, %d tokens", c.Worst, tokens)
	if input != nil {
		s += ": " + strconv.QuoteToGraphic(text.Trim(*input, clipText))
	}
	return s
}

// find returns the length and the text of the input with the id.
func find(r certify.ArtifactResult, id string) (tokens int, input *string, ok bool) {
	for _, row := range r.Rows {
		if row.ID == id {
			return row.Tokens, row.Text, true
		}
	}
	for _, p := range r.Pairs {
		if p.ID == id {
			return p.Tokens, p.Text, true
		}
	}
	for _, a := range r.Answers {
		if a.ID == id {
			return a.Tokens, &a.Prompt, true
		}
	}
	return 0, nil, false
}

func mark(ok bool, yes, no string) string {
	if ok {
		return text.FgGreen.Sprint(yes)
	}
	return text.FgRed.Sprint(no)
}

// number writes a figure so that a cosine shows what it lacks to 1, a count is a
// count, and an error keeps its size.
func number(f gate.Figure) string {
	v := float64(f)
	switch {
	case v == math.Trunc(v) && math.Abs(v) < 1e9:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case math.Abs(v) >= 0.1 && math.Abs(v) < 2:
		return strconv.FormatFloat(v, 'f', 8, 64)
	default:
		return strconv.FormatFloat(v, 'g', 3, 64)
	}
}

// limit writes a limit as the suite has it.
func limit(f gate.Figure) string { return strconv.FormatFloat(float64(f), 'g', -1, 64) }
