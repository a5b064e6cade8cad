package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/synapse-module/workers/certify"
	"github.com/synapse-module/workers/certify/certificate"
	"github.com/synapse-module/workers/certify/machine"
	"github.com/synapse-module/workers/certify/report"
)

// signingKey reads the key before anything is measured that it could not sign.
func signingKey(path, out string) (*certificate.Key, error) {
	if out == "" {
		return nil, &certify.UsageError{Msg: "--sign needs --out, where certificates go"}
	}
	key, err := certificate.ReadKey(path)
	if err != nil {
		return nil, &certify.UsageError{Msg: err.Error()}
	}
	if !key.CanSign() {
		return nil, &certify.UsageError{Msg: path + " is a public key: --sign needs the private one"}
	}
	return key, nil
}

// writeCertificates signs one for each artifact that passed, and removes from out
// the one of a run of before for each that did not: it would be taken for this run's.
func writeCertificates(ctx context.Context, out string, r *certify.Result, key *certificate.Key) error {
	path := func(suite, artifact string) string {
		return filepath.Join(out, suite+"."+artifact+".certificate.json")
	}
	for _, s := range r.Suites {
		for _, run := range s.Runs {
			if run.Verdict == certify.Passed {
				continue
			}
			if err := os.Remove(path(s.Name, run.Artifact)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	for _, c := range r.Certificates() {
		envelope, err := certificate.Sign(ctx, c, key)
		if err != nil {
			return err
		}
		if err := report.WriteFile(path(c.Suite.Name, c.Artifact.Name), envelope); err != nil {
			return err
		}
	}
	return nil
}

type verifyCmd struct {
	Certificate string   `arg:"" placeholder:"CERT" predictor:"file" help:"A certificate of certify run --sign."`
	Key         []string `required:"" placeholder:"PEM" predictor:"file" sep:"none" help:"A trusted Ed25519 public key; may be given several times."`
	Worker      string   `required:"" placeholder:"PATH" predictor:"file" help:"The worker's executable."`
	EngineLib   string   `placeholder:"DIR" predictor:"file" help:"Directory of the engine's native libraries. Default: lib beside the worker."`
	Artifact    string   `required:"" placeholder:"PATH" predictor:"file" help:"The model's file or directory."`
	Quiet       bool     `short:"q" help:"Say nothing of a certificate that holds."`
}

// Help is shown under the flags.
func (verifyCmd) Help() string {
	return `Exit status 1: the certificate does not hold here.

Examples:
  openssl genpkey -algorithm ed25519 -out key.pem
  openssl pkey -in key.pem -pubout -out key.pub.pem
  certify run all-minilm-l6-v2 --worker bin/worker-onnx --out out --sign key.pem
  certify verify out/all-minilm-l6-v2.minilm-onnx-f32.certificate.json --key key.pub.pem \
      --worker bin/worker-onnx --artifact model.onnx`
}

func (c verifyCmd) Run(ctx context.Context, con console) error {
	var keys []*certificate.Key
	for _, path := range c.Key {
		k, err := certificate.ReadKey(path)
		if err != nil {
			return &certify.UsageError{Msg: err.Error()}
		}
		keys = append(keys, k)
	}
	envelope, err := os.ReadFile(c.Certificate)
	if err != nil {
		return &certify.UsageError{Msg: err.Error()}
	}
	here, err := c.here(ctx)
	if err != nil {
		return &certify.UsageError{Msg: err.Error()}
	}
	found, err := certificate.Open(ctx, envelope, keys...)
	if err == nil {
		err = found.Holds(here)
	}
	if err != nil {
		fmt.Fprintf(con.err, "certify: %s does not hold here:\n%v\n", c.Certificate, err)
		return statusError(certify.ExitFailed)
	}
	if !c.Quiet {
		fmt.Fprintf(con.out, "holds: %s with %s passed %s on %s\n", found.Worker.Name, found.Artifact.Name, found.Suite.Name, found.Issued.Format("2006-01-02"))
	}
	return nil
}

// here is what there is to certify on this machine.
func (c verifyCmd) here(ctx context.Context) (h certificate.Here, err error) {
	h.Machine = machine.This(ctx)
	if h.Worker, err = certificate.DigestOf(c.Worker); err != nil {
		return h, err
	}
	if h.Artifact, err = certificate.DigestOf(c.Artifact); err != nil {
		return h, err
	}
	h.Libraries, err = certificate.Libraries(c.Worker, c.EngineLib)
	return h, err
}
