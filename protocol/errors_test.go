package protocol_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/synapse-module/workers/protocol"
)

// A refusal must reach its peer whatever it is about: a file name that is not
// UTF-8, a path of a frame's length, control characters.
func TestErrorfFitsEveryFrame(t *testing.T) {
	for name, arg := range map[string]string{
		"not UTF-8":          "caf\xe9",
		"as long as a frame": strings.Repeat("x", protocol.DefaultMaxFrame),
		"all of it escaped":  strings.Repeat("\x01", 1<<20),
		"cut inside a rune":  strings.Repeat("€", 1<<20),
		"long, not UTF-8":    strings.Repeat("a\xff", 1<<20),
	} {
		e := protocol.Errorf(protocol.CodeArtifactInvalid, "open %s", arg)
		if !utf8.ValidString(e.Msg) || !strings.HasPrefix(e.Msg, "open ") {
			t.Errorf("%s: msg is %.40q", name, e.Msg)
		}
		if cut := strings.HasSuffix(e.Msg, "…"); cut != (len(arg) > protocol.MaxMsgBytes) {
			t.Errorf("%s: whether it was cut is not to be seen", name)
		}
		var sent bytes.Buffer
		id := protocol.ID(strings.Repeat("9", protocol.MaxIDBytes))
		if err := protocol.NewFrameWriter(&sent, protocol.MinMaxFrame).Write(protocol.Err{ReqID: id, Code: e.Code, Msg: e.Msg}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if e := protocol.Errorf(protocol.CodeOOM, "needs %d MiB €", 7); e.Msg != "needs 7 MiB €" {
		t.Errorf("msg is %q", e.Msg)
	}
}

func TestErrorIs(t *testing.T) {
	err := fmt.Errorf("load: %w", protocol.Errorf(protocol.CodeOOM, "no memory"))
	if !errors.Is(err, &protocol.Error{Code: protocol.CodeOOM}) || !errors.Is(err, &protocol.Error{Code: protocol.CodeOOM, Msg: "no memory"}) {
		t.Error("an error is not of its own code")
	}
	if errors.Is(err, &protocol.Error{Code: protocol.CodeConfigInvalid}) || errors.Is(err, &protocol.Error{Code: protocol.CodeOOM, Msg: "another"}) || errors.Is(err, io.EOF) {
		t.Error("an error is of another code")
	}
	if got := err.Error(); got != "load: oom: no memory" {
		t.Errorf("it reads %q", got)
	}
}

func TestViolationCarriesItsCause(t *testing.T) {
	err := &protocol.ViolationError{Reason: "a malformed ERR", Err: io.ErrUnexpectedEOF}
	if !errors.Is(err, io.ErrUnexpectedEOF) || err.Error() != "protocol violation: a malformed ERR: unexpected EOF" {
		t.Errorf("%v", err)
	}
	if got := protocol.Violation("frame %d", 7).Error(); got != "protocol violation: frame 7" {
		t.Errorf("%q", got)
	}
}
