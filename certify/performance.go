package certify

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/shirou/gopsutil/v4/process"
	"gonum.org/v1/gonum/stat"

	"github.com/synapse-module/workers/certify/gate"
	"github.com/synapse-module/workers/certify/suite"
	"github.com/synapse-module/workers/host"
)

// Performance is how fast and how large one artifact was, in a process of its
// own. Times include the wire and are of this machine in this hour: only ratios
// within one run are gated.
type Performance struct {
	ColdLoadMS float64 `json:"cold_load_ms"` // LOAD to LOADED
	FirstMS    float64 `json:"first_ms"`     // the first batch after it
	Shapes     []Shape `json:"shapes"`
	Memory     Memory  `json:"memory"`
	IdleShare  float64 `json:"idle_cpu_share"` // of one core, loaded and without a request
}

// Shape is the speed of one shape of batch.
type Shape struct {
	Rows            int     `json:"rows"`
	Tokens          int     `json:"tokens"` // a row, a pair, or at most of an answer
	Batches         int     `json:"batches"`
	P50MS           float64 `json:"p50_ms"`
	P99MS           float64 `json:"p99_ms"`
	TokensPerSecond float64 `json:"tokens_per_second"`
}

// Memory is resident memory over many batches of varied shape, in MiB.
type Memory struct {
	LoadedMiB  float64 `json:"loaded_mib"`
	SettledMiB float64 `json:"settled_mib"`
	FinalMiB   float64 `json:"final_mib"`
	PeakMiB    float64 `json:"peak_mib"`
}

// performance measures in a fresh worker, so that nothing is warm.
func (m *measurement) performance(ctx context.Context, o Options) (err error) {
	w, err := host.Start(ctx, spec(o, m.artifact))
	if err != nil {
		return err
	}
	fresh := &measurement{job: m.job, gates: m.gates, observer: m.observer, worker: w}
	defer func() {
		if err != nil {
			w.Kill()
		}
	}()
	self, err := process.NewProcessWithContext(ctx, int32(w.PID()))
	if err != nil {
		return fmt.Errorf("the worker's process cannot be watched: %w", err)
	}
	p, err := fresh.perform(ctx, self)
	if err != nil {
		return err
	}
	m.result.Performance = p
	t := m.suite.Performance
	m.add(gate.MemoryGrowth(p.Memory.SettledMiB, p.Memory.FinalMiB, t.MaxGrowth), gate.Idle(p.IdleShare, t.MaxIdleShare))
	return w.Close(ctx)
}

func (m *measurement) perform(ctx context.Context, self *process.Process) (*Performance, error) {
	t := m.suite.Performance
	p := new(Performance)
	started := time.Now()
	if err := m.load(ctx); err != nil {
		return nil, err
	}
	p.ColdLoadMS = milliseconds(time.Since(started))
	do := m.task()
	if err := do.prepare(); err != nil {
		return nil, err
	}
	took, _, err := timed(ctx, do, 1, t.Shapes[0].Tokens)
	if err != nil {
		return nil, err
	}
	p.FirstMS = milliseconds(took)
	if p.Memory.LoadedMiB, err = residentMiB(ctx, self); err != nil {
		return nil, err
	}
	for _, s := range t.Shapes {
		shape, err := m.shape(ctx, do, s, t.Batches)
		if err != nil {
			return nil, err
		}
		p.Shapes = append(p.Shapes, shape)
	}
	if err := m.memory(ctx, do, self, &p.Memory); err != nil {
		return nil, err
	}
	p.IdleShare, err = m.idle(ctx, self)
	return p, err
}

// timed asks for one batch and returns how long that took, and how many tokens
// were computed.
func timed(ctx context.Context, do task, rows, tokens int) (took time.Duration, computed int, err error) {
	started := time.Now()
	computed, err = do.batch(ctx, rows, tokens)
	return time.Since(started), computed, err
}

func (m *measurement) shape(ctx context.Context, do task, s suite.Shape, n int) (Shape, error) {
	m.begin(fmt.Sprintf("speed of %d × %d tokens", s.Rows, s.Tokens), n*s.Rows)
	took := make([]float64, n)
	total, tokens := 0.0, 0
	for i := range took {
		d, computed, err := timed(ctx, do, s.Rows, s.Tokens)
		if err != nil {
			return Shape{}, err
		}
		took[i] = milliseconds(d)
		total += d.Seconds()
		tokens += computed
	}
	slices.Sort(took)
	return Shape{
		Rows: s.Rows, Tokens: s.Tokens, Batches: n,
		P50MS:           stat.Quantile(0.5, stat.Empirical, took, nil),
		P99MS:           stat.Quantile(0.99, stat.Empirical, took, nil),
		TokensPerSecond: float64(tokens) / total,
	}, nil
}

// memory asks for batches of varied shape and watches what stays resident.
func (m *measurement) memory(ctx context.Context, do task, self *process.Process, out *Memory) error {
	t := m.suite.Performance
	m.begin("memory", t.MemoryBatches)
	random := rand.New(rand.NewPCG(shuffleSeed, 0))
	for n := range t.MemoryBatches {
		tokens := 1 + random.IntN(min(t.MemoryTokens, m.result.Model.MaxTokens))
		rows := 1 + random.IntN(max(1, t.MemoryTokens/tokens))
		if _, err := do.batch(ctx, rows, tokens); err != nil {
			return err
		}
		now, err := residentMiB(ctx, self)
		if err != nil {
			return err
		}
		out.PeakMiB = max(out.PeakMiB, now)
		if n < t.MemorySettle {
			out.SettledMiB = max(out.SettledMiB, now)
		}
		out.FinalMiB = now
	}
	return nil
}

// idle watches the processor time of a worker that has nothing to do.
func (m *measurement) idle(ctx context.Context, self *process.Process) (float64, error) {
	m.begin("idle", 1)
	before, err := self.TimesWithContext(ctx)
	if err != nil {
		return 0, fmt.Errorf("the worker's processor time: %w", err)
	}
	started := time.Now()
	select {
	case <-time.After(m.suite.Performance.Idle):
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
	after, err := self.TimesWithContext(ctx)
	if err != nil {
		return 0, fmt.Errorf("the worker's processor time: %w", err)
	}
	used := after.User + after.System - before.User - before.System
	return max(0, used) / time.Since(started).Seconds(), nil // the sums are rounded
}

func residentMiB(ctx context.Context, self *process.Process) (float64, error) {
	info, err := self.MemoryInfoWithContext(ctx)
	if err != nil {
		return 0, fmt.Errorf("the worker's memory: %w", err)
	}
	const mib = 1 << 20
	return float64(info.RSS) / mib, nil
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
