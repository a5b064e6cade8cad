package transcript_test

import (
	"github.com/synapse-module/workers/internal/transcript"
	"github.com/synapse-module/workers/protocol"
)

const overLimit = "The frame is over the limit: whoever sees its length closes the connection, whatever would follow."

// moduleViolations are what a worker must not put up with.
var moduleViolations = []*script{
	small("bad-module-oversize", "A length one byte over the limit that HELLO_ACK set.").
		bytes(transcript.Module, length(protocol.MinMaxFrame+1)).because("a length of 65537").
		exits(protocol.ExitViolation, overLimit),

	small("bad-module-oversize-raw", "A raw frame over the limit behind a sound request.").
		load(2, `{"dims":2}`).
		module(protocol.EmbedBatch{ReqID: "2", ModelRef: "m1", Items: []protocol.Item{{NTokens: 16385}}}).
		bytes(transcript.Module, length(4*16385)).because("a length of 65540").
		exits(protocol.ExitViolation, overLimit),

	handshaken("bad-module-absurd-length", "A length of 4 GiB less one byte. It costs no memory: that follows the bytes that arrive.").
		bytes(transcript.Module, length(0xFFFFFFFF)).because("a length of 4294967295").
		exits(protocol.ExitViolation, overLimit),

	handshaken("bad-module-zero-control", "A control frame of length 0. Length 0 is legal only where a raw frame is due.").
		bytes(transcript.Module, length(0)).because("a length of 0").
		exits(protocol.ExitViolation, "A control frame holds a JSON object."),

	handshaken("bad-module-half-length", "The stream ends inside a length.").
		bytes(transcript.Module, []byte{26, 0}).because("two bytes of a length").end(transcript.Module).
		exits(protocol.ExitViolation, "The stream ends inside a frame."),

	handshaken("bad-module-half-frame", "The stream ends inside a payload.").
		bytes(transcript.Module, frame([]byte(`{"type":"PING","req_id":1}`))[:17]).because("half a PING").end(transcript.Module).
		exits(protocol.ExitViolation, "The stream ends inside a frame."),

	handshaken("bad-module-missing-raw", "The stream ends where a raw frame is due.").
		load(2, `{"dims":2}`).
		module(protocol.EmbedBatch{ReqID: "2", ModelRef: "m1", Items: []protocol.Item{{NTokens: 1}}}).end(transcript.Module).
		exits(protocol.ExitViolation, "A message and its raw frames are one: the stream ends inside it."),

	handshaken("bad-module-not-json", "A control frame that is no JSON.").
		unsound("PING").
		exits(protocol.ExitViolation, notSound),

	handshaken("bad-module-not-object", "A control frame that is JSON, but no object.").
		unsound(`["PING"]`).
		exits(protocol.ExitViolation, notSound),

	handshaken("bad-module-not-utf8", "A control frame with a byte that is not UTF-8.").
		unsound("{\"type\":\"PING\",\"req_id\":\"caf\xe9\"}").
		exits(protocol.ExitViolation, notSound),

	handshaken("bad-module-trailing-bytes", "A control frame with a second object behind the first.").
		unsound(`{"type":"PING","req_id":1}{"type":"PING","req_id":2}`).
		exits(protocol.ExitViolation, notSound),

	handshaken("bad-module-no-type", "A control frame without a type. Nobody knows what follows it.").
		unsound(`{"req_id":1}`).
		exits(protocol.ExitViolation, notSound),

	handshaken("bad-module-duplicate-type", "A control frame with two types. Nobody knows what follows it.").
		unsound(`{"type":"EMBED_BATCH","req_id":1,"type":"PING"}`).
		exits(protocol.ExitViolation, notSound),

	handshaken("bad-module-raw-frames-17", "A message of an unknown type that announces more raw frames than are legal.").
		unsound(`{"type":"TRANSLATE","req_id":1,"raw_frames":17}`).
		exits(protocol.ExitViolation, "raw_frames is legal from 0 to 16."),

	handshaken("bad-module-raw-frames-twice", "A message of an unknown type that says twice how many raw frames follow.").
		unsound(`{"type":"TRANSLATE","req_id":1,"raw_frames":0,"raw_frames":1}`).
		exits(protocol.ExitViolation, "Nobody knows what follows it."),

	handshaken("bad-module-piled-up", "One request is in hand, and four more are sent without waiting for its answer.").
		load(2, `{"dims":2,"fault":"hang"}`).
		batch("m1", "", false, []int32{5}).
		module(protocol.Ping{ReqID: "3"}).module(protocol.Ping{ReqID: "4"}).module(protocol.Ping{ReqID: "5"}).module(protocol.Ping{ReqID: "6"}).
		exits(protocol.ExitViolation, "A worker has one lane. It has room for the next request and SHUTDOWN behind the one in hand, and takes a pile for a violation."),

	handshaken("module-gone", "The module ends the stream with a request in hand.").
		load(2, `{"dims":2,"fault":"hang"}`).
		batch("m1", "", false, []int32{5}).
		end(transcript.Module).
		exits(protocol.ExitIO, "The module is gone: the worker exits at once, even out of an engine call that never comes back."),
}

