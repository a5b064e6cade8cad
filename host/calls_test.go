//go:build linux || darwin

package host_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/synapse-module/workers/engines/fake"
	"github.com/synapse-module/workers/host"
	"github.com/synapse-module/workers/internal/puppet"
	"github.com/synapse-module/workers/protocol"
)

func itoa(n int) string { return strconv.Itoa(n) }

func TestCalls(t *testing.T) {
	w := start(t, fakeSpec(t))
	ctx := patient(t)
	if h := w.Hello(); h.Engine.Name != "fake" || h.PID != w.PID() || w.MaxFrame() != protocol.DefaultMaxFrame {
		t.Fatalf("HELLO is %+v, max_frame %d, pid %d", h, w.MaxFrame(), w.PID())
	}
	m, err := w.Load(ctx, artifact(t, map[string]any{"dims": 3, "placement_share": 0.5}))
	if err != nil || m.Ref == "" || m.Dims != 3 || m.ColdLoad < 0 {
		t.Fatalf("Load: %+v, %v", m, err)
	}
	v, err := w.Embed(ctx, host.EmbedRequest{Model: m.Ref, Pooling: "cls", Rows: [][]int32{{7, 8}, {9}}})
	if err != nil || v.N != 2 || v.Dims != 3 || len(v.Data) != 6 {
		t.Fatalf("Embed: %+v, %v", v, err)
	}
	for i, first := range []int32{7, 9} {
		for j, got := range v.Row(i) {
			if want := float32(fake.State(first, j)); got != want {
				t.Errorf("vector %d component %d is %v, want %v", i, j, got, want)
			}
		}
	}
	v, err = w.Embed(ctx, host.EmbedRequest{Model: m.Ref, Normalize: true, Rows: [][]int32{{7, 8}}})
	if err != nil {
		t.Fatal(err)
	}
	var norm float64
	for _, x := range v.Row(0) {
		norm += float64(x) * float64(x)
	}
	if math.Abs(norm-1) > 1e-5 {
		t.Errorf("a normalised vector has the squared length %v", norm)
	}
	scores, err := w.Rerank(ctx, host.RerankRequest{Model: m.Ref, Query: []int32{1, 2}, Candidates: [][]int32{{1, 9}, {9}, {1, 2}}})
	if err != nil || !slices.Equal(scores, []float32{0.5, 0, 1}) {
		t.Errorf("Rerank: %v, %v", scores, err)
	}
	text, err := w.Generate(ctx, host.GenerateRequest{Model: m.Ref, Prompt: []int32{4, 2}, MaxTokens: 8})
	if err != nil || text != (host.Text{Text: "4", NPrompt: 2, NGen: 1, Finish: protocol.FinishStop}) {
		t.Errorf("Generate: %+v, %v", text, err)
	}
	d, err := w.Describe(ctx, m.Ref)
	if err != nil || d.Dims != 3 || d.Arch != "fake" {
		t.Errorf("Describe: %+v, %v", d, err)
	}
	p, err := w.Ping(ctx)
	if err != nil || p.RSSMB < 1 || p.ModelsLoaded != 1 || p.PlacementShare == nil || *p.PlacementShare != 0.5 {
		t.Errorf("Ping: %+v, %v", p, err)
	}
	if err := w.Unload(ctx, m.Ref); err != nil {
		t.Errorf("Unload: %v", err)
	}
	if _, err := w.Embed(ctx, host.EmbedRequest{Model: m.Ref, Rows: [][]int32{{1}}}); !errors.Is(err, &protocol.Error{Code: protocol.CodeModelNotFound}) {
		t.Errorf("Embed after Unload: %v", err)
	}
	if err := w.Close(ctx); err != nil || w.Err() != nil {
		t.Errorf("Close: %v, Err %v", err, w.Err())
	}
	if err := w.Close(ctx); err != nil {
		t.Errorf("second Close: %v", err)
	}
	dead(t, w.PID())
	var gone *host.WorkerGone
	if _, err := w.Ping(ctx); !errors.As(err, &gone) {
		t.Errorf("Ping after Close: %v", err)
	}
}

