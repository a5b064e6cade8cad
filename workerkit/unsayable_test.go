package workerkit

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/synapse-module/workers/protocol"
)

// exchange serves one request of a server with one model and returns the ERR
// that it is refused with.
func exchange(t *testing.T, m *loaded, q protocol.Message) *protocol.Error {
	t.Helper()
	var sent bytes.Buffer
	payload, err := protocol.Marshal(q)
	if err != nil {
		t.Fatal(err)
	}
	header, err := protocol.Parse(payload)
	if err != nil {
		t.Fatal(err)
	}
	s := &server{
		in: newInbox(nil), out: protocol.NewFrameWriter(&sent, protocol.MinMaxFrame), maxFrame: protocol.MinMaxFrame,
		info: Info{Formats: []string{"any"}}, models: newRegistry(), store: storeIn(t, t.TempDir()), log: slog.New(slog.DiscardHandler),
	}
	s.models.add(m)
	if err := s.serve(context.Background(), &request{header: header}); err != nil {
		t.Fatalf("the stream ended: %v", err)
	}
	answer, err := protocol.NewFrameReader(&sent, protocol.MinMaxFrame).ReadControl(nil)
	if err != nil {
		t.Fatal(err)
	}
	if header, err = protocol.Parse(answer); err != nil {
		t.Fatal(err)
	}
	var refusal *protocol.Error
	if !errors.As(header.DecodeErr(), &refusal) {
		t.Fatalf("the answer is %s", answer)
	}
	return refusal
}

// Names in an artifact's metadata are bytes of whoever made it. One that is not
// UTF-8 must cost the answer, not the worker.
func TestAnswerThatIsNotUTF8IsARefusal(t *testing.T) {
	m := &loaded{desc: Description{Arch: "b\xe9rt"}}
	refusal := exchange(t, m, protocol.Describe{ReqID: "1", ModelRef: "m1"})
	if refusal.Code != protocol.CodeEngineFailed || !strings.Contains(refusal.Msg, "DESCRIPTION") || !strings.Contains(refusal.Msg, "invalid UTF-8") {
		t.Errorf("%v", refusal)
	}
}

// What the system says of a file repeats its name, and a name need be neither
// UTF-8 nor short.
func TestRefusalsAboutOddNamesAreSent(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "caf\xe9"), []byte("x"), 0o600); err != nil {
		t.Skipf("this file system takes no name that is not UTF-8: %v", err)
	}
	tree := protocol.Digest("sha256-tree:" + strings.Repeat("0", 64))
	for name, path := range map[string]string{"not UTF-8": dir, "long": "/" + strings.Repeat("x", 60_000)} {
		refusal := exchange(t, &loaded{}, protocol.Load{ReqID: "1", ArtifactPath: path, ArtifactDigest: tree, Format: "any"})
		if refusal.Code != protocol.CodeArtifactInvalid {
			t.Errorf("%s: %v", name, refusal)
		}
	}
}
