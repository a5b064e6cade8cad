package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/synapse-module/workers/certify"
	"github.com/synapse-module/workers/certify/gate"
	"github.com/synapse-module/workers/certify/suite"
	"github.com/synapse-module/workers/host"
)

type embedCmd struct {
	Suite string   `arg:"" placeholder:"SUITE" predictor:"suite" help:"The suite whose model is loaded."`
	Texts []string `arg:"" optional:"" placeholder:"TEXT" help:"Texts of the suite, or their ids (t001)."`

	IDs       []int32  `name:"ids" placeholder:"N" help:"Token ids to embed, for a text that the suite has not: the module makes them, a worker takes only ids."`
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
  certify embed all-minilm-l6-v2 "Hello World" --worker bin/worker-onnx
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
	rows, references, err := c.rows(s)
	if err != nil {
		return err
	}
	args, err := engineLibArgs(c.EngineLib)
	if err != nil {
		return err
	}
	w, err := host.Start(ctx, host.Spec{Path: c.Worker, Args: args})
	if err != nil {
		return err
	}
	defer w.Kill()
	model, err := c.load(ctx, w, s, con)
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

// rows finds the ids of each text, and the reference's vector where there is one.
func (c embedCmd) rows(s *suite.Suite) (rows []embedded, references [][]float32, err error) {
	for _, text := range c.Texts {
		found := false
		for i, in := range s.Inputs {
			if in.ID == text || in.Text != nil && *in.Text == text {
				rows = append(rows, embedded{ID: in.ID, Text: in.Text, IDs: in.IDs})
				references = append(references, s.Reference[i])
				found = true
				break
			}
		}
		if !found {
			return nil, nil, &certify.UsageError{Msg: fmt.Sprintf("suite %s has no text %q: a worker takes ids, so give those that your tokenizer makes of it with --ids", s.Name, text)}
		}
	}
	if len(c.IDs) > 0 {
		rows, references = append(rows, embedded{IDs: c.IDs}), append(references, nil)
	}
	if len(rows) == 0 {
		return nil, nil, &certify.UsageError{Msg: "nothing to embed: name a text of the suite, or give --ids"}
	}
	return rows, references, nil
}

// load loads the artifact that was asked for.
func (c embedCmd) load(ctx context.Context, w *host.Worker, s *suite.Suite, con console) (host.Loaded, error) {
	var only []string
	if c.Only != "" {
		only = []string{c.Only}
	}
	where, err := newLocator(c.Artifact, only, con)
	if err != nil {
		return host.Loaded{}, err
	}
	engine := w.Hello().Engine.Name
	var names []string
	for _, a := range s.Artifacts {
		names = append(names, fmt.Sprintf("%s (%s)", a.Name, a.Engine))
		if a.Engine != engine || c.Only != "" && a.Name != c.Only {
			continue
		}
		path, err := where.find(ctx, a.Name)
		if err != nil {
			return host.Loaded{}, &certify.UsageError{Msg: err.Error()}
		}
		q := host.LoadRequest{Path: path, Digest: a.Digest, Format: a.Format}
		if a.RuntimeConfig != nil {
			q.Config = a.RuntimeConfig
		}
		return w.Load(ctx, q)
	}
	return host.Loaded{}, &certify.UsageError{Msg: fmt.Sprintf("suite %s has no such artifact for the engine %q; it has: %s", s.Name, engine, strings.Join(names, ", "))}
}
