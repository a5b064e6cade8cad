package coreml

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/synapse-module/workers/protocol"
	"github.com/synapse-module/workers/workerkit"
)

// SelfCheckOptions say what a self-check is of.
type SelfCheckOptions struct {
	workerkit.Setup

	Artifact     string // directory; empty for the system alone
	Digest       string // what its tree digest must be; empty to take it as it is
	Format       string // "mlpackage" or "mlmodelc"
	ComputeUnits string // as runtime_config.compute_units
}

// SelfReport is what this machine's Core ML is, and what it makes of a model.
// Durations are in milliseconds.
type SelfReport struct {
	MacOS       string         `json:"macos"`
	Build       string         `json:"build"`
	Chip        string         `json:"chip"`
	Messages    int            `json:"messages"`    // that the bridge sends
	Differences []string       `json:"differences"` // from what is expected of this macOS
	Devices     []DeviceReport `json:"devices"`     // empty where this macOS does not tell
	Model       *ModelReport   `json:"model,omitempty"`
	Failures    []string       `json:"failures"` // empty where all is well
}

// DeviceReport is a device that Core ML can use.
type DeviceReport struct {
	Kind  string `json:"kind"`
	Cores int    `json:"cores,omitzero"` // of a Neural Engine
}

// ModelReport is what became of the artifact.
type ModelReport struct {
	Artifact     string              `json:"artifact"`
	Digest       protocol.Digest     `json:"digest"`
	Arch         string              `json:"arch"`
	Dims         int                 `json:"dims"`
	MaxTokens    int                 `json:"max_tokens"`
	ComputeUnits string              `json:"compute_units"`
	FirstLoadMS  float64             `json:"first_load_ms"`  // compiling, where the cache had nothing
	SecondLoadMS float64             `json:"second_load_ms"` // from the caches, ours and the system's
	Buckets      []BucketReport      `json:"buckets"`
	Placement    *protocol.Placement `json:"placement"` // null where it is not known
	Unknown      string              `json:"placement_unknown,omitempty"`
}

// BucketReport is one bucket's golden rows and latency.
type BucketReport struct {
	Rows       int      `json:"rows"`
	Tokens     int      `json:"tokens"`
	GoldenRows int      `json:"golden_rows"` // that fit; 0 says that nothing was compared
	Worst      *float64 `json:"worst,omitempty"`
	MedianMS   float64  `json:"median_ms"`            // of a full call
	CPUOnlyMS  float64  `json:"cpu_only_ms,omitzero"` // the same on the CPU alone
	Speedup    float64  `json:"speedup,omitzero"`     // CPUOnlyMS / MedianMS
	WorstKind  string   `json:"worst_kind,omitempty"` // "cosine" or "score difference"
}

// latencyCalls is how often a bucket is run for its median, and warmCalls how
// often before: the clocks of a device rise with the first calls.
const (
	latencyCalls = 20
	warmCalls    = 3
)

// SelfCheck looks at Core ML and, where an artifact is named, loads it twice,
// holds it to its golden rows, and compares its latency with the CPU's. An error
// says that it could not be done at all; what is wrong with the system or the
// artifact is in Failures.
func SelfCheck(ctx context.Context, o SelfCheckOptions) (SelfReport, error) {
	r := SelfReport{Differences: []string{}, Devices: []DeviceReport{}, Failures: []string{}}
	opened, err := Open(o.Setup)
	if err != nil {
		return r, err
	}
	e := opened.(*engine)
	system := e.bridge.System()
	r.MacOS, r.Build, r.Chip, r.Messages = system.Version, system.Build, system.Chip, e.bridge.Messages()
	for _, d := range e.bridge.Differences() {
		r.Differences = append(r.Differences, d.String())
	}
	for _, d := range e.bridge.Devices() {
		r.Devices = append(r.Devices, DeviceReport{d.Kind.String(), d.Cores})
	}
	if o.Artifact == "" {
		return r, nil
	}
	m, err := e.checkModel(ctx, o)
	r.Model = m
	var refusal *protocol.Error
	switch {
	case errors.As(err, &refusal):
		r.Failures = append(r.Failures, refusal.Error())
	case err != nil:
		return r, err
	}
	return r, nil
}

