package transcript_test

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/synapse-module/workers/internal/transcript"
	"github.com/synapse-module/workers/protocol"
)

// dir holds the files.
const dir = "../../docs/protocol"

var update = flag.Bool("update", false, "write docs/protocol/*.json from the scripts of this package")

var scripts = slices.Concat(handshakes, requests, refusals, moduleViolations, workerViolations)

// The files are what the scripts say, no more and no fewer.
func TestFilesAreCurrent(t *testing.T) {
	want := map[string][]byte{}
	for _, s := range scripts {
		name := filepath.Join(dir, s.t.Name+".json")
		if want[name] != nil {
			t.Errorf("two scripts are named %s", s.t.Name)
		}
		want[name] = text(s.t)
	}
	have, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		for _, name := range have {
			if err := os.Remove(name); err != nil {
				t.Fatal(err)
			}
		}
		for name, b := range want {
			if err := os.WriteFile(name, b, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		return
	}
	for _, name := range have {
		if want[name] == nil {
			t.Errorf("%s has no script: go test ./internal/transcript -update", name)
		}
	}
	for name, b := range want {
		if got, err := os.ReadFile(name); err != nil || !bytes.Equal(got, b) {
			t.Errorf("%s is not what its script says: go test ./internal/transcript -update (%v)", name, err)
		}
	}
}

func all(t *testing.T) []transcript.Transcript {
	t.Helper()
	all, err := transcript.All(dir)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Bytes to typed message to bytes, and JSON to bytes.
func TestEveryStepBothWays(t *testing.T) {
	seen := map[protocol.Type]bool{}
	for _, tr := range all(t) {
		for i, step := range tr.Steps {
			fail := func(format string, args ...any) {
				t.Helper()
				t.Errorf("%s, step %d: "+format, append([]any{tr.Name, i}, args...)...)
			}
			if step.From != transcript.Worker && step.From != transcript.Module {
				fail("it is from %q", step.From)
			}
			payload, err := step.Payload()
			switch step.Frame {
			case transcript.Control:
				if err != nil {
					fail("%v", err)
					continue
				}
				if problem := controlBothWays(step, payload); problem != "" {
					fail("%s", problem)
				}
				seen[step.Type()] = true
			case transcript.Raw:
				if err != nil {
					fail("%v", err)
				}
				if problem := rawBothWays(step, payload); problem != "" {
					fail("%s", problem)
				}
			case transcript.Bytes:
				if b, err := step.Bytes(); err != nil || len(b) == 0 || step.About == "" {
					fail("bytes that are none or say not what they are: %v", err)
				}
			case transcript.End:
				if step.Hex != "" {
					fail("an end with bytes")
				}
			default:
				fail("a frame %q", step.Frame)
			}
		}
	}
	for typ := range messages {
		if !seen[typ] {
			t.Errorf("no transcript holds a %s", typ)
		}
	}
}

func controlBothWays(step transcript.Step, payload []byte) string {
	if doubled := !jsontext.Value(payload).IsValid(); doubled {
		if step.Message != nil || step.About != string(payload) {
			return "a message with a member twice is in the file as JSON, or not in words"
		}
	} else if message := step.Message.Clone(); message.Format(jsontext.PreserveRawStrings(true)) != nil || !bytes.Equal(message, payload) {
		return "the bytes hold " + string(payload) + ", the message is " + string(message)
	}
	h, err := protocol.Parse(payload)
	if err != nil {
		return err.Error()
	}
	empty, known := messages[h.Type]
	if !known {
		if !step.Loose {
			return "an unknown type is not marked loose"
		}
		return ""
	}
	m := empty()
	if err := h.Decode(m); err != nil {
		if !step.Loose {
			return err.Error()
		}
		return ""
	}
	again, err := protocol.Marshal(m)
	if err != nil {
		return err.Error()
	}
	if bytes.Equal(again, payload) == step.Loose {
		return "re-encoded it is " + string(again)
	}
	for _, name := range step.Vary {
		if !bytes.Contains(payload, []byte(`"`+name+`":`)) {
			return "it has no " + name + " to vary"
		}
	}
	return ""
}

func rawBothWays(step transcript.Step, payload []byte) string {
	switch {
	case step.I32 != nil:
		v, err := protocol.View[int32](payload)
		if err != nil || !slices.Equal(v, step.I32) || !bytes.Equal(protocol.Bytes(step.I32), payload) {
			return "the values are not the bytes"
		}
	case step.F32 != nil:
		v, err := protocol.View[float32](payload)
		if err != nil || !slices.Equal(v, step.F32) || !bytes.Equal(protocol.Bytes(step.F32), payload) {
			return "the values are not the bytes"
		}
	}
	return ""
}

// Each side's bytes, as one stream, are the frames that the steps say; bytes that
// are no sound frame are a violation, and nothing else is.
func TestEveryStreamDecodes(t *testing.T) {
	for _, tr := range all(t) {
		for _, side := range []string{transcript.Worker, transcript.Module} {
			var stream bytes.Buffer
			frames, unsound := 0, false
			for _, step := range tr.Steps {
				if step.From != side {
					continue
				}
				b, err := step.Bytes()
				if err != nil {
					t.Fatal(err)
				}
				stream.Write(b)
				switch step.Frame {
				case transcript.Control, transcript.Raw:
					frames++
				case transcript.Bytes:
					unsound = true
				}
			}
			// A missing raw frame is seen at the end of the stream.
			unsound = unsound || (tr.Name == "bad-module-missing-raw" && side == transcript.Module)
			got, err := decodeStream(&stream, limitOf(tr))
			var violation *protocol.ViolationError
			if got != frames || errors.As(err, &violation) != unsound || (err == nil) == unsound {
				t.Errorf("%s: the %s's stream has %d sound frames and ends with %v, want %d, a violation: %v", tr.Name, side, got, err, frames, unsound)
			}
		}
	}
}

// limitOf is the frame limit after the handshake.
func limitOf(tr transcript.Transcript) uint32 {
	for _, step := range tr.Steps {
		if step.Type() != protocol.TypeHelloAck {
			continue
		}
		payload, _ := step.Payload()
		h, _ := protocol.Parse(payload)
		var ack protocol.HelloAck
		if h.Decode(&ack) == nil && ack.MaxFrame > 0 {
			return ack.MaxFrame
		}
	}
	return protocol.HandshakeMaxFrame
}

// decodeStream counts the sound frames of a stream. Its error is nil where the
// stream ends between two messages.
func decodeStream(r io.Reader, limit uint32) (frames int, err error) {
	in := protocol.NewFrameReader(r, protocol.HandshakeMaxFrame)
	for {
		payload, err := in.ReadControl(nil)
		if errors.Is(err, io.EOF) {
			return frames, nil
		}
		if err != nil {
			return frames, err
		}
		h, err := protocol.Parse(payload)
		if err != nil {
			return frames, err
		}
		frames++
		if frames == 1 {
			in.SetLimit(limit)
		}
		for range h.RawFrames {
			if err := in.DiscardRaw(); err != nil {
				return frames, err
			}
			frames++
		}
	}
}

// messages makes an empty message of each type.
var messages = func() map[protocol.Type]func() protocol.Message {
	m := map[protocol.Type]func() protocol.Message{}
	for _, sample := range []protocol.Message{
		protocol.Hello{},
		protocol.HelloAck{},
		protocol.Load{},
		protocol.Loaded{},
		protocol.EmbedBatch{},
		protocol.Vectors{},
		protocol.Rerank{},
		protocol.Scores{},
		protocol.Generate{},
		protocol.Text{},
		protocol.Unload{},
		protocol.Unloaded{},
		protocol.Ping{},
		protocol.Pong{},
		protocol.Describe{},
		protocol.Description{},
		protocol.Shutdown{},
		protocol.Err{},
	} {
		typ := reflect.TypeOf(sample)
		m[sample.MessageType()] = func() protocol.Message { return reflect.New(typ).Interface().(protocol.Message) }
	}
	return m
}()

// What a loose message or a malformed one may be is for the transcripts that are
// about it; every other is written as this project writes it, so that a change of
// the code's own form is seen here.
func TestLooseStepsAreFew(t *testing.T) {
	allowed := []string{"hello-unknown-members", "hello-ack-unknown-members", "loose-forms", "unknown-type-with-raw-frames", "err-request-malformed", "err-unknown-type", "bad-worker-answer-malformed"}
	for _, tr := range all(t) {
		for i, step := range tr.Steps {
			if step.Loose && !slices.Contains(allowed, tr.Name) {
				t.Errorf("%s, step %d is loose", tr.Name, i)
			}
		}
	}
}
