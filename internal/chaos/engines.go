//go:build linux

package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/synapse-module/workers/host"
	"github.com/synapse-module/workers/protocol"
)

// engineFault is worker-fake with one of its scripted faults, in one of the
// stages that know it.
func engineFault(b *bench, r *rand.Rand) fault {
	stages := []host.Stage{host.StageLoad, host.StageEmbed, host.StageRerank, host.StageGenerate, host.StageUnload}
	stage := stages[r.IntN(len(stages))]
	in := func(c host.Cause) verdict { return verdict{stage: stage, cause: c} }
	code := 1 + r.IntN(255)
	refuse := func(c protocol.Code) verdict { return verdict{stage: stage, refuse: c} }
	choices := []struct {
		fault string
		embed bool // only EMBED_BATCH meets it
		right []verdict
	}{
		{"none", false, []verdict{success}},
		{"sleep", false, []verdict{success}},
		{"stderr_flood", false, []verdict{success}},
		{"hang", false, []verdict{in(host.CauseTimeout)}},
		{"error", false, []verdict{refuse(protocol.CodeEngineFailed)}},
		{"abort", false, []verdict{{stage: stage, cause: host.CauseSignal, signal: "SIGABRT"}}},
		{"segv", false, []verdict{{stage: stage, cause: host.CauseSignal, signal: "SIGSEGV"}}},
		{"ill", false, []verdict{{stage: stage, cause: host.CauseSignal, signal: "SIGILL"}}},
		{"last_words", false, []verdict{{stage: stage, cause: host.CauseSignal, signal: "SIGABRT"}}},
		{"exit", false, []verdict{{stage: stage, cause: host.CauseExit, code: code}}},
		{"panic", false, []verdict{{stage: stage, cause: host.CauseExit, code: 2}}},
		{"garbage", false, []verdict{in(host.CauseViolation)}},
		{"eof", false, lostPeer(stage)},
		{"short_frame", false, lostPeer(stage)},
		{"wrong_dims", true, []verdict{refuse(protocol.CodeEngineFailed)}},
		{"fewer_rows", true, []verdict{refuse(protocol.CodeEngineFailed)}},
		{"nan", true, []verdict{refuse(protocol.CodeEngineFailed)}},
	}
	c := choices[r.IntN(len(choices))]
	if c.embed && stage != host.StageEmbed {
		c = choices[0]
	}
	config := map[string]any{"fault": c.fault, "fault_stage": string(stage), "fault_ms": r.IntN(20), "fault_code": code, "fault_bytes": 8 + r.IntN(1<<18)}
	if c.fault == "error" && stage == host.StageLoad {
		c.right = []verdict{refuse(protocol.CodeArtifactInvalid), refuse(protocol.CodeEngineFailed)}
	}
	return fault{c.fault + " in " + string(stage), func(ctx context.Context) error {
		limit := always(patience)
		if c.fault == "hang" {
			limit = only(stage)
		}
		return oneOf(b.fakes(config, limit).run(ctx), c.right...)
	}}
}

// lostPeer is a worker that loses its connection and, seeing that, ends by itself.
func lostPeer(stage host.Stage) []verdict {
	return []verdict{
		{stage: stage, cause: host.CauseExit, code: protocol.ExitIO},
		{stage: stage, cause: host.CauseExit, code: protocol.ExitViolation},
		{stage: stage, cause: host.CauseExit, code: protocol.ExitOK},
	}
}

// outsideSignal kills or stops a busy worker at a moment of its own.
func outsideSignal(b *bench, r *rand.Rand) fault {
	name := append([]string{"SIGSTOP"}, signals...)[r.IntN(len(signals)+1)]
	if name == "SIGKILL" || name == "SIGSTOP" || name == "SIGTERM" {
		// The Go runtime in worker-fake turns the others into an exit status.
	} else {
		name = "SIGKILL"
	}
	delay := time.Duration(r.IntN(20000)) * time.Microsecond
	config := map[string]any{"fault": "sleep", "fault_stage": "generate", "fault_ms": 30, "dims": 1 + r.IntN(4096)}
	return fault{fmt.Sprintf("%s after %v", name, delay), func(ctx context.Context) error {
		limit := always(patience)
		if name == "SIGSTOP" {
			limit = func(s host.Stage) time.Duration {
				if s == host.StageHello {
					return patience
				}
				return 2 * impatience
			}
		}
		s := b.fakes(config, limit)
		s.between = func(w *host.Worker) {
			time.Sleep(delay)
			select {
			case <-w.Done(): // its id may be another's by now
			default:
				_ = unix.Kill(w.PID(), unix.SignalNum(name))
			}
		}
		o := s.run(ctx)
		return judgeOutside(o, name)
	}}
}

