package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/synapse-module/workers/certify"
	"github.com/synapse-module/workers/certify/report"
	"github.com/synapse-module/workers/certify/suite"
	"github.com/synapse-module/workers/host"
)

type recordCmd struct {
	Inputs    string `arg:"" placeholder:"INPUTS" predictor:"file" help:"Inputs of a suite, .jsonl.zst."`
	Worker    string `required:"" placeholder:"PATH" predictor:"file" help:"The trusted worker's executable."`
	EngineLib string `placeholder:"DIR" predictor:"file" help:"Directory of the engine's native libraries, given to the worker."`
	Artifact  string `required:"" placeholder:"PATH" predictor:"file" help:"The model's file or directory."`
	Format    string `required:"" placeholder:"NAME" help:"The artifact's format, as LOAD says it."`
	Config    string `placeholder:"JSON" help:"runtime_config for the artifact."`
	Model     string `required:"" placeholder:"NAME" help:"The model's published name, for the provenance."`
	Pooling   string `required:"" enum:"mean,cls,last" placeholder:"NAME" help:"mean, cls or last."`
	Raw       bool   `help:"Record vectors that are not scaled to length 1."`
	Out       string `required:"" placeholder:"DIR" predictor:"file" help:"Write reference.f32.zst and reference.json there."`
}

// Help is shown under the flags.
func (recordCmd) Help() string {
	return `A reference is worth as much as what computed it: hold a worker to vectors of another
implementation, as tools/reference records them, wherever there is one.

Examples:
  certify record inputs.jsonl.zst --worker bin/worker-onnx --artifact model.onnx --format onnx \
      --model all-MiniLM-L6-v2 --pooling mean --out my-suite`
}

func (c recordCmd) Run(ctx context.Context, con console) error {
	if err := canWriteTo(c.Out); err != nil {
		return err
	}
	inputs, digest, err := suite.ReadInputs(c.Inputs)
	if err != nil {
		return &certify.UsageError{Msg: err.Error()}
	}
	artifact, err := artifactOf(c.Artifact, c.Format, c.Config)
	if err != nil {
		return &certify.UsageError{Msg: err.Error()}
	}
	args, err := engineLibArgs(c.EngineLib)
	if err != nil {
		return err
	}
	w, err := start(ctx, c.Worker, args)
	if err != nil {
		return err
	}
	defer w.Kill()
	q := host.LoadRequest{Path: artifact.Path, Digest: artifact.Digest, Format: artifact.Format}
	if artifact.Config != nil {
		q.Config = artifact.Config
	}
	model, err := w.Load(ctx, q)
	if err != nil {
		return err
	}
	description, err := w.Describe(ctx, model.Ref)
	if err != nil {
		return err
	}
	progress := report.NewProgress(con.err, nil)
	progress.Begin("record", c.Model, "alone", len(inputs))
	vectors := make([][]float32, len(inputs))
	for i, in := range inputs {
		v, err := w.Embed(ctx, host.EmbedRequest{Model: model.Ref, Pooling: c.Pooling, Normalize: !c.Raw, Rows: [][]int32{in.IDs}})
		if err != nil {
			return fmt.Errorf("input %s: %w", in.ID, err)
		}
		vectors[i] = v.Row(0)
		progress.Advance(1)
	}
	engine := w.Hello().Engine
	p := suite.Provenance{
		Libraries:  map[string]string{"worker: " + engine.Name: engine.Version, "artifact": string(artifact.Digest)},
		RecordedOn: time.Now().UTC().Format(time.DateOnly),
	}
	p.Model.Name = c.Model
	p.Encoding.Dims, p.Encoding.Pooling, p.Encoding.Normalized, p.Encoding.MaxTokens = model.Dims, c.Pooling, !c.Raw, description.MaxTokens
	p.Inputs.Count, p.Inputs.SHA256 = len(inputs), digest
	if err := c.write(vectors, p); err != nil {
		return err
	}
	fmt.Fprintf(con.out, "%d vectors of %d dims in %s\n", len(vectors), model.Dims, c.Out)
	return w.Close(ctx)
}

func (c recordCmd) write(vectors [][]float32, p suite.Provenance) error {
	packed, digest, err := suite.PackVectors(vectors)
	if err != nil {
		return err
	}
	p.Vectors.SHA256 = digest
	provenance, err := p.Pack()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(c.Out, 0o777); err != nil {
		return err
	}
	if err := report.WriteFile(filepath.Join(c.Out, "reference.f32.zst"), packed); err != nil {
		return err
	}
	return report.WriteFile(filepath.Join(c.Out, "reference.json"), append(provenance, '\n'))
}