// A refusal of each kind leaves the worker serving.
func TestRefusals(t *testing.T) {
	w := start(t, fakeSpec(t))
	ref := load(t, w, map[string]any{"vocab_size": 100, "max_tokens": 8})
	embed := func(rows ...[]int32) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := w.Embed(ctx, host.EmbedRequest{Model: ref, Rows: rows})
			return err
		}
	}
	for name, c := range map[string]struct {
		do   func(context.Context) error
		code protocol.Code
	}{
		"id -1":        {embed([]int32{-1}), protocol.CodeRequestInvalid},
		"id vocab":     {embed([]int32{100}), protocol.CodeRequestInvalid},
		"id 2^31-1":    {embed([]int32{math.MaxInt32}), protocol.CodeRequestInvalid},
		"empty row":    {embed([]int32{1}, nil), protocol.CodeRequestInvalid},
		"row too long": {embed(make([]int32, 9)), protocol.CodeRequestInvalid},
		"pooling": {func(ctx context.Context) error {
			_, err := w.Embed(ctx, host.EmbedRequest{Model: ref, Pooling: "median", Rows: [][]int32{{1}}})
			return err
		}, protocol.CodeRequestInvalid},
		"digest": {func(ctx context.Context) error {
			q := artifact(t, nil)
			q.Digest = protocol.Digest("sha256:" + strings.Repeat("0", 64))
			_, err := w.Load(ctx, q)
			return err
		}, protocol.CodeArtifactInvalid},
		"config": {func(ctx context.Context) error {
			_, err := w.Load(ctx, artifact(t, map[string]any{"dims": 0}))
			return err
		}, protocol.CodeConfigInvalid},
		"unload": {func(ctx context.Context) error { return w.Unload(ctx, "nope") }, protocol.CodeModelNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			if err := c.do(patient(t)); !errors.Is(err, &protocol.Error{Code: c.code}) {
				t.Errorf("got %v, want %s", err, c.code)
			}
			good(t, w, ref)
		})
	}
}

// What does not fit a frame, or JSON, is refused before a byte is sent.
func TestRequestsThatCannotBeSent(t *testing.T) {
	s := fakeSpec(t)
	s.MaxFrame = protocol.MinMaxFrame
	w := start(t, s)
	ref := load(t, w, nil)
	var size *protocol.OversizeError
	if _, err := w.Embed(patient(t), host.EmbedRequest{Model: ref, Rows: [][]int32{make([]int32, protocol.MinMaxFrame/4+1)}}); !errors.As(err, &size) || size.Limit != protocol.MinMaxFrame {
		t.Errorf("one id too many for a frame: %v", err)
	}
	if _, err := w.Generate(patient(t), host.GenerateRequest{Model: "\xff", Prompt: []int32{1}, MaxTokens: 1}); err == nil || strings.Contains(err.Error(), "crashed") {
		t.Errorf("a model reference that is not UTF-8: %v", err)
	}
	if _, err := w.Load(patient(t), host.LoadRequest{Config: func() {}}); err == nil || !strings.Contains(err.Error(), "Config") {
		t.Errorf("a config that is no JSON: %v", err)
	}
	good(t, w, ref)
}

func TestConcurrentCallersShareTheLane(t *testing.T) {
	w := start(t, fakeSpec(t))
	ref := load(t, w, nil)
	var all sync.WaitGroup
	for id := range int32(16) {
		all.Go(func() {
			for range 20 {
				v, err := w.Embed(patient(t), host.EmbedRequest{Model: ref, Rows: [][]int32{{id}, {id + 1}}})
				if err != nil {
					t.Errorf("caller %d: %v", id, err)
					return
				}
				if v.Row(0)[0] != float32(fake.State(id, 0)) || v.Row(1)[0] != float32(fake.State(id+1, 0)) {
					t.Errorf("caller %d got another's vectors", id)
				}
			}
		})
	}
	all.Wait()
}

// A request that gives up in the queue harms nobody.
func TestGivingUpInTheQueue(t *testing.T) {
	w := start(t, fakeSpec(t))
	ref := load(t, w, map[string]any{"fault": "sleep", "fault_ms": 4000})
	first := make(chan error, 1)
	started := make(chan struct{})
	go func() {
		close(started)
		_, err := w.Embed(patient(t), host.EmbedRequest{Model: ref, Rows: [][]int32{{5}}})
		first <- err
	}()
	<-started
	for {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		_, err := w.Ping(ctx)
		cancel()
		if err == nil {
			continue // before the sleeper had the lane
		}
		var canceled *host.RequestCanceled
		if !errors.As(err, &canceled) || canceled.Killed || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the one that waited: %v", err)
		}
		break
	}
	if err := <-first; err != nil {
		t.Errorf("the one in hand: %v", err)
	}
}

// Report 41: an answer is never lost to the shutdown right behind it.
func TestReport41_AnswerThenShutdown(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: starts 100 workers")
	}
	for range 100 {
		w := start(t, puppetSpec(t, puppet.Handshake(puppet.Step{Do: "serve", N: 1})))
		if _, err := w.Ping(patient(t)); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(patient(t)); err != nil {
			t.Fatal(err)
		}
	}
}
