package protocol

import "crypto/subtle"

// NonceBytes is the size of a spawn nonce before hex: 128 bits, so that no
// process but the one that was given it can guess it.
const NonceBytes = 16

// CheckHello is the module's judgement of a HELLO: the version, and the nonce in
// constant time. Its error is a [ViolationError].
func CheckHello(h Hello, nonce string) error {
	if h.V != Version {
		return Violation("the worker speaks version %d, this module version %d: ship the two from one release", h.V, Version)
	}
	if subtle.ConstantTimeCompare([]byte(h.Nonce), []byte(nonce)) != 1 {
		return Violation("the worker's nonce is not the one that it was started with: it belongs to another module or an earlier start")
	}
	if h.MaxFrame < MinMaxFrame || h.MaxFrame > MaxMaxFrame {
		return Violation("the worker's max_frame is %d bytes, legal is %d to %d", h.MaxFrame, MinMaxFrame, MaxMaxFrame)
	}
	return nil
}

// RefusedError says that the module did not accept this worker.
type RefusedError struct{ Reason string }

func (e *RefusedError) Error() string { return "the module refused this worker: " + e.Reason }

// CheckHelloAck is the worker's judgement of the answer to its HELLO, which
// offered max bytes a frame. It returns a [RefusedError] or a [ViolationError].
func CheckHelloAck(a HelloAck, offered uint32) error {
	switch {
	case !a.Accept:
		return &RefusedError{Reason: "HELLO_ACK has accept false"}
	case a.V != Version:
		return &RefusedError{Reason: Violation("the module speaks version %d, this worker version %d", a.V, Version).Reason}
	case a.MaxFrame < MinMaxFrame || a.MaxFrame > offered:
		return Violation("HELLO_ACK sets max_frame to %d bytes, legal is %d to the offered %d", a.MaxFrame, MinMaxFrame, offered)
	}
	return nil
}
