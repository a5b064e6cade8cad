//go:build linux || darwin

package transcript_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/synapse-module/workers/host"
	"github.com/synapse-module/workers/internal/transcript"
	"github.com/synapse-module/workers/internal/wiretest"
	"github.com/synapse-module/workers/protocol"
)

// The worker's side of every golden transcript, played to package host: what the
// host sends is the transcript's, byte by byte but for the artifact's path, and
// its calls return what the transcript holds or fail as it says.
func TestHostPlaysTheModule(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	played := 0
	for _, tr := range all(t) {
		if !hostSays(tr) {
			continue
		}
		played++
		t.Run(tr.Name, func(t *testing.T) {
			t.Parallel()
			file, err := filepath.Abs(filepath.Join(dir, tr.Name+".json"))
			if err != nil {
				t.Fatal(err)
			}
			runtimeDir, err := os.MkdirTemp("", "tr") // t.TempDir is too long for a socket
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.RemoveAll(runtimeDir) })
			ctx, cancel := context.WithTimeout(t.Context(), wiretest.Patience)
			t.Cleanup(cancel)
			w, err := host.Start(ctx, host.Spec{
				Path: exe, Env: []string{variable + "=" + file, "GORACE=atexit_sleep_ms=0"},
				RuntimeDir: runtimeDir, MaxFrame: limitOf(tr),
			})
			if tr.Steps[len(tr.Steps)-1].From == transcript.Worker && !slices.ContainsFunc(tr.Steps, func(s transcript.Step) bool { return s.From == transcript.Module }) {
				checkCrash(t, tr, err, host.StageHello)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				w.Kill()
				<-w.Done()
				if t.Failed() {
					t.Logf("the played worker says: %s", w.LogTail())
				}
			})
			playHost(ctx, t, w, tr)
		})
	}
	if least := 37; played < least {
		t.Errorf("%d transcripts were played, there are at least %d that the host can say", played, least)
	}
}

// hostSays says whether the module's side is what package host itself would say:
// sound requests in its own form, numbered by it, one at a time.
func hostSays(tr transcript.Transcript) bool {
	waiting := false
	for _, step := range tr.Steps {
		if step.From == transcript.Worker {
			waiting = false
			continue
		}
		if step.Loose || step.Frame == transcript.Bytes || step.Frame == transcript.End {
			return false
		}
		if step.Frame == transcript.Raw {
			if step.I32 == nil {
				return false
			}
			continue
		}
		if waiting {
			return false
		}
		payload, _ := step.Payload()
		h, _ := protocol.Parse(payload)
		waiting = h.Type != protocol.TypeHelloAck
		switch h.Type {
		case protocol.TypeHelloAck:
			var ack protocol.HelloAck
			if h.Decode(&ack) != nil || !ack.Accept || ack.V != protocol.Version || ack.MaxFrame > protocol.DefaultMaxFrame {
				return false
			}
		case protocol.TypeEmbedBatch:
			var q protocol.EmbedBatch
			if h.Decode(&q) != nil || slices.ContainsFunc(q.Items, func(i protocol.Item) bool { return i.ID != "" }) {
				return false
			}
		case protocol.TypeVectors:
			return false
		}
	}
	return tr.Name != "req-ids" && tr.Name != "err-request-raw-frame" && tr.Name != "bad-module-no-ack" && tr.Name != "bad-module-oversize-raw"
}

// playHost makes the calls of the transcript's requests.
func playHost(ctx context.Context, t *testing.T, w *host.Worker, tr transcript.Transcript) {
	t.Helper()
	for i, step := range tr.Steps {
		if step.From != transcript.Module || step.Frame != transcript.Control || step.Type() == protocol.TypeHelloAck {
			continue
		}
		rest := tr.Steps[i+1:]
		var ids []int32
		if len(rest) > 0 && rest[0].From == transcript.Module && rest[0].Frame == transcript.Raw {
			ids, rest = rest[0].I32, rest[1:]
		}
		answer, crashes := answerOf(tr, rest)
		stage, got, err := callHost(ctx, t, w, step, ids)
		switch {
		case crashes:
			checkCrash(t, tr, err, stage)
			return
		case stage == host.StageShutdown:
			if err != nil {
				t.Fatalf("step %d: %v", i, err)
			}
			return
		}
		checkAnswer(t, i, answer, rest, got, err)
	}
	// The worker speaks unasked.
	select {
	case <-w.Done():
	case <-ctx.Done():
		t.Fatal("the worker lives on")
	}
	checkCrash(t, tr, w.Err(), host.StageIdle)
}

// answerOf is the message that answers a request, or crashes: the worker's last
// words are wrong, and this is the request that they are for.
func answerOf(tr transcript.Transcript, rest []transcript.Step) (answer protocol.Header, crashes bool) {
	last := !slices.ContainsFunc(rest, func(s transcript.Step) bool { return s.From == transcript.Module })
	if last && tr.Expect.Does == transcript.Kill && tr.Name != "bad-worker-unasked" {
		return protocol.Header{}, true
	}
	if len(rest) == 0 {
		return protocol.Header{}, false
	}
	payload, _ := rest[0].Payload()
	answer, _ = protocol.Parse(payload)
	return answer, false
}

