// Package onnx is the engine over ONNX Runtime: encoder graphs of any exporter,
// run on the CPU.
//
// What is decided at LOAD: which input and output has which role, their types
// and shapes, how many rows the vocabulary has and how many tokens a row may
// have. What the file does not say is asked for in runtime_config, never
// guessed. The session is then run once on one row, so a model that loads also
// runs, and its first request is as fast as the others.
//
// A float graph runs rows of similar length together, within a budget of padded
// tokens. A dynamically quantised graph runs each row alone and unpadded: its
// scales are taken over everything in the call, so any company moves the vector
// (docs/adr says by how much).
//
// The library is one process-wide instance; [Open] may succeed once.
package onnx
