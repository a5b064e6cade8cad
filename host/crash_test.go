//go:build linux || darwin

package host_test

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/synapse-module/workers/host"
	"github.com/synapse-module/workers/internal/puppet"
	"github.com/synapse-module/workers/protocol"
)

// ask sends the request of a stage.
func ask(ctx context.Context, w *host.Worker, stage host.Stage, ref string) error {
	var err error
	switch stage {
	case host.StageLoad:
		_, err = w.Load(ctx, host.LoadRequest{Path: "/x", Digest: "sha256:0", Format: "fake"})
	case host.StageEmbed:
		_, err = w.Embed(ctx, host.EmbedRequest{Model: ref, Rows: [][]int32{{1, 2}, {3}}})
	case host.StageRerank:
		_, err = w.Rerank(ctx, host.RerankRequest{Model: ref, Query: []int32{1}, Candidates: [][]int32{{1}, {2}}})
	case host.StageGenerate:
		_, err = w.Generate(ctx, host.GenerateRequest{Model: ref, Prompt: []int32{1}, MaxTokens: 2})
	case host.StageUnload:
		err = w.Unload(ctx, ref)
	case host.StagePing:
		_, err = w.Ping(ctx)
	case host.StageDescribe:
		_, err = w.Describe(ctx, ref)
	case host.StageShutdown:
		err = w.Close(ctx)
	}
	return err
}

var stages = []host.Stage{
	host.StageLoad, host.StageEmbed, host.StageRerank, host.StageGenerate,
	host.StageUnload, host.StagePing, host.StageDescribe, host.StageShutdown,
}

// Every way to die in every stage has the right stage and cause, and the worker is
// dead and reaped when the caller hears of it.
func TestDeathInEachStage(t *testing.T) {
	for how, cause := range map[string]host.Cause{
		"hang":           host.CauseTimeout,
		"stop":           host.CauseTimeout,
		"exit:3":         host.CauseExit,
		"signal:SIGABRT": host.CauseSignal,
		"signal:SIGSEGV": host.CauseSignal,
		"signal:SIGKILL": host.CauseSignal,
	} {
		for _, stage := range stages {
			t.Run(how+" "+string(stage), func(t *testing.T) {
				t.Parallel()
				script := puppet.Handshake(puppet.Step{Do: "serve", N: 1}, puppet.Step{Do: "request"}, puppet.Step{Do: "die", Text: how})
				w := start(t, puppetSpec(t, script))
				m, err := w.Load(patient(t), host.LoadRequest{Path: "/x", Digest: "sha256:0", Format: "fake"})
				if err != nil {
					t.Fatal(err)
				}
				ctx := patient(t)
				if cause == host.CauseTimeout {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, short)
					defer cancel()
				}
				err = ask(ctx, w, stage, m.Ref)
				c := wantCrash(t, err, stage, cause)
				dead(t, w.PID())
				if !errors.Is(w.Err(), err) && stage != host.StageShutdown {
					t.Errorf("Err is %v", w.Err())
				}
				switch {
				case how == "exit:3" && (c.ExitCode != 3 || c.Signal != ""):
					t.Errorf("exit status %d, signal %q", c.ExitCode, c.Signal)
				case cause == host.CauseTimeout && (c.Signal != "SIGKILL" || !errors.Is(err, context.DeadlineExceeded)):
					t.Errorf("after a timeout: signal %q, %v", c.Signal, c.Err)
				case cause == host.CauseSignal && how != "signal:"+c.Signal:
					t.Errorf("signal %q", c.Signal)
				}
			})
		}
	}
}

func TestDefaultDeadlinesApply(t *testing.T) {
	for _, stage := range stages {
		t.Run(string(stage), func(t *testing.T) {
			t.Parallel()
			s := puppetSpec(t, puppet.Handshake(puppet.Step{Do: "request"}, puppet.Step{Do: "die", Text: "hang"}))
			s.Deadlines = host.Deadlines{Load: short, Embed: short, Rerank: short, Generate: short, Unload: short, Ping: short, Shutdown: short}
			wantCrash(t, ask(t.Context(), start(t, s), stage, "m1"), stage, host.CauseTimeout)
		})
	}
}

