package protocol_test

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/synapse-module/workers/protocol"
)

// The document for implementers names every type, member, code, exit status and
// limit that there is in the code.
func TestDocumentNamesEverything(t *testing.T) {
	text, err := os.ReadFile("../docs/protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	doc := string(text)
	names := map[string]bool{}
	member := regexp.MustCompile(`"([a-z_]+)":`)
	for _, s := range samples {
		names[string(s.message.MessageType())] = true
		// An object inside runtime_config or config is the engine's, not the wire's.
		json := regexp.MustCompile(`"(runtime_config|config)":\{[^}]*\}`).ReplaceAllString(s.json, `"$1":0`)
		for _, m := range member.FindAllStringSubmatch(json, -1) {
			names[m[1]] = true
		}
	}
	for _, code := range []protocol.Code{
		protocol.CodeArtifactInvalid, protocol.CodeConfigInvalid, protocol.CodeOOM, protocol.CodeModelNotFound, protocol.CodeRequestInvalid,
		protocol.CodeUnsupported, protocol.CodeResponseTooLarge, protocol.CodeUnknownType, protocol.CodeEngineFailed,
	} {
		names[string(code)] = true
	}
	for _, reason := range []protocol.FinishReason{protocol.FinishStop, protocol.FinishLength, protocol.FinishGrammar} {
		names[string(reason)] = true
	}
	for name := range names {
		if !strings.Contains(doc, "`"+name+"`") {
			t.Errorf("docs/protocol.md does not name `%s`", name)
		}
	}
	for _, status := range []int{protocol.ExitOK, protocol.ExitUsage, protocol.ExitEngine, protocol.ExitIO, protocol.ExitViolation, protocol.ExitRefused} {
		if row := "\n| " + strconv.Itoa(status) + " |"; !strings.Contains(doc, row) {
			t.Errorf("docs/protocol.md has no row for exit status %d", status)
		}
	}
	for name, n := range map[string]int{
		"HandshakeMaxFrame": protocol.HandshakeMaxFrame, "MinMaxFrame": protocol.MinMaxFrame, "MaxMaxFrame": protocol.MaxMaxFrame,
		"DefaultMaxFrame": protocol.DefaultMaxFrame, "MaxIDBytes": protocol.MaxIDBytes, "MaxRawFrames": protocol.MaxRawFrames, "MaxMsgBytes": protocol.MaxMsgBytes,
	} {
		if !strings.Contains(doc, grouped(n)) {
			t.Errorf("docs/protocol.md does not give %s, %s", name, grouped(n))
		}
	}
}

// grouped writes 65536 as 65,536.
func grouped(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
