package workerkit_test

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/synapse-module/workers/internal/wiretest"
	"github.com/synapse-module/workers/protocol"
)

// Report 40: the cap is in the protocol; the cap passes, one byte more ends the
// worker with a reason, an absurd length costs nothing.
func TestReport40_FrameLimit(t *testing.T) {
	const limit = protocol.MinMaxFrame
	config := `{"max_tokens":16384,"dims":1}`
	t.Run("at the limit", func(t *testing.T) {
		p := spawn(t).Accept(limit)
		ref := p.Load(artifact(t, config))
		if v := p.Embed(ref, false, make([]int32, limit/4)); len(v) != 1 {
			t.Fatalf("%d vectors", len(v))
		}
	})
	for name, length := range map[string]uint32{"one byte over": limit + 1, "absurd": 0xFFFFFFFF} {
		t.Run(name, func(t *testing.T) {
			p := spawn(t).Accept(limit)
			p.SendBytes(binary.LittleEndian.AppendUint32(nil, length))
			if got := p.Exit(); got != protocol.ExitViolation {
				t.Fatalf("exit status %d", got)
			}
			if !strings.Contains(p.Stderr.String(), "over the limit of 65536") {
				t.Fatalf("stderr does not say why: %s", p.Stderr)
			}
		})
	}
}

func TestViolationsEndTheWorker(t *testing.T) {
	frame := func(payload string) []byte {
		return append(binary.LittleEndian.AppendUint32(nil, uint32(len(payload))), payload...)
	}
	for name, b := range map[string][]byte{
		"control frame of length 0": {0, 0, 0, 0},
		"not JSON":                  frame("PING"),
		"not an object":             frame(`["PING"]`),
		"no type":                   frame(`{"req_id":1}`),
		"type twice":                frame(`{"type":"PING","req_id":1,"type":"PING"}`),
		"type no string":            frame(`{"type":1,"req_id":1}`),
		"bytes after the object":    frame(`{"type":"PING","req_id":1} ` + "{}"),
		"not UTF-8":                 frame("{\"type\":\"PING\",\"req_id\":\"\xff\"}"),
		"too many raw frames":       frame(`{"type":"NEW","req_id":1,"raw_frames":17}`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := spawn(t).Accept(0)
			p.SendBytes(b)
			if got := p.Exit(); got != protocol.ExitViolation {
				t.Fatalf("exit status %d", got)
			}
		})
	}
	for name, b := range map[string][]byte{"in a length": {1, 0}, "in a payload": {9, 0, 0, 0, '{'}, "before the raw frame": frame(`{"type":"EMBED_BATCH"}`)} {
		t.Run("the stream ends "+name, func(t *testing.T) {
			t.Parallel()
			p := spawn(t).Accept(0)
			p.SendBytes(b)
			p.Conn.Close()
			if got := p.Exit(); got != protocol.ExitViolation {
				t.Fatalf("exit status %d", got)
			}
		})
	}
}

func TestModuleEndsIdleStream(t *testing.T) {
	p, ref := start(t, "")
	good(t, p, ref)
	p.Conn.Close()
	if got := p.Exit(); got != protocol.ExitOK {
		t.Fatalf("exit status %d", got)
	}
}

// Report 37: a module that is gone leaves no worker behind, not even one inside a
// call that never comes back.
func TestReport37_ModuleGoneDuringCall(t *testing.T) {
	for _, stage := range []string{"load", "embed"} {
		t.Run(stage, func(t *testing.T) {
			p := spawn(t).Accept(0)
			m := artifact(t, `{"fault":"hang","fault_stage":"`+stage+`"}`)
			if stage == "load" {
				p.Send(m)
			} else {
				p.Send(wiretest.EmbedBatch(p.Load(m), "", false, []int32{1}))
			}
			p.Conn.Close()
			if got := p.Exit(); got != protocol.ExitIO {
				t.Fatalf("exit status %d", got)
			}
		})
	}
}

func TestShutdownLetsTheRequestInHandFinish(t *testing.T) {
	p, ref := start(t, `{"fault":"sleep","fault_ms":200}`)
	p.Send(wiretest.EmbedBatch(ref, "", false, []int32{1}))
	p.Send(protocol.Shutdown{})
	if v := p.Vectors(); len(v) != 1 {
		t.Fatalf("%d vectors", len(v))
	}
	p.ExpectEOF()
	if got := p.Exit(); got != protocol.ExitOK {
		t.Fatalf("exit status %d", got)
	}
}

// A module may send its next request before this worker's loop comes round, but
// not pile them up.
func TestPipelinedRequestsAreAViolation(t *testing.T) {
	p, ref := start(t, `{"fault":"hang"}`)
	p.Send(wiretest.EmbedBatch(ref, "", false, []int32{1}))
	for range 4 {
		p.Send(protocol.Ping{ReqID: "1"})
	}
	if got := p.Exit(); got != protocol.ExitViolation {
		t.Fatalf("exit status %d", got)
	}
}

func TestUsage(t *testing.T) {
	for name, args := range map[string][]string{
		"no socket":       {"--nonce", "00"},
		"unknown flag":    {"--sokcet", "x"},
		"max frame small": {"--socket", "x", "--nonce", "00", "--max-frame", "1"},
		"path too long":   {"--socket", "/" + strings.Repeat("x", 120), "--nonce", "00"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status, stderr := run(t, args...)
			if status != protocol.ExitUsage || !strings.Contains(stderr, "see --help") {
				t.Fatalf("exit status %d, stderr %q", status, stderr)
			}
		})
	}
	if status, _ := run(t, "--socket", t.TempDir()+"/s", "--nonce", "00"); status != protocol.ExitIO {
		t.Fatalf("a socket that nobody listens on: exit status %d", status)
	}
	if status, out := run(t, "--version"); status != protocol.ExitOK || !strings.Contains(out, `"protocol": 1`) {
		t.Fatalf("--version: exit status %d, %q", status, out)
	}
}
