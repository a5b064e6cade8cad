package protocol_test

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/synapse-module/workers/protocol"
)

func TestCheckHello(t *testing.T) {
	const nonce = "00112233445566778899aabbccddeeff"
	good := protocol.Hello{V: 1, Nonce: nonce, PID: 7, MaxFrame: protocol.DefaultMaxFrame}
	for name, c := range map[string]struct {
		change func(*protocol.Hello)
		says   string // empty: it passes
	}{
		"good":                   {func(*protocol.Hello) {}, ""},
		"smallest max_frame":     {func(h *protocol.Hello) { h.MaxFrame = protocol.MinMaxFrame }, ""},
		"largest max_frame":      {func(h *protocol.Hello) { h.MaxFrame = protocol.MaxMaxFrame }, ""},
		"max_frame too small":    {func(h *protocol.Hello) { h.MaxFrame = protocol.MinMaxFrame - 1 }, "max_frame is 65535 bytes"},
		"max_frame too large":    {func(h *protocol.Hello) { h.MaxFrame = protocol.MaxMaxFrame + 1 }, "max_frame is 1073741825 bytes"},
		"an older version":       {func(h *protocol.Hello) { h.V = 0 }, "version 0"},
		"a newer version":        {func(h *protocol.Hello) { h.V = 2 }, "version 2"},
		"no nonce":               {func(h *protocol.Hello) { h.Nonce = "" }, "nonce"},
		"a nonce one byte short": {func(h *protocol.Hello) { h.Nonce = nonce[1:] }, "nonce"},
		"a nonce one byte long":  {func(h *protocol.Hello) { h.Nonce += "0" }, "nonce"},
		"another nonce":          {func(h *protocol.Hello) { h.Nonce = strings.Repeat("0", len(nonce)) }, "nonce"},
		"the nonce in capitals":  {func(h *protocol.Hello) { h.Nonce = strings.ToUpper(nonce) }, "nonce"},
	} {
		h := good
		c.change(&h)
		err := protocol.CheckHello(h, nonce)
		if (err != nil) != (c.says != "") || isViolation(err) != (c.says != "") || (err != nil && !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: error %v", name, err)
		}
		if err != nil && strings.Contains(err.Error(), nonce) {
			t.Errorf("%s: the error gives the nonce away", name)
		}
	}
}

func TestCheckHelloAck(t *testing.T) {
	const offered = 1 << 20
	for name, c := range map[string]struct {
		ack                protocol.HelloAck
		refused, violation bool
	}{
		"accepted":                 {ack: protocol.HelloAck{V: 1, Accept: true, MaxFrame: offered}},
		"accepted at the least":    {ack: protocol.HelloAck{V: 1, Accept: true, MaxFrame: protocol.MinMaxFrame}},
		"refused":                  {ack: protocol.HelloAck{V: 1}, refused: true},
		"refused, another version": {ack: protocol.HelloAck{V: 2}, refused: true},
		"another version":          {ack: protocol.HelloAck{V: 2, Accept: true, MaxFrame: offered}, refused: true},
		"over the offer":           {ack: protocol.HelloAck{V: 1, Accept: true, MaxFrame: offered + 1}, violation: true},
		"under the least":          {ack: protocol.HelloAck{V: 1, Accept: true, MaxFrame: protocol.MinMaxFrame - 1}, violation: true},
		"no max_frame":             {ack: protocol.HelloAck{V: 1, Accept: true}, violation: true},
	} {
		err := protocol.CheckHelloAck(c.ack, offered)
		var refused *protocol.RefusedError
		if errors.As(err, &refused) != c.refused || isViolation(err) != c.violation || (err == nil) != (!c.refused && !c.violation) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestNegotiateMaxFrame(t *testing.T) {
	const least, most = protocol.MinMaxFrame, protocol.MaxMaxFrame
	for _, c := range []struct{ worker, module, want uint32 }{
		{least, most, least},
		{most, least, least},
		{most, most, most},
		{1 << 20, 1 << 21, 1 << 20},
		{least - 1, most, 0},
		{most, least - 1, 0},
		{most + 1, most, 0},
		{most, most + 1, 0},
		{0, 0, 0},
		{0xFFFFFFFF, 0xFFFFFFFF, 0},
	} {
		got, err := protocol.NegotiateMaxFrame(c.worker, c.module)
		if got != c.want || isViolation(err) != (c.want == 0) {
			t.Errorf("worker %d, module %d: %d, %v, want %d", c.worker, c.module, got, err, c.want)
		}
	}
	if _, err := protocol.NegotiateMaxFrame(most, 1); !strings.Contains(err.Error(), "the module's max_frame is 1 bytes") {
		t.Errorf("%v does not say whose it is", err)
	}
}

// Report 39: a path over the system's limit is an error that names path, length
// and limit, before any system call says "invalid argument".
func TestReport39_SocketPath(t *testing.T) {
	limit := map[string]int{"linux": 107, "windows": 256}[runtime.GOOS]
	if limit == 0 {
		limit = 103
	}
	if err := protocol.CheckSocketPath("/" + strings.Repeat("x", limit-1)); err != nil {
		t.Errorf("a path at the limit: %v", err)
	}
	path := "/" + strings.Repeat("é", limit/2+1) // bytes count, not characters
	err := protocol.CheckSocketPath(path)
	var over *protocol.SocketPathError
	if !errors.As(err, &over) || over.Path != path || over.Limit != limit {
		t.Errorf("error %v", err)
	}
}

func TestIDs(t *testing.T) {
	for id, want := range map[protocol.ID]string{
		protocol.NumberID(0):                    "0",
		protocol.NumberID(18446744073709551615): "18446744073709551615",
		protocol.StringID("a"):                  `"a"`,
		protocol.StringID("\"\\/é\n"):           `"\"\\/é\n"`,
		"":                                      "null",
	} {
		if id.String() != want {
			t.Errorf("%q reads %s, want %s", string(id), id, want)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("an id that is not UTF-8 was made")
		}
	}()
	protocol.StringID("\xff")
}
