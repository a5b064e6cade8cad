package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/synapse-module/workers/certify"
	"github.com/synapse-module/workers/certify/gate"
	"github.com/synapse-module/workers/certify/suite"
	"github.com/synapse-module/workers/certify/tokenizer"
	"github.com/synapse-module/workers/host"
)

type embedCmd struct {
	Suite string   `arg:"" placeholder:"SUITE" predictor:"suite" help:"The suite whose model is loaded."`
	Texts []string `arg:"" optional:"" placeholder:"TEXT" help:"Any texts; or inputs of the suite by their ids (t001), which stand beside their reference."`

	IDs       []int32  `name:"ids" placeholder:"N" help:"Token ids to embed, as the tokenizer of a module made them."`
	Tokenizer string   `placeholder:"PATH" predictor:"file" help:"The model's tokenizer.json, of BERT's kind, for texts that the suite has not. Default: the one beside the artifact."`
	Worker    string   `required:"" placeholder:"PATH" predictor:"file" help:"The worker's executable."`
	EngineLib string   `placeholder:"DIR" predictor:"file" help:"Directory of the engine's native libraries, given to the worker."`
	Artifact  []string `placeholder:"[NAME=]PATH" sep:"none" help:"File or directory of the artifact, in place of the asset of that name."`
	Only      string   `placeholder:"NAME" help:"The artifact of the suite. Default: its first for the worker's engine."`
	Pooling   string   `placeholder:"NAME" help:"Another pooling than the model's: mean, cls or last."`
	Raw       bool     `help:"Do not scale the vector to length 1."`
}

// Help is shown under the flags.
func (embedCmd) Help() string {
	return `Prints one JSON object a line: the text, its ids, the vector, and its cosine to the reference.

Examples:
  certify embed all-minilm-l6-v2 "Hello World" "a text of my own" --worker bin/worker-onnx
  certify embed all-minilm-l6-v2 --ids 101,7592,2088,102 --worker bin/worker-onnx`
}

// embedded is one line of output.
type embedded struct {
	ID     string       `json:"id,omitempty"`
	Text   *string      `json:"text,omitempty"`
	IDs    []int32      `json:"ids"`
	Vector []float32    `json:"vector"`
	Cosine *gate.Figure `json:"cosine,omitempty"` // to the reference
}

func (c embedCmd) Run(ctx context.Context, con console) error {
	loaded, err := loadSuites([]string{c.Suite})
	if err != nil {
		return err
	}
	s := loaded[0]
	if s.Task != suite.Embed {
		return &certify.UsageError{Msg: fmt.Sprintf("suite %s is of a model that gives no vectors: its task is %s", s.Name, s.Task)}
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
	artifact, path, err := c.find(ctx, w.Hello().Engine.Name, s, con)
	if err != nil {
		return err
	}
	rows, references, err := c.rows(s, path)
	if err != nil {
		return err
	}
	model, err := w.Load(ctx, host.LoadRequest{Path: path, Digest: artifact.Digest, Format: artifact.Format, Config: configOf(artifact)})
	if err != nil {
		return err
	}
	q := host.EmbedRequest{Model: model.Ref, Pooling: c.Pooling, Normalize: !c.Raw}
	if q.Pooling == "" {
		q.Pooling = s.Model.Pooling
	}
	for i, row := range rows {
		q.Rows = [][]int32{row.IDs}
		v, err := w.Embed(ctx, q)
		if err != nil {
			return err
		}
		row.Vector = v.Row(0)
		if references[i] != nil {
			cosine := gate.Similarity(row.Vector, references[i])
			row.Cosine = &cosine
		}
		line, err := json.Marshal(row)
		if err != nil {
			return err
		}
		fmt.Fprintf(con.out, "%s\n", line)
	}
	return w.Close(ctx)
}

// start starts a worker. One that is not there is the command line's fault, not the
// worker's.
func start(ctx context.Context, path string, args []string) (*host.Worker, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, &certify.UsageError{Msg: err.Error()}
	}
	return host.Start(ctx, host.Spec{Path: path, Args: args})
}

// rows finds the ids of each text, and the reference's vector where there is one.
// path is the artifact's.
func (c embedCmd) rows(s *suite.Suite, path string) (rows []embedded, references [][]float32, err error) {
	var t *tokenizer.Tokenizer // read for the first text that needs it
	for _, text := range c.Texts {
		if i := slices.IndexFunc(s.Inputs, func(in suite.Input) bool { return in.ID == text || in.Text != nil && *in.Text == text }); i >= 0 {
			in := s.Inputs[i]
			rows, references = append(rows, embedded{ID: in.ID, Text: in.Text, IDs: in.IDs}), append(references, s.Reference[i])
			continue
		}
		if t == nil {
			if t, err = c.tokenizer(path); err != nil {
				return nil, nil, &certify.UsageError{Msg: fmt.Sprintf("suite %s has no text %q, and there is no tokenizer for it: %v; name the model's with --tokenizer, or give ids with --ids", s.Name, text, err)}
			}
		}
		rows, references = append(rows, embedded{Text: &text, IDs: t.Encode(text)}), append(references, nil)
	}
	if len(c.IDs) > 0 {
		rows, references = append(rows, embedded{IDs: c.IDs}), append(references, nil)
	}
	if len(rows) == 0 {
		return nil, nil, &certify.UsageError{Msg: "nothing to embed: give a text, the id of an input of the suite, or --ids"}
	}
	return rows, references, nil
}

// tokenizer reads the one that was named, or the one beside an artifact, which is
// a file or a directory.
func (c embedCmd) tokenizer(path string) (*tokenizer.Tokenizer, error) {
	const name = "tokenizer.json"
	if c.Tokenizer != "" {
		return tokenizer.ReadFile(c.Tokenizer)
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return tokenizer.ReadFile(filepath.Join(path, name))
	}
	return tokenizer.ReadFile(filepath.Join(filepath.Dir(path), name))
}

// find finds the artifact that was asked for.
func (c embedCmd) find(ctx context.Context, engine string, s *suite.Suite, con console) (suite.Artifact, string, error) {
	var only []string
	if c.Only != "" {
		only = []string{c.Only}
	}
	where, err := newLocator(c.Artifact, only, []*suite.Suite{s}, con)
	if err != nil {
		return suite.Artifact{}, "", err
	}
	var names []string
	for _, a := range s.Artifacts {
		names = append(names, fmt.Sprintf("%s (%s)", a.Name, a.Engine))
		if a.Engine != engine || c.Only != "" && a.Name != c.Only {
			continue
		}
		path, err := where.find(ctx, a.Name)
		if err != nil {
			return suite.Artifact{}, "", &certify.UsageError{Msg: err.Error()}
		}
		return a, path, nil
	}
	return suite.Artifact{}, "", &certify.UsageError{Msg: fmt.Sprintf("suite %s has no such artifact for the engine %q; it has: %s", s.Name, engine, strings.Join(names, ", "))}
}

// configOf is an artifact's runtime_config, nil for the engine's defaults.
func configOf(a suite.Artifact) any {
	if a.RuntimeConfig == nil {
		return nil
	}
	return a.RuntimeConfig
}
