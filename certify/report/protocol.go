package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/jstemmer/go-junit-report/v2/junit"

	"github.com/synapse-module/workers/certify/conformance"
)

// ProtocolLine writes what became of one rule of the wire.
func ProtocolLine(w io.Writer, o conformance.Outcome) {
	switch o.Verdict {
	case conformance.Kept:
		fmt.Fprintf(w, "%s  %s\n", text.FgGreen.Sprint("kept   "), o.Name)
	case conformance.Skipped:
		fmt.Fprintf(w, "%s  %s: %s\n", text.FgYellow.Sprint("skipped"), o.Name, o.Detail)
	case conformance.Broken:
		fmt.Fprintf(w, "%s  %s\n         the rule: %s\n         the worker: %s\n", text.FgRed.Sprint("BROKEN "), o.Name, o.Rule, o.Detail)
		if tail := lastLines(o.LogTail, 2); tail != "" {
			fmt.Fprintf(w, "         the end of its log:\n           %s\n", strings.ReplaceAll(tail, "\n", "\n           "))
		}
	}
}

// ProtocolSummary writes one line about all rules.
func ProtocolSummary(w io.Writer, r *conformance.Report) {
	verdict := text.FgGreen.Sprint("passed")
	if r.Count(conformance.Broken) > 0 {
		verdict = text.FgRed.Sprint("failed")
	}
	fmt.Fprintf(w, "%s: %s keeps %d rules of the wire, breaks %d, %d skipped\n",
		verdict, r.Worker, r.Count(conformance.Kept), r.Count(conformance.Broken), r.Count(conformance.Skipped))
}

// ProtocolJUnit writes the rules as JUnit XML, one case each.
func ProtocolJUnit(w io.Writer, r *conformance.Report) error {
	ts := junit.Testsuite{Name: "protocol/" + r.Worker}
	for _, o := range r.Outcomes {
		tc := junit.Testcase{Classname: ts.Name, Name: o.Name}
		switch o.Verdict {
		case conformance.Kept:
		case conformance.Skipped:
			tc.Skipped = &junit.Result{Message: o.Detail}
		case conformance.Broken:
			tc.Failure = &junit.Result{Message: o.Rule + ": " + o.Detail, Type: "protocol"}
			if o.LogTail != "" {
				tc.SystemErr = &junit.Output{Data: o.LogTail}
			}
		}
		ts.AddTestcase(tc)
	}
	return writeJUnit(w, ts)
}

// lastLines returns the last n lines of a log.
func lastLines(log string, n int) string {
	lines := strings.Split(strings.TrimRight(log, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