// judgeOutside allows any stage, the end of the series before the signal, and the
// cause that the signal has.
func judgeOutside(o outcome, name string) error {
	right := []verdict{success}
	for _, stage := range append([]host.Stage{host.StageIdle}, order...) {
		v := verdict{stage: stage, cause: host.CauseSignal, signal: name}
		if name == "SIGSTOP" {
			v = verdict{stage: stage, cause: host.CauseTimeout}
		}
		right = append(right, v)
	}
	return oneOf(o, right...)
}

// canceled is a caller that gives up at some moment.
func canceled(b *bench, r *rand.Rand) fault {
	delay := time.Duration(r.IntN(30000)) * time.Microsecond
	config := map[string]any{"fault": "sleep", "fault_stage": "embed", "fault_ms": 20}
	return fault{fmt.Sprintf("after %v", delay), func(ctx context.Context) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		timer := time.AfterFunc(delay, cancel)
		defer timer.Stop()
		o := b.fakes(config, always(patience)).run(ctx)
		var given *host.RequestCanceled
		if errors.As(o.err, &given) && errors.Is(given, context.Canceled) {
			return nil
		}
		return oneOf(o, success)
	}}
}

// memoryLimit is an engine that wants more than its process may have.
func memoryLimit(b *bench, r *rand.Rand) fault {
	stage := []host.Stage{host.StageLoad, host.StageEmbed}[r.IntN(2)]
	config := map[string]any{"fault": "allocate", "fault_stage": string(stage), "fault_bytes": 4 << 30}
	return fault{"4 GiB in " + string(stage), func(ctx context.Context) error {
		s := b.fakes(config, always(patience))
		s.spec.Path = b.wrappers["memory"]
		return oneOf(s.run(ctx), verdict{stage: stage, refuse: protocol.CodeOOM}, verdict{stage: stage, cause: host.CauseExit, code: 2})
	}}
}

// fullDisk is a worker whose cache lies on a full disk. A model that is written there
// is refused, the reason said; one that is not is served beside it.
func fullDisk(b *bench, _ *rand.Rand) fault {
	return fault{"a copy is due", func(ctx context.Context) error {
		s := b.fakes(nil, always(patience))
		s.spec.Args = []string{"--cache-dir", filepath.Join(b.full, "cache")}
		if err := oneOf(s.run(ctx), success); err != nil {
			return fmt.Errorf("a model that needs no copy: %w", err)
		}
		for _, s.model = range b.copied {
			o := s.run(ctx)
			if err := oneOf(o, verdict{stage: host.StageLoad, refuse: protocol.CodeEngineFailed}); err != nil {
				return fmt.Errorf("%s: %w", s.model.Format, err)
			}
			if !strings.Contains(o.err.Error(), "no space left") {
				return fmt.Errorf("%s: refused for another reason: %w", s.model.Format, o.err)
			}
		}
		return nil
	}}
}

// realEngine kills a real engine while it loads or embeds.
func realEngine(b *bench, r *rand.Rand) fault {
	e := b.Engines[r.IntN(len(b.Engines))]
	delay := time.Duration(r.IntN(2000)) * time.Millisecond
	name := []string{"SIGKILL", "SIGTERM", "SIGSTOP"}[r.IntN(3)]
	return fault{fmt.Sprintf("%s: %s after %v", e.Name, name, delay), func(ctx context.Context) error {
		spec := e.Spec
		spec.RuntimeDir = b.fakeSpec("").RuntimeDir
		start, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		w, err := host.Start(start, spec)
		if err != nil {
			return err
		}
		timer := time.AfterFunc(delay, func() { _ = unix.Kill(w.PID(), unix.SignalNum(name)) })
		o := outcome{stage: host.StageLoad}
		limit := 10 * time.Second // a stopped engine is found out after it; a load takes less
		load, cancelLoad := context.WithTimeout(ctx, limit)
		defer cancelLoad()
		m, err := w.Load(load, e.Model)
		o.err = err
		for o.err == nil {
			o.stage = host.StageEmbed
			embed, cancelEmbed := context.WithTimeout(ctx, limit)
			_, o.err = w.Embed(embed, host.EmbedRequest{Model: m.Ref, Pooling: "mean", Rows: [][]int32{{101, 7592, 102}}})
			cancelEmbed()
		}
		timer.Stop()
		w.Kill()
		<-w.Done()
		o.end = w.Err()
		return judgeOutside(o, name)
	}}
}