// What a worker says that it must not say ends it, and says what was wrong.
func TestViolations(t *testing.T) {
	const loaded = `{"type":"LOADED","req_id":$ID,"model_ref":"m1","dims":4,"cold_load_ms":1}`
	say := func(json string) []puppet.Step { return []puppet.Step{{Do: "json", Text: json}} }
	for name, c := range map[string]struct {
		stage host.Stage
		steps []puppet.Step
		says  string
	}{
		"another req_id":       {host.StagePing, say(`{"type":"PONG","req_id":999,"rss_mb":1,"models_loaded":0}`), "asked was 2"},
		"no req_id":            {host.StagePing, say(`{"type":"PONG","rss_mb":1,"models_loaded":0}`), "request null"},
		"another type":         {host.StagePing, say(`{"type":"TEXT","req_id":$ID,"text":"","n_prompt":1,"n_gen":0,"finish_reason":"stop"}`), "got TEXT, wanted PONG"},
		"member missing":       {host.StagePing, say(`{"type":"PONG","req_id":$ID}`), "rss_mb"},
		"member of wrong kind": {host.StagePing, say(`{"type":"PONG","req_id":$ID,"rss_mb":"1","models_loaded":0}`), "rss_mb"},
		"share over 1":         {host.StagePing, say(`{"type":"PONG","req_id":$ID,"rss_mb":1,"models_loaded":0,"placement_share":1.5}`), "out of range"},
		"hello again":          {host.StagePing, []puppet.Step{{Do: "hello"}}, "HELLO"},
		"ERR of another":       {host.StagePing, say(`{"type":"ERR","req_id":999,"code":"oom","msg":"x"}`), "asked was 2"},
		"ERR malformed":        {host.StagePing, say(`{"type":"ERR","req_id":$ID}`), "malformed ERR"},
		"array":                {host.StagePing, say(`[1]`), "JSON object"},
		"length 0":             {host.StagePing, []puppet.Step{{Do: "length", N: 0}}, "length 0"},
		"length max+1":         {host.StagePing, []puppet.Step{{Do: "length", N: protocol.DefaultMaxFrame + 1}}, "over the limit of 67108864"},
		"length 2^32-1":        {host.StagePing, []puppet.Step{{Do: "length", N: 1<<32 - 1}}, "4294967295 bytes"},
		"n too small":          {host.StageEmbed, say(`{"type":"VECTORS","req_id":$ID,"dims":4,"n":1}`), "n 1 and dims 4, due are 2 and 4"},
		"other dims":           {host.StageEmbed, say(`{"type":"VECTORS","req_id":$ID,"dims":3,"n":2}`), "n 2 and dims 3"},
		"raw frame short":      {host.StageEmbed, append(say(`{"type":"VECTORS","req_id":$ID,"dims":4,"n":2}`), puppet.Step{Do: "raw", N: 28}), "28 bytes where its header fixes 32"},
		"raw frame long":       {host.StageEmbed, append(say(`{"type":"VECTORS","req_id":$ID,"dims":4,"n":2}`), puppet.Step{Do: "raw", N: 36}), "36 bytes where its header fixes 32"},
		"raw frame 2^32-1":     {host.StageEmbed, append(say(`{"type":"VECTORS","req_id":$ID,"dims":4,"n":2}`), puppet.Step{Do: "length", N: 1<<32 - 1}), "over the limit"},
		"scores short":         {host.StageRerank, say(`{"type":"SCORES","req_id":$ID,"n":1}`), "n 1, due is 2"},
		"too many tokens":      {host.StageGenerate, say(`{"type":"TEXT","req_id":$ID,"text":"","n_prompt":1,"n_gen":3,"finish_reason":"stop"}`), "n_gen 3"},
		"finish_reason":        {host.StageGenerate, say(`{"type":"TEXT","req_id":$ID,"text":"","n_prompt":1,"n_gen":1,"finish_reason":"bored"}`), "bored"},
		"text not UTF-8":       {host.StageGenerate, []puppet.Step{{Do: "frame", Text: hex.EncodeToString([]byte("{\"type\":\"TEXT\",\"req_id\":2,\"text\":\"\xff\",\"n_prompt\":1,\"n_gen\":1,\"finish_reason\":\"stop\"}"))}}, "UTF-8"},
		"model_ref twice":      {host.StageLoad, say(loaded), "second time"},
		"dims negative":        {host.StageLoad, say(`{"type":"LOADED","req_id":$ID,"model_ref":"m2","dims":-1,"cold_load_ms":1}`), "dims -1"},
		"half, then closed":    {host.StagePing, []puppet.Step{{Do: "budget", N: 10, Text: "close"}, {Do: "json", Text: `{"type":"PONG","req_id":$ID}`}}, "ended inside"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			script := puppet.Handshake(puppet.Step{Do: "request"}, puppet.Step{Do: "json", Text: loaded}, puppet.Step{Do: "request"})
			script = append(append(script, c.steps...), puppet.Step{Do: "die", Text: "hang"})
			w := start(t, puppetSpec(t, script))
			m, err := w.Load(patient(t), host.LoadRequest{Path: "/x", Digest: "sha256:0", Format: "fake"})
			if err != nil {
				t.Fatal(err)
			}
			err = ask(patient(t), w, c.stage, m.Ref)
			wantCrash(t, err, c.stage, host.CauseViolation)
			var v *protocol.ViolationError
			if !errors.As(err, &v) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v does not say %q", err, c.says)
			}
			dead(t, w.PID())
		})
	}
}