func (e *engine) checkModel(ctx context.Context, o SelfCheckOptions) (*ModelReport, error) {
	r := &ModelReport{Artifact: o.Artifact, ComputeUnits: o.ComputeUnits, Buckets: []BucketReport{}}
	var err error
	if r.Digest, err = protocol.TreeDigest(os.DirFS(o.Artifact), nil); err != nil {
		return r, workerkit.ArtifactInvalid("%s: %v", o.Artifact, err)
	}
	if o.Digest != "" && o.Digest != string(r.Digest) {
		return r, workerkit.ArtifactInvalid("%s has the digest %s, wanted is %s", o.Artifact, r.Digest, o.Digest)
	}
	took, err := e.timedLoad(ctx, o, r.Digest, func(*session) error { return nil })
	if err != nil {
		return r, err
	}
	r.FirstLoadMS = took
	took, err = e.timedLoad(ctx, o, r.Digest, func(s *session) error { return s.report(ctx, r) })
	if err != nil {
		return r, err
	}
	r.SecondLoadMS = took
	if o.ComputeUnits == "cpu_only" {
		return r, nil
	}
	o.ComputeUnits = "cpu_only"
	_, err = e.timedLoad(ctx, o, r.Digest, func(s *session) error { return s.compare(ctx, r) })
	return r, err
}

// timedLoad loads the artifact with the options' compute units, hands its session
// over and frees it. It returns how long the load took.
func (e *engine) timedLoad(ctx context.Context, o SelfCheckOptions, digest protocol.Digest, use func(*session) error) (ms float64, err error) {
	config, err := workerkit.DecodeConfig(e.info.Options, jsontext.Value(fmt.Sprintf(`{%q:%q}`, optComputeUnits, o.ComputeUnits)))
	if err != nil {
		return 0, err
	}
	size, err := treeSize(o.Artifact)
	if err != nil {
		return 0, err
	}
	start := time.Now()
	m, err := e.Load(ctx, workerkit.Artifact{Path: o.Artifact, Size: size, Format: o.Format, Digest: string(digest), Name: o.Artifact}, config)
	if err != nil {
		var refusal *protocol.Error
		if !errors.As(err, &refusal) {
			err = workerkit.ArtifactInvalid("%v", err)
		}
		return 0, err
	}
	ms = milliseconds(time.Since(start))
	return ms, errors.Join(use(m.(model).state()), m.Close())
}

// report writes down what a session is, and how long its buckets take.
func (s *session) report(ctx context.Context, r *ModelReport) error {
	desc := s.described
	r.Arch, r.Dims, r.MaxTokens, r.Placement, r.Unknown = desc.Arch, desc.Dims, desc.MaxTokens, desc.Placement, s.unknown
	for i := range s.buckets {
		b := &s.buckets[i]
		took, err := s.latency(ctx, b)
		if err != nil {
			return err
		}
		line := BucketReport{Rows: b.rows, Tokens: b.tokens, GoldenRows: s.goldens[i].rows, MedianMS: took}
		if worst := s.goldens[i].worst; !math.IsNaN(worst) {
			line.Worst, line.WorstKind = &worst, "cosine"
			if s.meta.pair != nil {
				line.WorstKind = "score difference"
			}
		}
		r.Buckets = append(r.Buckets, line)
	}
	return nil
}

// compare adds the latency of the same buckets on other units.
func (s *session) compare(ctx context.Context, r *ModelReport) error {
	for i := range s.buckets {
		took, err := s.latency(ctx, &s.buckets[i])
		if err != nil {
			return err
		}
		r.Buckets[i].CPUOnlyMS = took
		r.Buckets[i].Speedup = took / r.Buckets[i].MedianMS
	}
	return nil
}

// latency is the median of a full call, in milliseconds.
func (s *session) latency(ctx context.Context, b *bucket) (float64, error) {
	full := batch{ids: make([][]int32, b.rows)}
	c := call{bucket: b}
	for i := range full.ids {
		full.ids[i] = slices.Repeat([]int32{s.probeToken()}, b.tokens)
		c.rows = append(c.rows, i)
	}
	var times []float64
	for n := range warmCalls + latencyCalls {
		start := time.Now()
		if err := s.runCalls(ctx, []call{c}, full, nil); err != nil {
			return 0, workerkit.EngineFailed("%v", err)
		}
		if n >= warmCalls {
			times = append(times, milliseconds(time.Since(start)))
		}
	}
	slices.Sort(times)
	return times[len(times)/2], nil
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// JSON is the report as one JSON object.
func (r SelfReport) JSON() ([]byte, error) {
	b, err := json.Marshal(r, jsontext.WithIndent("  "))
	return append(b, '\n'), err
}
