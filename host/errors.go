package host

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/synapse-module/workers/protocol"
)

// Stage is what a worker was doing, or was asked to do, when it failed.
type Stage string

// The stages.
const (
	StageSpawn    Stage = "spawn"    // being started by the operating system
	StageHello    Stage = "hello"    // started, handshake not complete
	StageLoad     Stage = "load"     // LOAD in hand
	StageEmbed    Stage = "embed"    // EMBED_BATCH in hand
	StageRerank   Stage = "rerank"   // RERANK in hand
	StageGenerate Stage = "generate" // GENERATE in hand
	StageUnload   Stage = "unload"   // UNLOAD in hand
	StagePing     Stage = "ping"     // PING in hand
	StageDescribe Stage = "describe" // DESCRIBE in hand
	StageShutdown Stage = "shutdown" // SHUTDOWN sent
	StageIdle     Stage = "idle"     // nothing asked of it
)

// Cause is how a worker failed.
type Cause string

// The causes.
const (
	// CauseTimeout: the deadline passed and the worker was killed.
	CauseTimeout Cause = "timeout"
	// CauseEOF: the worker closed the connection and lived on, so it was killed.
	CauseEOF Cause = "eof"
	// CauseSignal: a signal ended the process (SIGSEGV, SIGABRT, an out-of-memory
	// SIGKILL); it was not sent by this package.
	CauseSignal Cause = "signal"
	// CauseExit: the process exited by itself, or could not be started at all
	// (ExitCode is then [NoExitCode] and Err says why).
	CauseExit Cause = "exit"
	// CauseViolation: the worker broke the protocol and was killed.
	CauseViolation Cause = "violation"
)

// NoExitCode is the ExitCode of a process that did not exit by itself.
const NoExitCode = -1

// EngineCrashed says that a worker process failed. When it is returned the
// process and its group are dead and reaped, unless Err says otherwise.
//
// errors.Is(err, context.DeadlineExceeded) holds for [CauseTimeout], and
// errors.As finds a [*protocol.ViolationError] for [CauseViolation].
type EngineCrashed struct {
	Stage    Stage
	Cause    Cause
	ExitCode int    // exit status, or NoExitCode
	Signal   string // the signal that ended the process ("SIGSEGV"), this package's own SIGKILL included; empty for none
	Model    string // digest of the model that the request was for; empty where none
	Config   string // that model's runtime_config as sent, canonical JSON; empty for the engine's defaults
	LogTail  string // the end of what the worker wrote to stdout and stderr, at most [LogTailBytes], safe to print

	Worker string // the worker's id
	PID    int    // its process id, 0 where it never started
	Path   string // its executable

	Err error // what was seen, in detail
}

func (e *EngineCrashed) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "engine crashed in stage %s, cause %s", e.Stage, e.Cause)
	fmt.Fprintf(&b, " (worker %s", e.Worker)
	if e.PID != 0 {
		fmt.Fprintf(&b, ", pid %d", e.PID)
	}
	switch {
	case e.Signal != "":
		fmt.Fprintf(&b, ", ended by %s", e.Signal)
	case e.ExitCode != NoExitCode:
		fmt.Fprintf(&b, ", exit status %d", e.ExitCode)
	}
	b.WriteByte(')')
	if e.Err != nil {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	if e.Cause == CauseSignal && e.Signal == "SIGKILL" {
		b.WriteString(": this module did not send it; the system being out of memory is the usual reason")
	}
	if last := lastLine(e.LogTail); last != "" {
		fmt.Fprintf(&b, "; its last log line: %s", last)
	}
	return b.String()
}

// Unwrap returns Err.
func (e *EngineCrashed) Unwrap() error { return e.Err }

// lastLine is the last line of the tail that holds anything.
func lastLine(tail string) string {
	tail = strings.TrimRight(tail, "\n\t ")
	return strings.TrimSpace(tail[strings.LastIndexByte(tail, '\n')+1:])
}

// NotAdmitted says that Spec.Admit refused to have a model loaded. The worker is
// as it was: nothing was sent.
type NotAdmitted struct {
	Worker string // the worker's id
	Model  string // digest of the artifact
	Err    error  // what Admit returned
}

func (e *NotAdmitted) Error() string {
	return fmt.Sprintf("%s was not loaded into worker %s: %v", e.Model, e.Worker, e.Err)
}

// Unwrap returns Err.
func (e *NotAdmitted) Unwrap() error { return e.Err }

// RequestCanceled says that the caller's context ended a request that was no
// crash. It unwraps to the context's error: [context.Canceled], or
// [context.DeadlineExceeded] for a request that never got the lane.
type RequestCanceled struct {
	Stage  Stage
	Worker string

	// Killed says that the request had reached the worker, which was killed
	// therefore. Where it is false the request never reached the worker and the
	// worker is as it was.
	Killed bool

	Err error // the context's error
}

func (e *RequestCanceled) Error() string {
	if e.Killed {
		return fmt.Sprintf("%s was canceled by its caller, so worker %s was killed: %v", e.Stage, e.Worker, e.Err)
	}
	return fmt.Sprintf("%s ended before worker %s was free for it: %v", e.Stage, e.Worker, e.Err)
}

// Unwrap returns the context's error.
func (e *RequestCanceled) Unwrap() error { return e.Err }

// WorkerGone says that a request found no worker any more and was not begun, or
// that [Worker.Kill] ended it.
type WorkerGone struct {
	Worker string
	// Why is what ended the worker. It is not unwrapped, so that one crash is not
	// counted once for each request that comes after it.
	Why error
}

func (e *WorkerGone) Error() string {
	return fmt.Sprintf("worker %s is gone, start another: %v", e.Worker, e.Why)
}

// ErrKilled is why a worker is gone that [Worker.Kill] ended.
var ErrKilled = errors.New("it was killed by this module")

var errClosed = errors.New("it was shut down by this module")

// timedOut is the detail of a [CauseTimeout].
func timedOut(what string) error {
	return fmt.Errorf("%s: %w", what, context.DeadlineExceeded)
}

// violates makes any complaint about what the worker sent a violation.
func violates(err error) error {
	var v *protocol.ViolationError
	if err == nil || errors.As(err, &v) {
		return err
	}
	return &protocol.ViolationError{Reason: "a malformed answer", Err: err}
}
