package metrics

import (
	"errors"

	"github.com/synapse-module/workers/host"
	"github.com/synapse-module/workers/protocol"
)

// Outcome is the one word for how a request ended: "ok", "crashed_" and the cause,
// "refused_" and the code, "canceled", "gone" (there was no worker any more), or
// "unsent" for a request that did not fit a frame.
func Outcome(err error) string {
	var crash *host.EngineCrashed
	var refusal *protocol.Error
	var canceled *host.RequestCanceled
	var gone *host.WorkerGone
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &crash):
		return "crashed_" + string(crash.Cause)
	case errors.As(err, &canceled):
		return "canceled"
	case errors.As(err, &gone):
		return "gone"
	case errors.As(err, &refusal):
		return "refused_" + known(refusal.Code)
	default:
		return "unsent"
	}
}

// known keeps what a worker invents out of a label, whose values must be few.
func known(c protocol.Code) string {
	switch c {
	case protocol.CodeArtifactInvalid, protocol.CodeConfigInvalid, protocol.CodeOOM, protocol.CodeModelNotFound,
		protocol.CodeRequestInvalid, protocol.CodeUnsupported, protocol.CodeResponseTooLarge, protocol.CodeUnknownType,
		protocol.CodeEngineFailed:
		return string(c)
	default:
		return "other"
	}
}
