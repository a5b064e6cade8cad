//go:build linux || darwin

package host_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/synapse-module/workers/host"
	"github.com/synapse-module/workers/internal/puppet"
	"github.com/synapse-module/workers/protocol"
)

// Report 18: an engine that returns fewer rows than it was given is found out, by
// the worker where the engine is ours, by the host where it is not.
func TestReport18_FewerRows(t *testing.T) {
	w := start(t, fakeSpec(t))
	ref := load(t, w, map[string]any{"fault": "fewer_rows"})
	if _, err := w.Embed(patient(t), host.EmbedRequest{Model: ref, Rows: [][]int32{{1}, {2}}}); !errors.Is(err, &protocol.Error{Code: protocol.CodeEngineFailed}) {
		t.Errorf("from the engine: %v", err)
	}
	good(t, w, load(t, w, nil))

	p := start(t, puppetSpec(t, puppet.Handshake(puppet.Step{Do: "serve", N: 1}, puppet.Step{Do: "request"},
		puppet.Step{Do: "json", Text: `{"type":"VECTORS","req_id":$ID,"dims":4,"n":1}`}, puppet.Step{Do: "raw", N: 16}, puppet.Step{Do: "die", Text: "hang"})))
	m, err := p.Load(patient(t), host.LoadRequest{Path: "/x", Digest: "sha256:0", Format: "fake"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.Embed(patient(t), host.EmbedRequest{Model: m.Ref, Rows: [][]int32{{1}, {2}}})
	wantCrash(t, err, host.StageEmbed, host.CauseViolation)
}

// Report 29: an illegal instruction while the engine loads says so.
func TestReport29_IllegalInstructionInLoad(t *testing.T) {
	w := start(t, fakeSpec(t))
	_, err := w.Load(patient(t), artifact(t, map[string]any{"fault": "ill", "fault_stage": "load"}))
	if c := wantCrash(t, err, host.StageLoad, host.CauseSignal); c.Signal != "SIGILL" || !strings.Contains(err.Error(), "SIGILL") {
		t.Errorf("%v", err)
	}
}

// Report 31: start, LOAD, SHUTDOWN ends with status 0, every time.
func TestReport31_CleanEnds(t *testing.T) {
	s := fakeSpec(t)
	for range 20 {
		w := start(t, s)
		load(t, w, nil)
		if err := w.Close(patient(t)); err != nil || w.Err() != nil {
			t.Fatalf("Close: %v, Err %v", err, w.Err())
		}
	}
}

// Report 32: a LOAD has a deadline of its own kind. One that is slow is not killed
// by the deadline of embeddings, one that is stuck is by its own.
func TestReport32_SlowLoad(t *testing.T) {
	s := fakeSpec(t)
	s.Deadlines.Embed = short
	w := start(t, s)
	slow := artifact(t, map[string]any{"fault": "sleep", "fault_stage": "load", "fault_ms": 3 * short.Milliseconds()})
	m, err := w.Load(t.Context(), slow)
	if err != nil || m.ColdLoad < 2*short {
		t.Fatalf("the slow one took %v: %v", m.ColdLoad, err)
	}
	good(t, w, m.Ref)
	s.Deadlines.Load = short
	_, err = start(t, s).Load(t.Context(), artifact(t, map[string]any{"fault": "hang", "fault_stage": "load"}))
	wantCrash(t, err, host.StageLoad, host.CauseTimeout)
}

// Report 40: the cap is in the protocol. In both directions exactly the cap passes,
// and what is over it costs nothing.
func TestReport40_FrameCap(t *testing.T) {
	s := fakeSpec(t)
	s.MaxFrame = protocol.MinMaxFrame
	w := start(t, s)
	const most = protocol.MinMaxFrame / 4 // ids, and values, in a frame
	ref := load(t, w, map[string]any{"max_tokens": most + 1, "dims": most})
	v, err := w.Embed(patient(t), host.EmbedRequest{Model: ref, Pooling: "cls", Rows: [][]int32{make([]int32, most)}})
	if err != nil || len(v.Data) != most {
		t.Fatalf("the cap in both directions: %d values, %v", len(v.Data), err)
	}
	var size *protocol.OversizeError
	if _, err := w.Embed(patient(t), host.EmbedRequest{Model: ref, Rows: [][]int32{make([]int32, most+1)}}); !errors.As(err, &size) {
		t.Errorf("a request one id over: %v", err)
	}
	if _, err := w.Embed(patient(t), host.EmbedRequest{Model: ref, Rows: [][]int32{{1}, {2}}}); !errors.Is(err, &protocol.Error{Code: protocol.CodeResponseTooLarge}) {
		t.Errorf("an answer of two caps: %v", err)
	}
	good(t, w, ref)
}

// Report 50: an abort inside GENERATE is a crash of that stage, and the budget
// counts it.
func TestReport50_AbortInGenerate(t *testing.T) {
	policy := host.DefaultPolicy()
	policy.PairCrashes = 1
	p := pool(t, host.PoolSpec{Worker: fakeSpec(t), Policy: policy})
	m := artifact(t, map[string]any{"fault": "abort", "fault_stage": "generate"})
	l := acquire(t, p, m)
	_, err := l.Generate(patient(t), host.GenerateRequest{Prompt: []int32{1}, MaxTokens: 1})
	wantCrash(t, err, host.StageGenerate, host.CauseSignal)
	l.Release()
	var q *host.Quarantined
	if _, err := p.Acquire(patient(t), m); !errors.As(err, &q) || q.Last.Stage != host.StageGenerate {
		t.Errorf("got %v", err)
	}
}

// Who waits for a pair that is quarantined meanwhile is told at once; who waits for
// another model is served.
func TestQuarantineReachesThoseWhoWait(t *testing.T) {
	policy := host.DefaultPolicy()
	policy.PairCrashes = 1
	p := pool(t, host.PoolSpec{Worker: fakeSpec(t), Policy: policy})
	bad, fine := artifact(t, map[string]any{"fault": "hang"}), artifact(t, nil)
	l := acquire(t, p, bad)
	told := make(chan error, 2)
	for _, m := range []host.LoadRequest{bad, fine} {
		before := p.Health().Waiting
		go func() {
			l, err := p.Acquire(patient(t), m)
			if err == nil {
				l.Release()
			}
			told <- err
		}()
		eventually(t, "it waits", func() bool { return p.Health().Waiting == before+1 })
	}
	ctx, cancel := context.WithTimeout(t.Context(), short)
	defer cancel()
	_, err := l.Embed(ctx, host.EmbedRequest{Rows: [][]int32{{1}}})
	wantCrash(t, err, host.StageEmbed, host.CauseTimeout)
	var q *host.Quarantined
	if err := <-told; !errors.As(err, &q) {
		t.Errorf("who waits for the quarantined pair: %v", err)
	}
	if err := <-told; err != nil {
		t.Errorf("who waits for another: %v", err)
	}
}
