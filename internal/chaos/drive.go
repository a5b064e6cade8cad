//go:build linux

package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/synapse-module/workers/engines/fake"
	"github.com/synapse-module/workers/host"
	"github.com/synapse-module/workers/internal/puppet"
	"github.com/synapse-module/workers/protocol"
)

// order is the series of requests that a fault is met in.
var order = []host.Stage{
	host.StageHello, host.StageLoad, host.StageEmbed, host.StageRerank,
	host.StageGenerate, host.StagePing, host.StageUnload, host.StageShutdown,
}

// outcome is how a series ended.
type outcome struct {
	stage host.Stage // of the request that failed, or of the last
	err   error      // nil where all was answered right
	end   error      // the worker's own Err
	log   string
}

// series sends the whole order to one worker and holds every answer to what it
// must be. The deadline of each request is what limit says of its stage.
type series struct {
	spec    host.Spec
	model   host.LoadRequest
	value   func(row []int32, j int) float32
	limit   func(host.Stage) time.Duration
	between func(*host.Worker) // after the start, in a goroutine of its own; nil for nothing
}

var rows = [][]int32{{1, 2, 3}, {4}, {5, 6}}

func (s series) run(ctx context.Context) outcome {
	o := outcome{}
	var w *host.Worker
	var ref string
	for _, o.stage = range order {
		o.err = s.request(ctx, o.stage, &w, &ref)
		if o.err != nil {
			break
		}
		if o.stage == host.StageHello && s.between != nil {
			defer s.runBetween(w)()
		}
	}
	if w != nil {
		w.Kill()
		<-w.Done()
		o.end, o.log = w.Err(), w.LogTail()
		if err := unix.Kill(w.PID(), 0); !errors.Is(err, unix.ESRCH) {
			o.err = fmt.Errorf("process %d is left: %w, after %w", w.PID(), err, o.err)
		}
		return o
	}
	var crash *host.EngineCrashed
	if errors.As(o.err, &crash) {
		o.log = crash.LogTail
	}
	return o
}

func (s series) runBetween(w *host.Worker) (wait func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.between(w)
	}()
	return func() { <-done }
}

var errWrong = errors.New("wrong answer")

// request sends one request; an answer that is not what it must be is errWrong.
func (s series) request(ctx context.Context, stage host.Stage, w **host.Worker, ref *string) error {
	ctx, cancel := context.WithTimeout(ctx, s.limit(stage))
	defer cancel()
	var err error
	switch stage {
	case host.StageHello:
		*w, err = host.Start(ctx, s.spec)
	case host.StageLoad:
		var m host.Loaded
		m, err = (*w).Load(ctx, s.model)
		*ref = m.Ref
	case host.StageEmbed:
		var v host.Vectors
		v, err = (*w).Embed(ctx, host.EmbedRequest{Model: *ref, Rows: rows})
		if err == nil {
			err = s.check(v)
		}
	case host.StageRerank:
		var scores []float32
		scores, err = (*w).Rerank(ctx, host.RerankRequest{Model: *ref, Query: []int32{1}, Candidates: rows})
		if err == nil && len(scores) != len(rows) {
			err = errWrong
		}
	case host.StageGenerate:
		var t host.Text
		t, err = (*w).Generate(ctx, host.GenerateRequest{Model: *ref, Prompt: []int32{7}, MaxTokens: 2})
		if err == nil && !strings.Contains(t.Text, "7") {
			err = errWrong
		}
	case host.StagePing:
		_, err = (*w).Ping(ctx)
	case host.StageUnload:
		err = (*w).Unload(ctx, *ref)
	case host.StageShutdown:
		err = (*w).Close(ctx)
	}
	return err
}

func (s series) check(v host.Vectors) error {
	if v.N != len(rows) || len(v.Data) != v.N*v.Dims {
		return errWrong
	}
	for i, row := range rows {
		for j, got := range v.Row(i) {
			if got != s.value(row, j) {
				return errWrong
			}
		}
	}
	return nil
}

// fakeValue is what worker-fake gives: the mean of the tokens' states.
func fakeValue(row []int32, j int) float32 {
	var sum float64
	for _, id := range row {
		sum += fake.State(id, j)
	}
	return float32(sum / float64(len(row)))
}

// puppets is a series with a puppet that follows the script.
func (b *bench) puppets(script puppet.Script, limit func(host.Stage) time.Duration) series {
	return series{
		spec:  host.Spec{Path: b.self, Env: script.Env(), RuntimeDir: filepath.Join(b.dir, "rt")},
		model: host.LoadRequest{Path: "/x", Digest: "sha256:0", Format: "fake"},
		value: puppet.Value,
		limit: limit,
	}
}

// fakes is a series with worker-fake and a scripted fault.
func (b *bench) fakes(config map[string]any, limit func(host.Stage) time.Duration) series {
	m := b.model
	m.Config = config
	return series{spec: b.fakeSpec(b.Fake), model: m, value: fakeValue, limit: limit}
}

func (b *bench) fakeSpec(path string) host.Spec {
	return host.Spec{Path: path, RuntimeDir: filepath.Join(b.dir, "rt"), Args: []string{"--cache-dir", filepath.Join(b.dir, "cache")}}
}

// always gives each request the same deadline.
func always(d time.Duration) func(host.Stage) time.Duration {
	return func(host.Stage) time.Duration { return d }
}

// only gives one stage a short deadline and the rest a long one.
func only(s host.Stage) func(host.Stage) time.Duration {
	return func(of host.Stage) time.Duration {
		if of == s {
			return impatience
		}
		return patience
	}
}

// next is the stage after s in the order.
func next(s host.Stage) host.Stage {
	if i := slices.Index(order, s); i+1 < len(order) {
		return order[i+1]
	}
	return s
}

func fakeModel(dir string) (host.LoadRequest, error) {
	path := filepath.Join(dir, "model.fake")
	if err := os.WriteFile(path, []byte(fake.Magic+"\n"), 0o600); err != nil {
		return host.LoadRequest{}, err
	}
	digest, err := protocol.FileDigest(strings.NewReader(fake.Magic + "\n"))
	return host.LoadRequest{Path: path, Digest: digest, Format: fake.Format}, err
}

// wrappers are scripts that start worker-fake under a limit of the system.
func wrappers(dir, exe string) (map[string]string, error) {
	made := map[string]string{}
	for name, limit := range map[string]string{
		"memory": "ulimit -v 3000000", // KiB of address space: enough for a Go program, not for its hoard
	} {
		path := filepath.Join(dir, name+".sh")
		text := "#!/bin/sh\n" + limit + "\nexec '" + exe + "' \"$@\"\n"
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			return nil, err
		}
		made[name] = path
	}
	return made, nil
}
