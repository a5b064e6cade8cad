//go:build linux

package chaos

import (
	"context"
	"errors"
	"fmt"

	"github.com/synapse-module/workers/host"
	"github.com/synapse-module/workers/protocol"
)

// verdict is one way in which a series may rightly end.
type verdict struct {
	stage  host.Stage
	cause  host.Cause
	signal string        // where the cause is a signal
	code   int           // where the cause is an exit
	refuse protocol.Code // a refusal instead of a crash
}

func (v verdict) String() string {
	switch {
	case v == (verdict{}):
		return "success"
	case v.refuse != "":
		return fmt.Sprintf("refusal %s in %s", v.refuse, v.stage)
	case v.cause == host.CauseSignal:
		return fmt.Sprintf("%s by %s", v.stage, v.signal)
	case v.cause == host.CauseExit:
		return fmt.Sprintf("%s by exit %d", v.stage, v.code)
	default:
		return fmt.Sprintf("%s by %s", v.stage, v.cause)
	}
}

// success is a series that ran to its end.
var success verdict

// fits says whether the outcome is this verdict.
func (v verdict) fits(o outcome) bool {
	if v == success {
		return o.err == nil && o.end == nil
	}
	if v.refuse != "" {
		return o.stage == v.stage && errors.Is(o.err, &protocol.Error{Code: v.refuse})
	}
	crash, asked := crashOf(o)
	if crash == nil || crash.Cause != v.cause || !same(crash, v.stage) {
		return false
	}
	// What the caller was told must be of the request it made.
	if asked && !same(crash, o.stage) {
		return false
	}
	switch v.cause {
	case host.CauseSignal:
		return crash.Signal == v.signal && crash.ExitCode == host.NoExitCode
	case host.CauseExit:
		return crash.Signal == "" && crash.ExitCode == v.code
	case host.CauseTimeout:
		return errors.Is(crash, context.DeadlineExceeded)
	case host.CauseViolation:
		var why *protocol.ViolationError
		return errors.As(crash, &why)
	default:
		return true
	}
}

// same says whether a crash is of a stage. A busy system may take all of a start's
// time to make the process; that is a start's timeout as well.
func same(crash *host.EngineCrashed, stage host.Stage) bool {
	return crash.Stage == stage ||
		stage == host.StageHello && crash.Stage == host.StageSpawn && crash.Cause == host.CauseTimeout
}

// crashOf is the crash of an outcome: the request's own error (asked), or why the
// worker was gone when the request came, or, where the last request was Close and
// found nothing to close, the worker's end.
func crashOf(o outcome) (crash *host.EngineCrashed, asked bool) {
	if errors.As(o.err, &crash) {
		return crash, true
	}
	var gone *host.WorkerGone
	if errors.As(o.err, &gone) && errors.As(gone.Why, &crash) {
		return crash, false
	}
	if o.err == nil && errors.As(o.end, &crash) {
		return crash, false
	}
	return nil, false
}

// oneOf holds an outcome to the verdicts that are right for its fault.
func oneOf(o outcome, right ...verdict) error {
	for _, v := range right {
		if v.fits(o) {
			return nil
		}
	}
	if !typed(o.err) {
		return fmt.Errorf("%w: %T %w", errUntyped, o.err, o.err)
	}
	return &misjudged{o, right}
}

var errUntyped = errors.New("untyped error")

// typed says that an error is one of those that package host promises.
func typed(err error) bool {
	if err == nil {
		return true
	}
	var crash *host.EngineCrashed
	var canceled *host.RequestCanceled
	var gone *host.WorkerGone
	var refusal *protocol.Error
	var full *host.QueueFull
	var none *host.NoWorker
	var quarantined *host.Quarantined
	return errors.As(err, &crash) || errors.As(err, &canceled) || errors.As(err, &gone) || errors.As(err, &refusal) ||
		errors.As(err, &full) || errors.As(err, &none) || errors.As(err, &quarantined)
}

// dies are the verdicts of a death that may be met in any of the stages.
func dies(how string, stages ...host.Stage) []verdict {
	var all []verdict
	for _, s := range stages {
		v := causeOfDeath(how)
		v.stage = s
		all = append(all, v)
	}
	return all
}

// misjudged is an outcome that fits none of the verdicts.
type misjudged struct {
	outcome
	right []verdict
}

func (m *misjudged) Error() string {
	return fmt.Sprintf("ended in %s with %v (the worker's end: %v), right were %v", m.stage, m.err, m.end, m.right)
}