// What happens while nothing is asked of a worker is seen at once.
func TestIdle(t *testing.T) {
	for name, c := range map[string]struct {
		steps []puppet.Step
		cause host.Cause
	}{
		"speaks unasked": {[]puppet.Step{{Do: "json", Text: `{"type":"PONG","req_id":1,"rss_mb":1,"models_loaded":0}`}, {Do: "die", Text: "hang"}}, host.CauseViolation},
		"answers twice":  {[]puppet.Step{{Do: "json", Text: `{"type":"PONG","req_id":$ID,"rss_mb":1,"models_loaded":0}`}, {Do: "die", Text: "hang"}}, host.CauseViolation},
		"exits":          {[]puppet.Step{{Do: "die", Text: "exit:5"}}, host.CauseExit},
		"is killed":      {[]puppet.Step{{Do: "die", Text: "signal:SIGKILL"}}, host.CauseSignal},
		"closes":         {[]puppet.Step{{Do: "die", Text: "close"}}, host.CauseEOF},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := start(t, puppetSpec(t, append(puppet.Handshake(puppet.Step{Do: "serve", N: 1}, puppet.Step{Do: "sleep", N: 100}), c.steps...)))
			if _, err := w.Ping(patient(t)); err != nil {
				t.Fatal(err)
			}
			select {
			case <-w.Done():
			case <-patient(t).Done():
				t.Fatal("nobody noticed")
			}
			wantCrash(t, w.Err(), host.StageIdle, c.cause)
			var gone *host.WorkerGone
			if _, err := w.Ping(patient(t)); !errors.As(err, &gone) || !errors.Is(gone.Why, w.Err()) {
				t.Errorf("the next request: %v", err)
			}
			if err := w.Close(patient(t)); err != nil {
				t.Errorf("Close: %v", err)
			}
		})
	}
}

// The answer may be cut at any byte: the request fails, typed, and never returns a
// part.
func TestDeathAtEachByteOfAnAnswer(t *testing.T) {
	whole := len(`{"type":"VECTORS","req_id":2,"dims":4,"n":2}`) + 4 + 4 + 2*4*4
	for n := range whole {
		t.Run(itoa(n), func(t *testing.T) {
			t.Parallel()
			script := puppet.Handshake(puppet.Step{Do: "serve", N: 1}, puppet.Step{Do: "budget", N: n, Text: "signal:SIGKILL"}, puppet.Step{Do: "serve"})
			w := start(t, puppetSpec(t, script))
			m, err := w.Load(patient(t), host.LoadRequest{Path: "/x", Digest: "sha256:0", Format: "fake"})
			if err != nil {
				t.Fatal(err)
			}
			wantCrash(t, ask(patient(t), w, host.StageEmbed, m.Ref), host.StageEmbed, host.CauseSignal)
		})
	}
}

