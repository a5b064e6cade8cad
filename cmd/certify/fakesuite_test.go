package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/zstd"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/synapse-module/workers/engines/fake"
	"github.com/synapse-module/workers/protocol"
)

const (
	fakeModel = fake.Magic + "\nand bytes that the engine does not read\n"
	fakeDims  = 8
	fakeRows  = 40
	fakeMax   = 24 // tokens of the longest row
)

// fakeSuite writes a suite for the fake engine into a folder.
//
//	fakesuite DIR [KEY=VALUE...]
//
// The reference is computed from the engine's documented formula, not by the
// engine. Keys but these are members of runtime_config:
//
//	reference=cls     what the reference is pooled by, whatever the suite says
//	rows=uniform      rows of one id each repeated, which every pooling treats alike
//	control=last      the pooling of the negative control
//	gates=YAML        further gates
//	controls=YAML     further controls
//	people=0.95       judgements, into DIR-people, and what the reference's correlations are said to be
//	flip=OFFSET       the control that changes a byte of the model
//	wrong=YAML        loads that must not pass
func fakeSuite(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: fakesuite DIR [KEY=VALUE...]")
	}
	f := fakeFiles{reference: "mean", control: "cls", config: map[string]any{"max_tokens": fakeMax}}
	for _, arg := range args[1:] {
		f.set(arg)
	}
	ts.Check(f.write(ts.MkAbs(args[0])))
}

type fakeFiles struct {
	reference, control string
	gates, controls    string
	people, flip       string
	wrong              string
	uniform            bool
	config             map[string]any
}

func (f *fakeFiles) set(arg string) {
	key, value, _ := strings.Cut(arg, "=")
	switch key {
	case "reference":
		f.reference = value
	case "control":
		f.control = value
	case "gates":
		f.gates = value
	case "controls":
		f.controls = value
	case "people":
		f.people = value
	case "flip":
		f.flip = value
	case "wrong":
		f.wrong = value
	case "rows":
		f.uniform = value == "uniform"
	default:
		var v any = value
		if err := json.Unmarshal([]byte(value), &v); err != nil {
			v = value
		}
		f.config[key] = v
	}
}

func (f *fakeFiles) write(dir string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	var lines strings.Builder
	var flat []float32
	random := rand.New(rand.NewPCG(1, 2))
	for i := range fakeRows {
		row := make([]int32, 1+i*(fakeMax-1)/(fakeRows-1))
		for j := range row {
			row[j] = random.Int32N(1000)
			if f.uniform {
				row[j] = row[0]
			}
		}
		line, err := json.Marshal(map[string]any{"id": fmt.Sprintf("r%02d", i), "text": fmt.Sprintf("row %d", i), "ids": row, "tags": []string{fmt.Sprintf("parity:%d", i%2)}})
		if err != nil {
			return err
		}
		lines.Write(append(line, '\n'))
		flat = append(flat, fakeVector(row, f.reference)...)
	}
	provenance, err := json.Marshal(map[string]any{
		"schema": 1, "model": map[string]any{"name": "fake"},
		"encoding": map[string]any{"dims": fakeDims, "pooling": "mean", "normalized": true},
		"inputs":   map[string]any{"count": fakeRows, "sha256": hexDigest([]byte(lines.String()))},
		"vectors":  map[string]any{"sha256": hexDigest(protocol.Bytes(flat))},
	})
	if err != nil {
		return err
	}
	config, err := json.Marshal(f.config) // JSON is YAML
	if err != nil {
		return err
	}
	if f.people != "" {
		if err := f.writePeople(dir); err != nil {
			return err
		}
	}
	packer, err := zstd.NewWriter(nil)
	if err != nil {
		return err
	}
	defer packer.Close()
	for name, content := range map[string][]byte{
		"inputs.jsonl.zst":  packer.EncodeAll([]byte(lines.String()), nil),
		"reference.f32.zst": packer.EncodeAll(protocol.Bytes(flat), nil),
		"reference.json":    provenance,
		"suite.yaml":        fmt.Appendf(nil, fakeYAML, fakeDims, f.peopleYAML(), hexDigest([]byte(fakeModel)), config, f.flipYAML(), fakeMax, f.gates, f.control, f.controls),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

const fakeYAML = `version: 1
name: fake
title: The fake engine against its formula
task: embed
model: {family: fake, dims: %d, pooling: mean, normalize: true}
data: {inputs: inputs.jsonl.zst, vectors: reference.f32.zst, provenance: reference.json}
%s
artifacts:
  - name: model
    engine: fake
    format: fake
    digest: sha256:%s
    runtime_config: %s
    %s
gates:
  cosine: {min: 0.9999, p01: 0.9999, mean: 0.9999}
  max_abs_diff: {max: 0.00001}
  norm: {tolerance: 0.00001}
  invariance: {tolerance: 0.0001, batches: [1, 2, 15, 16, 17, 64], beside_longest: 5}
  repeats: {count: 20, rows: 3}
  max_tokens: {min: %d}
  %s
controls:
  swapped_pooling: {pooling: %s}
  %s
performance:
  shapes: [{rows: 1, tokens: 8}]
  batches: 5
  memory_batches: 60
  memory_settle: 20
  memory_tokens: 100
  max_growth: 1.5
  idle: 1s
  max_idle_share: 0.5
`

// fakeVector is what package fake documents: the mean over the pooled ids of
// State(id, component), scaled to length 1.
func fakeVector(row []int32, pooling string) []float32 {
	switch pooling {
	case "cls":
		row = row[:1]
	case "last":
		row = row[len(row)-1:]
	}
	sum, length := make([]float64, fakeDims), 0.0
	for j := range sum {
		for _, id := range row {
			sum[j] += fake.State(id, j)
		}
		length += sum[j] * sum[j]
	}
	out := make([]float32, fakeDims)
	for j := range out {
		out[j] = float32(sum[j] / math.Sqrt(length))
	}
	return out
}

func hexDigest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
