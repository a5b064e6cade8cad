// Package protocol is the wire of the Synapse engine-worker protocol, v1: what
// a module (the host program) and a worker (one process round one inference
// engine) say to each other over one local stream socket.
//
// # Shape
//
// A stream is a sequence of frames, each a u32 little-endian length and that
// many bytes. A control frame's payload is one JSON object whose member "type"
// names the message; a raw frame's payload is bare little-endian numbers. Which
// raw frames follow a control frame is fixed by its type.
//
// [FrameReader] and [FrameWriter] move frames, [Parse] and [Header.Decode] turn
// a control frame into a message, [Digest] names the bytes of an artifact. Both
// sides use the same code; the package imports neither of them and starts
// nothing.
//
// # Two kinds of error
//
// A [ViolationError] means that the stream itself cannot be trusted any more:
// whoever sees it closes the connection. An [Error] is an answer: the request
// is refused, the stream is in step and serves the next request.
//
// # Compatibility
//
// Within v1 a message type is never changed, only added: a peer ignores members
// that it does not know and answers a request of an unknown type with
// [CodeUnknownType]. docs/protocol.md says the whole wire for implementers in
// other languages; docs/protocol/ holds golden transcripts.
package protocol