// checkCrash holds an error to what a worker that broke the protocol gives.
func checkCrash(t *testing.T, tr transcript.Transcript, err error, stage host.Stage) {
	t.Helper()
	var crash *host.EngineCrashed
	if !errors.As(err, &crash) {
		t.Fatalf("error %v, want a crash: %s", err, tr.Expect.Why)
	}
	var refusal *protocol.Error
	if errors.As(err, &refusal) {
		t.Errorf("the crash %v passes for a refusal of a worker that serves on", err)
	}
	want := host.CauseViolation
	if tr.Name == "bad-worker-eof" {
		want = host.CauseEOF
	}
	if crash.Stage != stage || crash.Cause != want {
		t.Errorf("%v, want stage %s, cause %s", err, stage, want)
	}
}

// callHost makes the call that a module's step is of.
func callHost(ctx context.Context, t *testing.T, w *host.Worker, step transcript.Step, ids []int32) (stage host.Stage, got any, err error) {
	t.Helper()
	payload, err := step.Payload()
	if err != nil {
		t.Fatal(err)
	}
	h, err := protocol.Parse(payload)
	if err != nil {
		t.Fatal(err)
	}
	m := messages[h.Type]()
	if err := h.Decode(m); err != nil {
		t.Fatal(err)
	}
	cut := func(n int) []int32 {
		row := ids[:n]
		ids = ids[n:]
		return row
	}
	switch m := m.(type) {
	case *protocol.Load:
		q := host.LoadRequest{Path: m.ArtifactPath, Digest: m.ArtifactDigest, Format: m.Format}
		if m.RuntimeConfig != nil {
			q.Config = m.RuntimeConfig
		}
		got, err = w.Load(ctx, q)
		return host.StageLoad, got, err
	case *protocol.EmbedBatch:
		q := host.EmbedRequest{Model: m.ModelRef, Pooling: m.Pooling, Normalize: m.Normalize}
		for _, item := range m.Items {
			q.Rows = append(q.Rows, cut(item.NTokens))
		}
		got, err = w.Embed(ctx, q)
		return host.StageEmbed, got, err
	case *protocol.Rerank:
		q := host.RerankRequest{Model: m.ModelRef, Query: cut(m.QueryNTokens)}
		for _, c := range m.Candidates {
			q.Candidates = append(q.Candidates, cut(c.NTokens))
		}
		got, err = w.Rerank(ctx, q)
		return host.StageRerank, got, err
	case *protocol.Generate:
		got, err = w.Generate(ctx, host.GenerateRequest{Model: m.ModelRef, Prompt: ids, MaxTokens: m.MaxTokens, Grammar: m.Grammar})
		return host.StageGenerate, got, err
	case *protocol.Unload:
		return host.StageUnload, nil, w.Unload(ctx, m.ModelRef)
	case *protocol.Ping:
		got, err = w.Ping(ctx)
		return host.StagePing, got, err
	case *protocol.Describe:
		got, err = w.Describe(ctx, m.ModelRef)
		return host.StageDescribe, got, err
	case *protocol.Shutdown:
		return host.StageShutdown, nil, w.Close(ctx)
	}
	t.Fatalf("the host has no call for %s", h.Type)
	return "", nil, nil
}

// checkAnswer holds what a call returned to the transcript's answer.
func checkAnswer(t *testing.T, i int, h protocol.Header, rest []transcript.Step, got any, err error) {
	t.Helper()
	if h.Type == protocol.TypeErr {
		var want, refusal *protocol.Error
		if !errors.As(h.DecodeErr(), &want) || !errors.As(err, &refusal) || *refusal != *want {
			t.Fatalf("step %d: error %v, want %v", i, err, h.DecodeErr())
		}
		return
	}
	if err != nil {
		t.Fatalf("step %d: %v", i, err)
	}
	m := messages[h.Type]()
	if err := h.Decode(m); err != nil {
		t.Fatal(err)
	}
	var want any
	switch m := m.(type) {
	case *protocol.Loaded:
		want = host.Loaded{Ref: m.ModelRef, Dims: m.Dims, ColdLoad: time.Duration(m.ColdLoadMS) * time.Millisecond}
	case *protocol.Vectors:
		want = host.Vectors{N: m.N, Dims: m.Dims, Data: rest[1].F32}
	case *protocol.Scores:
		want = rest[1].F32
	case *protocol.Text:
		want = host.Text{Text: m.Text, NPrompt: m.NPrompt, NGen: m.NGen, Finish: m.FinishReason}
	case *protocol.Pong:
		want = host.Pong{RSSMB: m.RSSMB, ModelsLoaded: m.ModelsLoaded, PlacementShare: m.PlacementShare}
	case *protocol.Description:
		want = *m
	}
	if a, b := plain(t, got), plain(t, want); a != b {
		t.Errorf("step %d: the call returned %s, the transcript has %s", i, a, b)
	}
}

// plain is a value in a form that can be compared: an empty slice is a nil one.
func plain(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v, json.FormatNilSliceAsNull(false), json.WithMarshalers(json.MarshalFunc(func(d time.Duration) ([]byte, error) {
		return fmt.Appendf(nil, "%d", d), nil
	})))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
