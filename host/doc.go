// Package host is the module's side of the Synapse engine-worker protocol: it
// starts a worker process, speaks with it over one private local socket, and
// makes sure that nothing that happens inside the worker (an abort, a hang, a
// leak, garbage on the wire) ever reaches the module as anything but a typed
// error.
//
// # A worker
//
// [Start] spawns the process, proves that the peer at the socket is that very
// process, and returns a [Worker]. Its methods are the requests of the protocol.
// A worker has one lane: requests of concurrent callers wait for it in order.
//
// # Three kinds of failure
//
//   - A refusal is a [protocol.Error]. The worker is sound and serves the next
//     request.
//   - A crash is an [*EngineCrashed]. It says in which stage, for which cause and
//     what the worker last wrote to its log. The process is dead and reaped when
//     the error is returned.
//   - A request that the caller gave up is a [*RequestCanceled]. If it had reached
//     the worker, the worker is dead too: it has one lane, and nobody can tell when
//     the lane would have been free again.
//
// What never reached a worker, because the worker was gone before, is a
// [*WorkerGone]; a load that Spec.Admit did not allow is a [*NotAdmitted].
//
// # What holds
//
// Each request has a deadline, the context's own or the default of its kind
// ([Deadlines]), that bounds all of it: waiting for the lane, writing, reading,
// frames that trickle or stop in the middle. On expiry the worker's whole process
// group is killed with SIGKILL (Windows: its Job Object), reaped, and the request
// fails. A request never hangs and never returns half an answer.
//
// No signal is sent to a process that was reaped, so no process of somebody else
// that was given the same id is ever hit. No worker outlives the module; what
// that rests on in each operating system is in docs/supervision.md, as is the
// state machine of a worker.
package host
