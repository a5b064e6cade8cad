package certify

import (
	"context"
	"errors"
	"fmt"

	"github.com/synapse-module/workers/certify/gate"
	"github.com/synapse-module/workers/certify/suite"
	"github.com/synapse-module/workers/host"
	"github.com/synapse-module/workers/protocol"
)

// measurement is one artifact in one worker.
type measurement struct {
	job
	gates    suite.Gates
	observer Observer
	worker   *host.Worker
	ref      string // the loaded model

	// ids, rows and want are the inputs that the worker states it takes; the
	// max_tokens gate fails where that is not all of them.
	ids  []string
	rows [][]int32
	want [][]float32

	alone   [][]float32 // the vector of each row, alone in its batch
	longest []int32     // a row of exactly the stated maximum

	result ArtifactResult
}

func newMeasurement(j job, o Options) *measurement {
	return &measurement{
		job: j, gates: j.suite.GatesFor(j.artifact), observer: o.Observer,
		result: ArtifactResult{
			Artifact: j.artifact.Name, Digest: j.artifact.Digest, Format: j.artifact.Format,
			Checks: []gate.Check{}, Controls: []gate.Control{}, Rows: []Row{},
			Similarities: []Similarity{},
		},
	}
}

// all runs every gate and control. A refusal of what the suite may ask for is a
// failed check; the error is of what could not be measured.
func (m *measurement) all(ctx context.Context, o Options) error {
	if err := m.load(ctx); err != nil {
		return err
	}
	steps := []func(context.Context) error{
		m.quality, m.people, m.placement, m.maxTokens, m.company, m.besideLongest, m.repeats, m.controls,
	}
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
	loaded, err := m.worker.Load(ctx, host.LoadRequest{Path: m.path, Digest: m.artifact.Digest, Format: m.artifact.Format, Config: m.config()})
	if err != nil {
		return fmt.Errorf("LOAD of %s: %w", m.path, err)
	}
	m.ref = loaded.Ref
	m.result.ColdLoadMS = loaded.ColdLoad.Milliseconds()
	if loaded.Dims != m.suite.Model.Dims {
		return fmt.Errorf("the worker says that the model has %d dims, the suite's reference has %d: another model, or another suite", loaded.Dims, m.suite.Model.Dims)
	}
	if m.result.Model, err = m.worker.Describe(ctx, m.ref); err != nil {
		return fmt.Errorf("DESCRIBE: %w", err)
	}
	if err := m.statedLimit(); err != nil {
		return err
	}
	for i, in := range m.suite.Inputs {
		if len(in.IDs) <= m.result.Model.MaxTokens {
			m.ids = append(m.ids, in.ID)
			m.rows = append(m.rows, in.IDs)
			m.want = append(m.want, m.suite.Reference[i])
		}
	}
	m.observer.Advance(1)
	return nil
}

// config is the artifact's runtime_config, nil for the engine's defaults.
func (m *measurement) config() any {
	if m.artifact.RuntimeConfig == nil {
		return nil
	}
	return m.artifact.RuntimeConfig
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

// ask names a pooling, and whether vectors are scaled to length 1.
type ask struct {
	pooling   string
	normalize bool
}

func (m *measurement) faithful() ask {
	return ask{m.suite.Model.Pooling, m.suite.Model.Normalize}
}

// embed embeds the given rows, batch by batch in the given order, and returns
// their vectors in the order of rows.
func (m *measurement) embed(ctx context.Context, rows [][]int32, order []int, size int, a ask) ([][]float32, error) {
	out := make([][]float32, len(rows))
	for _, batch := range batches(order, size) {
		q := host.EmbedRequest{Model: m.ref, Pooling: a.pooling, Normalize: a.normalize}
		for _, i := range batch {
			q.Rows = append(q.Rows, rows[i])
		}
		v, err := m.worker.Embed(ctx, q)
		if err != nil {
			return nil, err
		}
		for n, i := range batch {
			out[i] = v.Row(n)
		}
		m.observer.Advance(len(batch))
	}
	return out, nil
}
