package workerkit_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/synapse-module/workers/internal/transcript"
	"github.com/synapse-module/workers/internal/wiretest"
	"github.com/synapse-module/workers/protocol"
)

// The module's side of every golden transcript, played to a real worker process:
// what it sends is the transcript's, byte by byte but for the members that vary,
// and it ends as the transcript says.
func TestGoldenTranscripts(t *testing.T) {
	transcripts, err := transcript.All("../docs/protocol")
	if err != nil {
		t.Fatal(err)
	}
	for _, tr := range transcripts {
		if tr.Expect.By != transcript.Worker {
			continue // the worker is at fault in it; package transcript plays it to the host
		}
		t.Run(tr.Name, func(t *testing.T) {
			t.Parallel()
			playModule(t, tr)
		})
	}
}

func playModule(t *testing.T, tr transcript.Transcript) {
	p := wiretest.Start(t, wiretest.Build(t, "cmd/worker-fake"))
	if p.Nonce != tr.Start.Nonce {
		t.Fatalf("the worker was started with nonce %s, the transcript says %s", p.Nonce, tr.Start.Nonce)
	}
	for name, contents := range tr.Start.Files {
		if err := os.WriteFile(filepath.Join(p.Dir, name), []byte(contents), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p.In.SetLimit(protocol.MaxMaxFrame)
	for i, step := range tr.Steps {
		switch {
		case step.From == transcript.Module && step.Frame == transcript.End:
			p.Conn.Close()
		case step.From == transcript.Module:
			sendStep(t, p, i, step, tr.Expect)
		default:
			receiveStep(t, p, i, step)
		}
	}
	if got := p.Exit(); got != tr.Expect.Status {
		t.Fatalf("exit status %d, want %d: %s", got, tr.Expect.Status, tr.Expect.Why)
	}
	if strings.Contains(p.Stderr.String(), `"level":"ERROR"`) == (tr.Expect.Status == protocol.ExitOK) {
		t.Error("the worker said no reason for a bad end, or one for a good end")
	}
}

func sendStep(t *testing.T, p *wiretest.Peer, i int, step transcript.Step, end transcript.Outcome) {
	t.Helper()
	b, err := step.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	// A worker that has seen a violation already takes no more.
	if _, err := p.Conn.Write(b); err != nil && end.Status != protocol.ExitViolation {
		t.Fatalf("step %d: %v", i, err)
	}
}

var sandboxFlag = regexp.MustCompile(`,"sandbox=[^"]*"`)

func receiveStep(t *testing.T, p *wiretest.Peer, i int, step transcript.Step) {
	t.Helper()
	switch step.Frame {
	case transcript.Control:
		payload, err := p.In.ReadControl(nil)
		if err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
		if step.Loose {
			return // another worker's way of writing it
		}
		// The sandbox is the system's, not the wire's.
		if same, err := step.Same(sandboxFlag.ReplaceAll(payload, nil)); err != nil || !same {
			t.Fatalf("step %d: the worker sent\n%s\nthe transcript has\n%s (%v)", i, payload, step.Message, err)
		}
		checkVarying(t, i, payload)
	case transcript.Raw:
		payload, err := p.In.ReadRaw(nil)
		if err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
		want, err := step.Payload()
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(payload, want) {
			t.Fatalf("step %d: the worker sent %x, the transcript has %x", i, payload, want)
		}
	default:
		t.Fatalf("step %d: a sound worker sends no %q", i, step.Frame)
	}
}

// checkVarying holds what depends on the run to what is known of it.
func checkVarying(t *testing.T, i int, payload []byte) {
	t.Helper()
	h, err := protocol.Parse(payload)
	if err != nil {
		t.Fatal(err)
	}
	var hello protocol.Hello
	var loaded protocol.Loaded
	var pong protocol.Pong
	var refusal *protocol.Error
	switch h.Type {
	case protocol.TypeHello:
		if err := h.Decode(&hello); err != nil || hello.PID <= 0 {
			t.Errorf("step %d: pid %d, %v", i, hello.PID, err)
		}
	case protocol.TypeLoaded:
		if err := h.Decode(&loaded); err != nil || loaded.ColdLoadMS < 0 {
			t.Errorf("step %d: cold_load_ms %d, %v", i, loaded.ColdLoadMS, err)
		}
	case protocol.TypePong:
		if err := h.Decode(&pong); err != nil || pong.RSSMB <= 0 {
			t.Errorf("step %d: rss_mb %d, %v", i, pong.RSSMB, err)
		}
	case protocol.TypeErr:
		if !errors.As(h.DecodeErr(), &refusal) || refusal.Msg == "" {
			t.Errorf("step %d: %v", i, refusal)
		}
	}
}
