package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/synapse-module/workers/certify"
	"github.com/synapse-module/workers/certify/certificate"
	"github.com/synapse-module/workers/certify/conformance"
	"github.com/synapse-module/workers/certify/report"
)

type protocolCmd struct {
	Worker    string `required:"" placeholder:"PATH" predictor:"file" help:"The worker's executable, in any language."`
	EngineLib string `placeholder:"DIR" predictor:"file" help:"Directory of the engine's native libraries, given to the worker."`
	Artifact  string `placeholder:"PATH" predictor:"file" and:"model" help:"A model that the worker loads. Without one, rules about models are skipped."`
	Format    string `placeholder:"NAME" and:"model" help:"The artifact's format, as LOAD says it."`
	Config    string `placeholder:"JSON" help:"runtime_config for the artifact."`
	Out       string `placeholder:"DIR" predictor:"file" help:"Write protocol.json and protocol-junit.xml there."`
	Quiet     bool   `short:"q" help:"Show broken rules only."`
}

// Help is shown under the flags.
func (protocolCmd) Help() string {
	return `Examples:
  certify protocol --worker bin/worker-fake
  certify protocol --worker my-worker.py --artifact model.bin --format toy`
}

func (c protocolCmd) Run(ctx context.Context, con console) error {
	o := conformance.Options{}
	err := canWriteTo(c.Out)
	if err != nil {
		return err
	}
	if o.Worker, err = filepath.Abs(c.Worker); err != nil {
		return err
	}
	if o.Args, err = engineLibArgs(c.EngineLib); err != nil {
		return err
	}
	if c.Artifact != "" {
		if o.Artifact, err = artifactOf(c.Artifact, c.Format, c.Config); err != nil {
			return &certify.UsageError{Msg: err.Error()}
		}
	}
	r, err := conformance.Run(ctx, o, func(out conformance.Outcome) {
		if !c.Quiet || out.Verdict == conformance.Broken {
			report.ProtocolLine(con.out, out)
		}
	})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &certify.UsageError{Msg: err.Error()}
	case err != nil:
		return err
	}
	if c.Out != "" {
		if err := report.WriteProtocolFiles(c.Out, r); err != nil {
			return err
		}
	}
	if !c.Quiet {
		report.ProtocolSummary(con.out, r)
	}
	if r.Count(conformance.Broken) > 0 {
		return statusError(certify.ExitFailed)
	}
	return nil
}

// artifactOf hashes a file or a directory, so that a LOAD of it can be right.
func artifactOf(path, format, config string) (*conformance.Artifact, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	a := &conformance.Artifact{Path: abs, Format: format}
	if config != "" {
		if a.Config = jsontext.Value(config); !a.Config.IsValid() {
			return nil, fmt.Errorf("--config is not JSON: %s", config)
		}
	}
	a.Digest, err = certificate.DigestOf(abs)
	return a, err
}
