package protocol

import (
	"errors"
	"fmt"
	"strings"
)

// Code is the machine-readable reason of an ERR.
type Code string

// The codes of v1. docs/protocol.md says when each is sent.
const (
	CodeArtifactInvalid  Code = "artifact_invalid"   // LOAD: missing, unreadable, truncated, corrupt, wrong digest or format
	CodeConfigInvalid    Code = "config_invalid"     // LOAD: a member of runtime_config is unknown, of the wrong kind or out of range
	CodeOOM              Code = "oom"                // the memory is not there
	CodeModelNotFound    Code = "model_not_found"    // model_ref is not loaded
	CodeRequestInvalid   Code = "request_invalid"    // a malformed member, or ids that the model cannot take
	CodeUnsupported      Code = "unsupported"        // this engine or model cannot do it faithfully
	CodeResponseTooLarge Code = "response_too_large" // the answer would not fit one frame; no work was done
	CodeUnknownType      Code = "unknown_type"       // no such message
	CodeEngineFailed     Code = "engine_failed"      // the engine reported a failure, the worker is sound
)

// Error is a refusal that leaves the connection in step: what an ERR carries.
// Msg says who is at fault and what to do next.
type Error struct {
	Code Code
	Msg  string
}

func (e *Error) Error() string { return string(e.Code) + ": " + e.Msg }

// Is makes errors.Is(err, &Error{Code: c}) match any Error of that code.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code && (t.Msg == "" || t.Msg == e.Msg)
}

// Errorf makes an [Error] that an ERR can carry whatever the arguments are:
// engines and file systems give bytes that are not UTF-8, and a peer's path may
// be as long as a frame. What is not UTF-8 becomes U+FFFD, what is over
// [MaxMsgBytes] is cut and ends in "…".
func Errorf(code Code, format string, args ...any) *Error {
	msg := strings.ToValidUTF8(fmt.Sprintf(format, args...), "\uFFFD")
	return &Error{Code: code, Msg: cutText(msg, MaxMsgBytes)}
}

// cutText bounds a text to most bytes and the mark of the cut.
func cutText(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// ViolationError says that the peer broke the protocol in a way after which the
// stream cannot be trusted. The side that sees it closes the connection.
type ViolationError struct {
	Reason string
	Err    error // the cause, where there is one
}

func (e *ViolationError) Error() string {
	if e.Err != nil {
		return "protocol violation: " + e.Reason + ": " + e.Err.Error()
	}
	return "protocol violation: " + e.Reason
}

// Unwrap returns the cause, but for an [Error]: that is a refusal, after which the
// connection serves on, and must not be found inside of what ended it.
func (e *ViolationError) Unwrap() error {
	var refusal *Error
	if errors.As(e.Err, &refusal) {
		return nil
	}
	return e.Err
}

// Violation makes a [ViolationError].
func Violation(format string, args ...any) *ViolationError {
	return &ViolationError{Reason: fmt.Sprintf(format, args...)}
}

// EncodeError is a message that has no JSON text, such as one with a string that
// is not UTF-8. Nothing has been sent and the connection is still in step.
type EncodeError struct {
	Type Type
	Err  error
}

func (e *EncodeError) Error() string { return fmt.Sprintf("encode %s: %v", e.Type, e.Err) }

func (e *EncodeError) Unwrap() error { return e.Err }

// OversizeError is a frame longer than the limit in force. Read, it arrives
// inside a [ViolationError]; written, nothing has been sent and the connection
// is still in step.
type OversizeError struct {
	Length uint64 // bytes announced or to be sent
	Limit  uint32 // bytes allowed
}

func (e *OversizeError) Error() string {
	return fmt.Sprintf("a frame of %d bytes is over the limit of %d", e.Length, e.Limit)
}
