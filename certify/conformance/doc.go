// Package conformance holds a worker binary, in whatever language, to the wire.
//
// It plays the module: it starts the worker, listens, and says what a module may
// say and what it must not. Each [Case] states one rule of docs/protocol.md and
// passes where the worker keeps it. Cases that need a model are skipped, by
// name, where none was given, or where the model cannot do what they are about.
//
// It speaks with its own sockets and not through package host, which would never
// send the frames that a worker must refuse.
package conformance
