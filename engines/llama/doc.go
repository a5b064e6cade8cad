// Package llama runs GGUF models on llama.cpp: embedders, rerankers and
// generating models.
//
// # What stands before the library
//
// llama.cpp answers most wrong inputs with an abort of the process, some with
// nonsense, and few with an error. So a model's header is read and bounded here
// first (internal/gguf, [newPlan]); rows are packed so that no batch is longer
// than the library's; ranking heads, pair layouts, token types and dense layers
// are checked against what the library really computes; grammars are enforced
// in code of ours (engines/internal/gbnf).
//
// And where the library computes something else than the model was trained with,
// it is made to compute that: BERT's GELU is exact here (docs/adr/0022-llama-gelu.md).
//
// # Threads
//
// All calls of the library run on one locked thread: its OpenMP build keeps a
// pool of workers for every thread that ever called it.
package llama
