package main

import (
	"github.com/synapse-module/workers/certify"
	"github.com/synapse-module/workers/certify/report"
)

type reportCmd struct {
	Result string `arg:"" placeholder:"RESULT" predictor:"file" help:"A result.json of certify run."`
	Out    string `placeholder:"DIR" predictor:"file" help:"Write report.html, junit.xml and result.json there again."`
}

// Help is shown under the flags.
func (reportCmd) Help() string {
	return `Examples:
  certify report out/result.json
  certify report out/result.json --out site`
}

// Run shows a result that was made before. Its status is 0 whatever the verdict
// is: showing it did not fail.
func (c reportCmd) Run(con console) error {
	r, err := certify.ReadResult(c.Result)
	if err != nil {
		return &certify.UsageError{Msg: err.Error()}
	}
	for _, s := range r.Suites {
		for _, run := range s.Runs {
			report.Table(con.out, s.Name, run)
		}
	}
	if c.Out != "" {
		return report.WriteFiles(c.Out, r)
	}
	return nil
}
