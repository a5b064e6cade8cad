package transcript_test

import (
	"github.com/synapse-module/workers/internal/transcript"
	"github.com/synapse-module/workers/protocol"
)

// handshakes are the ways in which a connection begins, or does not.
var handshakes = []*script{
	talk("hello-accept", "The worker says HELLO, the module accepts it and sets the frame limit, and later ends the stream.").
		hello().ack(protocol.DefaultMaxFrame).end(transcript.Module).
		exits(protocol.ExitOK, "The stream ends between two frames with no request in hand: the worker frees its models and exits 0."),

	talk("hello-max-frame", "The module takes smaller frames than the worker offers: its HELLO_ACK sets the smaller limit.").
		hello().ack(protocol.MinMaxFrame).shutdown(),

	talk("hello-refused", "The module does not want this worker.").
		hello().module(protocol.HelloAck{V: protocol.Version}).
		exits(protocol.ExitRefused, "HELLO_ACK has accept false."),

	talk("hello-closed", "The module closes the connection in place of HELLO_ACK, which refuses the worker as well.").
		hello().end(transcript.Module).
		exits(protocol.ExitRefused, "The stream ends where HELLO_ACK is due."),

	talk("hello-ack-version", "The module speaks another version of the protocol.").
		hello().module(protocol.HelloAck{V: 2, Accept: true, MaxFrame: protocol.DefaultMaxFrame}).
		exits(protocol.ExitRefused, "There is no common version: the two were not shipped together."),

	talk("hello-unknown-members", "A worker of a later version has more to say in its HELLO. A module ignores what it does not know.").
		loose(transcript.Worker, `{"type":"HELLO","v":1,"nonce":"`+nonce+`","engine":{"name":"fake","version":"1","build_flags":[],"licence":"Apache-2.0"},"pid":4321,"max_frame":67108864,"threads":[1,2]}`).vary("pid").
		ack(protocol.DefaultMaxFrame).shutdown(),

	talk("hello-ack-unknown-members", "A module of a later version has more to say in its HELLO_ACK. A worker ignores what it does not know.").
		hello().
		loose(transcript.Module, `{"type":"HELLO_ACK","v":1,"accept":true,"max_frame":67108864,"greeting":{"type":"PING"}}`).
		shutdown(),

	// What a module must refuse.
	talk("bad-worker-nonce", "A worker of an earlier start answers at a new module's socket.").
		helloWith(func(h *protocol.Hello) { h.Nonce = "ffeeddccbbaa99887766554433221100" }).
		kills("The nonce is not the one that the worker was started with."),

	talk("bad-worker-version", "The worker speaks another version of the protocol.").
		helloWith(func(h *protocol.Hello) { h.V = 2 }).
		kills("There is no common version: the two were not shipped together."),

	talk("bad-worker-max-frame", "The worker offers a frame limit below the legal range.").
		helloWith(func(h *protocol.Hello) { h.MaxFrame = protocol.MinMaxFrame - 1 }).
		kills("max_frame is legal from 65536 to 1073741824."),

	talk("bad-worker-first-message", "The worker says something else before its HELLO.").
		worker(protocol.Pong{ReqID: "1", RSSMB: 24, ModelsLoaded: 0}, "rss_mb").
		kills("Anything but HELLO is a violation before HELLO_ACK."),

	talk("bad-worker-hello-oversize", "Until HELLO_ACK a frame is at most 64 KiB.").
		bytes(transcript.Worker, length(protocol.HandshakeMaxFrame+1)).because("a length of 65537").
		kills("The frame is over the limit, whatever would follow."),

	// What a worker must refuse.
	talk("bad-module-ack-over-offer", "HELLO_ACK sets a larger frame limit than the worker offered.").
		hello().ack(protocol.DefaultMaxFrame+1).
		exits(protocol.ExitViolation, "max_frame is legal from 65536 to the worker's offer."),

	talk("bad-module-no-ack", "The module sends a request where HELLO_ACK is due.").
		hello().module(protocol.Ping{ReqID: "1"}).
		exits(protocol.ExitViolation, "Anything but HELLO_ACK is a violation here."),

	talk("bad-module-ack-oversize", "Until HELLO_ACK a frame is at most 64 KiB.").
		hello().bytes(transcript.Module, length(protocol.HandshakeMaxFrame+1)).because("a length of 65537").
		exits(protocol.ExitViolation, "The frame is over the limit, whatever would follow."),

	talk("bad-module-half-ack", "The module ends the stream inside its HELLO_ACK.").
		hello().bytes(transcript.Module, append(length(9), '{')).because("a length of 9 and one byte").end(transcript.Module).
		exits(protocol.ExitViolation, "The stream ends inside a frame."),
}

// vary marks members of the last step that depend on the run.
func (s *script) vary(names ...string) *script {
	s.t.Steps[len(s.t.Steps)-1].Vary = names
	return s
}
