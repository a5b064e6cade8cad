package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/jstemmer/go-junit-report/v2/junit"

	"github.com/synapse-module/workers/certify"
	"github.com/synapse-module/workers/certify/gate"
)

// JUnit writes a result as JUnit XML: one suite an artifact, one case a check
// or control. What could not be measured is an error, a failed gate a failure.
func JUnit(w io.Writer, r *certify.Result) error {
	var all []junit.Testsuite
	for _, s := range r.Suites {
		for _, run := range s.Runs {
			all = append(all, junitSuite(s.Name, run, r))
		}
	}
	return writeJUnit(w, all...)
}

func writeJUnit(w io.Writer, suites ...junit.Testsuite) error {
	all := junit.Testsuites{Name: "certify"}
	for _, ts := range suites {
		all.AddSuite(ts)
	}
	if _, err := io.WriteString(w, `<?xml version="1.0" encoding="UTF-8"?>`+"\n"); err != nil {
		return err
	}
	return all.WriteXML(w)
}

func junitSuite(suite string, run certify.ArtifactResult, r *certify.Result) junit.Testsuite {
	name := suite + "/" + run.Artifact
	ts := junit.Testsuite{Name: name, Time: fmt.Sprintf("%.3f", run.Seconds)}
	ts.SetTimestamp(r.Started)
	ts.AddProperty("worker", string(r.Worker.Digest))
	ts.AddProperty("engine", r.Worker.Engine.Name+" "+r.Worker.Engine.Version)
	ts.AddProperty("artifact", string(run.Digest))
	for _, c := range run.Checks {
		tc := junit.Testcase{Classname: name, Name: c.Gate + ": " + c.Figure}
		if !c.Passed {
			tc.Failure = &junit.Result{Message: explain(run, c), Type: c.Gate}
		}
		ts.AddTestcase(tc)
	}
	for _, c := range run.Controls {
		ts.AddTestcase(junitControl(name, c))
	}
	if p := run.Problem; p != nil {
		tc := junit.Testcase{Classname: name, Name: "measured", Error: &junit.Result{Message: p.Message, Type: "unmeasured"}}
		if p.LogTail != "" {
			tc.SystemErr = &junit.Output{Data: strings.ToValidUTF8(p.LogTail, "�")}
		}
		ts.AddTestcase(tc)
	}
	return ts
}

func junitControl(name string, c gate.Control) junit.Testcase {
	tc := junit.Testcase{Classname: name, Name: "control: " + c.Name}
	switch {
	case c.Hidden != "":
		tc.Skipped = &junit.Result{Message: "not shown here: " + c.Hidden}
	case !c.Held:
		tc.Error = &junit.Result{Message: "passed all gates although it is wrong on purpose, so the run is void", Type: "void"}
	}
	return tc
}
