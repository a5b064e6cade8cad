package certify

import "github.com/synapse-module/workers/certify/certificate"

// Certificates returns one certificate for each artifact that passed.
func (r *Result) Certificates() []*certificate.Certificate {
	var all []*certificate.Certificate
	for _, s := range r.Suites {
		for _, run := range s.Runs {
			if run.Verdict != Passed {
				continue
			}
			all = append(all, &certificate.Certificate{
				Version: certificate.Version, Issued: r.Started, Tool: r.Tool,
				Worker: certificate.File{Name: r.Worker.Name, Digest: r.Worker.Digest},
				Engine: r.Worker.Engine, Libraries: r.Worker.Libraries,
				Artifact: certificate.Artifact{
					File:   certificate.File{Name: run.Artifact, Digest: run.Digest},
					Format: run.Format, Requested: run.RuntimeConfig, Config: run.Model.Config,
				},
				Model: s.Model, Suite: certificate.File{Name: s.Name, Digest: s.Digest},
				Machine: r.Machine, Checks: run.Checks, Controls: run.Controls,
			})
		}
	}
	return all
}
