package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/synapse-module/workers/certify/suites"
	"github.com/synapse-module/workers/protocol"
)

// evidence is what a worker is asked, and what the answer is held to.
type evidence struct {
	suite     string // whose reference is the measure
	asset     string
	format    string
	config    map[string]any
	emulated  map[string]any // besides config, where every instruction is interpreted
	minCosine float64
}

// evidences names the evidence for each worker that embeds. The bounds are those
// of two fp32 implementations.
var evidences = map[string]evidence{
	"worker-onnx": {
		suite: "all-minilm-l6-v2", asset: "minilm-onnx-f32", format: "onnx", config: map[string]any{"pooling": "mean", "threads": 1},
		// The optimiser takes minutes under an emulator and changes nothing that is looked at.
		emulated: map[string]any{"optimization": "off"}, minCosine: 0.999999,
	},
	"worker-llama": {
		suite: "all-minilm-l6-v2", asset: "minilm-gguf-f32", format: "gguf", config: map[string]any{"threads": 1},
		minCosine: 0.999999,
	},
}

const (
	// probeRows short sentences are enough to see that all of an engine works, and
	// few enough for an emulator.
	probeRows = 3
	// probeTokens bounds a row; the least keeps single words out.
	minProbeTokens, maxProbeTokens = 6, 14
	// probeDeadline bounds one request, and a load, under an emulator on a loaded
	// machine: the longest seen is a minute.
	probeDeadline = 10 * time.Minute
	// startDeadline bounds a command that only says what it is; two seconds are
	// usual, under an emulator as well.
	startDeadline = 2 * time.Minute
)

// probe is a module's whole conversation with a worker; pipeprobe reads it too.
type probe struct {
	Worker string         `json:"worker"`
	Path   string         `json:"path"`
	Digest string         `json:"digest"`
	Format string         `json:"format"`
	Config map[string]any `json:"config"`
	Rows   [][]int32      `json:"rows"`
}

// question makes the probe of a worker, its expected vectors, and the model in a
// place that every user can read.
func (v *prover) question(ctx context.Context, worker string, e evidence) (probe, [][]float32, error) {
	s, err := suites.Load(e.suite)
	if err != nil {
		return probe{}, nil, err
	}
	q := probe{Worker: filepath.Join(v.dir, v.platform.exe(worker)), Format: e.format, Config: map[string]any{}}
	var want [][]float32
	for i, in := range s.Inputs {
		if n := len(in.IDs); in.Text != nil && n >= minProbeTokens && n <= maxProbeTokens && len(want) < probeRows {
			q.Rows, want = append(q.Rows, in.IDs), append(want, s.Reference[i])
		}
	}
	if len(want) == 0 {
		return probe{}, nil, fmt.Errorf("suite %s has no sentence of %d to %d tokens", e.suite, minProbeTokens, maxProbeTokens)
	}
	for k, value := range e.config {
		q.Config[k] = value
	}
	model, err := v.store.Path(ctx, e.asset)
	if err != nil {
		return probe{}, nil, err
	}
	raw, err := os.ReadFile(model)
	if err != nil {
		return probe{}, nil, err
	}
	q.Path, q.Digest = filepath.Join(v.scratch, worker+filepath.Ext(model)), "sha256:"+sumOf(raw)
	return q, want, os.WriteFile(q.Path, raw, 0o644)
}

// judge holds vectors to the reference.
func judge(got, want [][]float32, least float64) (string, error) {
	if len(got) != len(want) {
		return "", fmt.Errorf("%d vectors came, due are %d", len(got), len(want))
	}
	worst := 1.0
	for i := range want {
		c, err := cosine(got[i], want[i])
		if err != nil {
			return "", err
		}
		worst = min(worst, c)
	}
	if !(worst >= least) { // also where it is no number
		return "", fmt.Errorf("the least cosine to the reference is %.7f, due is %g", worst, least)
	}
	return fmt.Sprintf("%d sentences, cosine to the reference at least %.7f", len(want), worst), nil
}

func cosine(a, b []float32) (float64, error) {
	if len(a) != len(b) {
		return 0, fmt.Errorf("a vector has %d values, due are %d", len(a), len(b))
	}
	var ab, aa, bb float64
	for i := range a {
		ab, aa, bb = ab+float64(a[i])*float64(b[i]), aa+float64(a[i])*float64(a[i]), bb+float64(b[i])*float64(b[i])
	}
	return ab / math.Sqrt(aa*bb), nil
}

// digest is the probe's digest as the protocol has it.
func (q probe) digest() protocol.Digest { return protocol.Digest(q.Digest) }
