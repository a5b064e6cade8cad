package workerkit

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/synapse-module/workers/protocol"
)

// The protocol promises room for two messages behind the one in hand. They may
// all arrive before the worker's loop has taken the first.
func TestInboxHasRoomForWhatIsPromised(t *testing.T) {
	for n, want := range map[int]error{1 + queued: io.EOF, 2 + queued: &protocol.ViolationError{}} {
		var stream bytes.Buffer
		out := protocol.NewFrameWriter(&stream, protocol.MinMaxFrame)
		for range n {
			if err := out.Write(protocol.Ping{ReqID: "1"}); err != nil {
				t.Fatal(err)
			}
		}
		in := newInbox(protocol.NewFrameReader(&stream, protocol.MinMaxFrame))
		err := in.read()
		var violation *protocol.ViolationError
		if errors.As(err, &violation) == errors.Is(want, io.EOF) || len(in.requests) != 1+queued {
			t.Errorf("%d messages: %v, %d of them wait", n, err, len(in.requests))
		}
	}
}
