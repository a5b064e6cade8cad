package certify

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/synapse-module/workers/certify/gate"
	"github.com/synapse-module/workers/certify/suite"
	"github.com/synapse-module/workers/host"
	"github.com/synapse-module/workers/protocol"
)

// measurement is one artifact in one worker: what all tasks have in common.
type measurement struct {
	job
	gates    suite.Gates
	observer Observer
	worker   *host.Worker
	ref      string // the loaded model

	result ArtifactResult
}

// task measures what a suite's task is about.
type task interface {
	// prepare reads the answers to LOAD and DESCRIBE, before anything is asked.
	prepare() error

	// steps are run one after the other.
	steps() []func(context.Context) error

	// batch asks for so many rows or pairs of so many tokens in one request, or for
	// so many answers of at most so many tokens, and says how many tokens were
	// computed.
	batch(ctx context.Context, rows, tokens int) (computed int, err error)
}

func newMeasurement(j job, o Options) *measurement {
	return &measurement{
		job: j, gates: j.suite.GatesFor(j.artifact), observer: o.Observer,
		result: ArtifactResult{
			Artifact: j.artifact.Name, Digest: j.artifact.Digest, Format: j.artifact.Format,
			Checks: []gate.Check{}, Controls: []gate.Control{}, Rows: []Row{},
			Similarities: []Similarity{}, RuntimeConfig: canonical(j.artifact.RuntimeConfig),
		},
	}
}

func (m *measurement) task() task {
	switch m.suite.Task {
	case suite.Rerank:
		return newRanking(m)
	case suite.Generate:
		return newGeneration(m)
	default:
		return newEmbedding(m)
	}
}

// all runs every gate and control. A refusal of what the suite may ask for is a
// failed check; the error is of what could not be measured.
func (m *measurement) all(ctx context.Context, o Options) error {
	if err := m.load(ctx); err != nil {
		return err
	}
	t := m.task()
	if err := t.prepare(); err != nil {
		return err
	}
	steps := append([]func(context.Context) error{m.placement}, t.steps()...)
	if o.Performance && m.suite.Performance != nil {
		steps = append(steps, func(ctx context.Context) error { return m.performance(ctx, o) })
	}
	for _, step := range steps {
		err := step(ctx)
		var refusal *protocol.Error
		if errors.As(err, &refusal) {
			m.add(gate.Refused(refusal))
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (m *measurement) add(checks ...gate.Check) {
	m.result.Checks = append(m.result.Checks, checks...)
}

func (m *measurement) begin(stage string, steps int) {
	m.observer.Begin(m.suite.Name, m.artifact.Name, stage, steps)
}

// load loads the artifact and asks what it is.
func (m *measurement) load(ctx context.Context) error {
	m.begin("load", 1)
	loaded, err := m.worker.Load(ctx, host.LoadRequest{Path: m.path, Digest: m.artifact.Digest, Format: m.artifact.Format, Config: configOf(m.artifact.RuntimeConfig)})
	if err != nil {
		return fmt.Errorf("LOAD of %s: %w", m.path, err)
	}
	m.ref = loaded.Ref
	m.result.ColdLoadMS = loaded.ColdLoad.Milliseconds()
	if loaded.Dims != m.suite.Model.Dims && m.suite.Task == suite.Embed {
		return fmt.Errorf("the worker says that the model has %d dims, the suite's reference has %d: another model, or another suite", loaded.Dims, m.suite.Model.Dims)
	}
	if m.result.Model, err = m.worker.Describe(ctx, m.ref); err != nil {
		return fmt.Errorf("DESCRIBE: %w", err)
	}
	m.observer.Advance(1)
	return m.statedLimit()
}

// canonical is a runtime_config as JSON whose members are in order.
func canonical(c map[string]any) jsontext.Value {
	if len(c) == 0 {
		return jsontext.Value("{}")
	}
	b, err := json.Marshal(c, json.Deterministic(true))
	if err != nil {
		panic(err) // suite.Decode has refused it
	}
	return b
}

// configOf is a runtime_config, nil for the engine's defaults.
func configOf(c map[string]any) any {
	if c == nil {
		return nil
	}
	return c
}

// statedLimit refuses a max_tokens of which no row can be sent.
func (m *measurement) statedLimit() error {
	const idBytes = 4
	stated := m.result.Model.MaxTokens
	if most := int(m.worker.MaxFrame()/idBytes) - 1; stated < 1 || stated > most {
		return fmt.Errorf("the worker states a max_tokens of %d: a row of one more does not fit a frame, or none passes; 1 to %d can be measured", stated, most)
	}
	return nil
}

// placement asks where the worker plans to run the model.
func (m *measurement) placement(ctx context.Context) error {
	if m.gates.Placement == nil {
		return nil
	}
	pong, err := m.worker.Ping(ctx)
	if err != nil {
		return err
	}
	m.add(gate.Placement(*m.gates.Placement, pong.PlacementShare, m.result.Model.Placement)...)
	return nil
}