const notSound = "The frame leaves open how the stream goes on."

// unsound is a control frame whose length is right and whose payload is not.
func (s *script) unsound(payload string) *script {
	return s.bytes(transcript.Module, frame([]byte(payload))).because("%q behind its length", payload)
}

// workerViolations are what a module must not put up with. Each ends with the
// worker's last bytes.
var workerViolations = []*script{
	small("bad-worker-oversize", "The worker sends a length over the limit.").
		module(protocol.Ping{ReqID: "1"}).
		bytes(transcript.Worker, length(protocol.MinMaxFrame+1)).because("a length of 65537").
		kills(overLimit),

	handshaken("bad-worker-zero-control", "The worker sends a control frame of length 0.").
		module(protocol.Ping{ReqID: "1"}).
		bytes(transcript.Worker, length(0)).because("a length of 0").
		kills("A control frame holds a JSON object."),

	handshaken("bad-worker-not-json", "The worker writes something else on the connection, as an engine does that prints to a descriptor which it does not own.").
		module(protocol.Ping{ReqID: "1"}).
		bytes(transcript.Worker, frame([]byte("llm_load: 42 tensors"))).because("a length of 20 and a log line").
		kills(notSound),

	handshaken("bad-worker-half-answer", "The worker dies in the middle of an answer.").
		load(2, `{"dims":2}`).
		batch("m1", "", false, []int32{5}).
		worker(protocol.Vectors{ReqID: "2", Dims: 2, N: 1}).
		bytes(transcript.Worker, append(length(8), 0, 0, 0)).because("a length of 8 and three bytes").end(transcript.Worker).
		kills("The stream ends inside a frame."),

	handshaken("bad-worker-eof", "The worker closes the connection with a request in hand.").
		module(protocol.Ping{ReqID: "1"}).
		end(transcript.Worker).
		kills("The request cannot be answered any more."),

	handshaken("bad-worker-req-id", "The worker answers another request than the one in hand.").
		module(protocol.Ping{ReqID: "1"}).
		worker(protocol.Pong{ReqID: "2", RSSMB: 24}, "rss_mb").
		kills("The req_id is not the request's."),

	handshaken("bad-worker-answer-type", "The worker answers with a message of another type.").
		module(protocol.Ping{ReqID: "1"}).
		worker(protocol.Unloaded{ReqID: "1"}).
		kills("PING is answered by PONG or ERR."),

	handshaken("bad-worker-answer-malformed", "A member of the answer is missing.").
		module(protocol.Ping{ReqID: "1"}).
		loose(transcript.Worker, `{"type":"PONG","req_id":1,"rss_mb":24}`).vary("rss_mb").
		kills("An answer has no ERR to be refused with: a malformed one is a violation."),

	handshaken("bad-worker-rows", "The worker answers with fewer vectors than rows.").
		load(2, `{"dims":2}`).
		batch("m1", "", false, []int32{5}, []int32{6}).
		worker(protocol.Vectors{ReqID: "2", Dims: 2, N: 1}).floats(1, 2).
		kills("n is not the count of items."),

	handshaken("bad-worker-dims", "The worker answers with other dims than LOADED said.").
		load(2, `{"dims":2}`).
		batch("m1", "", false, []int32{5}).
		worker(protocol.Vectors{ReqID: "2", Dims: 3, N: 1}).floats(1, 2, 3).
		kills("dims is not the model's."),

	handshaken("bad-worker-short-tensor", "The raw frame is shorter than its header says.").
		load(2, `{"dims":2}`).
		batch("m1", "", false, []int32{5}).
		worker(protocol.Vectors{ReqID: "2", Dims: 2, N: 1}).floats(1).
		kills("The raw frame has not n·dims values."),

	handshaken("bad-worker-model-ref-twice", "The worker gives a model_ref a second time.").
		load(2, `{"dims":2}`).
		asksLoad(`{"dims":2}`).worker(protocol.Loaded{ReqID: "2", ModelRef: "m1", Dims: 2, ColdLoadMS: 3}, "cold_load_ms").
		kills("A model_ref is unique for the life of the process."),

	handshaken("bad-worker-duplicate-type", "An answer with two types.").
		module(protocol.Ping{ReqID: "1"}).
		bytes(transcript.Worker, frame([]byte(`{"type":"PONG","req_id":1,"rss_mb":24,"models_loaded":0,"type":"VECTORS"}`))).because("a PONG that is VECTORS as well").
		kills(notSound),

	handshaken("bad-worker-unasked", "The worker says something though nothing was asked.").
		ping(protocol.Pong{}).
		worker(protocol.Pong{ReqID: "1", RSSMB: 24}, "rss_mb").
		kills("A worker speaks only when it is asked."),
}