// A request too large for the socket's buffers, to a worker that does not read, is
// bounded by its deadline as well.
func TestDeadlineBoundsTheWrite(t *testing.T) {
	w := start(t, puppetSpec(t, puppet.Handshake(puppet.Step{Do: "die", Text: "hang"})))
	ctx, cancel := context.WithTimeout(t.Context(), short)
	defer cancel()
	_, err := w.Embed(ctx, host.EmbedRequest{Model: "m1", Rows: [][]int32{make([]int32, 4<<20)}})
	wantCrash(t, err, host.StageEmbed, host.CauseTimeout)
}

// An answer that trickles in is bounded by the deadline, however often a byte
// arrives.
func TestDeadlineBoundsTrickles(t *testing.T) {
	w := start(t, puppetSpec(t, puppet.Handshake(puppet.Step{Do: "drip", N: 20}, puppet.Step{Do: "serve"})))
	ctx, cancel := context.WithTimeout(t.Context(), short)
	defer cancel()
	_, err := w.Ping(ctx)
	wantCrash(t, err, host.StagePing, host.CauseTimeout)
}

func TestCanceledRequestKillsTheWorker(t *testing.T) {
	w := start(t, puppetSpec(t, puppet.Handshake(puppet.Step{Do: "request"}, puppet.Step{Do: "stderr", Text: "in hand\n"}, puppet.Step{Do: "die", Text: "hang"})))
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for !strings.Contains(w.LogTail(), "in hand") {
			time.Sleep(time.Millisecond)
		}
		cancel()
	}()
	_, err := w.Ping(ctx)
	var canceled *host.RequestCanceled
	if !errors.As(err, &canceled) || !canceled.Killed || canceled.Stage != host.StagePing || !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	dead(t, w.PID())
	if !errors.Is(w.Err(), context.Canceled) {
		t.Errorf("Err is %v", w.Err())
	}
}

func TestKillEndsTheRequestInHand(t *testing.T) {
	w := start(t, puppetSpec(t, puppet.Handshake(puppet.Step{Do: "request"}, puppet.Step{Do: "stderr", Text: "in hand\n"}, puppet.Step{Do: "die", Text: "hang"})))
	go func() {
		for !strings.Contains(w.LogTail(), "in hand") {
			time.Sleep(time.Millisecond)
		}
		w.Kill()
	}()
	_, err := w.Ping(patient(t))
	var gone *host.WorkerGone
	if !errors.As(err, &gone) || !errors.Is(gone.Why, host.ErrKilled) || !errors.Is(w.Err(), host.ErrKilled) {
		t.Fatalf("got %v, Err %v", err, w.Err())
	}
	dead(t, w.PID())
}

// Report 45: a worker that answers PING and never EMBED is found out by the
// request's deadline; a fresh one serves the next request.
func TestReport45_PongButNeverEmbed(t *testing.T) {
	s := fakeSpec(t)
	w := start(t, s)
	q := artifact(t, map[string]any{"fault": "hang"})
	m, err := w.Load(patient(t), q)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Ping(patient(t)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), short)
	defer cancel()
	_, err = w.Embed(ctx, host.EmbedRequest{Model: m.Ref, Rows: [][]int32{{1}}})
	c := wantCrash(t, err, host.StageEmbed, host.CauseTimeout)
	if c.Model != string(q.Digest) || c.Config != `{"fault":"hang"}` {
		t.Errorf("the crash is of model %q with config %q", c.Model, c.Config)
	}
	fresh := start(t, s)
	good(t, fresh, load(t, fresh, nil))
}

// Report 43: nothing that belongs to the worker's group outlives it, and nothing
// is signalled once it was reaped.
func TestReport43_GroupDiesWithItsLeader(t *testing.T) {
	w := start(t, puppetSpec(t, puppet.Handshake(puppet.Step{Do: "child", N: 1000}, puppet.Step{Do: "request"}, puppet.Step{Do: "die", Text: "exit:1"})))
	_, err := w.Ping(patient(t))
	c := wantCrash(t, err, host.StagePing, host.CauseExit)
	var child int
	if _, err := fmt.Sscanf(c.LogTail, "child %d", &child); err != nil {
		t.Fatalf("%v in %q", err, c.LogTail)
	}
	// The orphan was killed before its parent was reaped; init reaps it in time.
	for deadline := patient(t); unix.Kill(child, 0) == nil && !zombie(child); {
		if deadline.Err() != nil {
			t.Fatalf("the worker's child %d lives on", child)
		}
		time.Sleep(time.Millisecond)
	}
}
