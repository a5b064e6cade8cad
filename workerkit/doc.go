// Package workerkit is the worker's side of the Synapse engine-worker protocol,
// shared by all engines. [Main] is a worker's whole main: it reads the flags,
// loads the engine's libraries, connects to the module, says HELLO and serves
// requests until SHUTDOWN or the module's end.
//
// An engine is a small interface ([Engine], [Model]) with optional capabilities
// ([Embedder], [Reranker], [Generator]). It knows no sockets and no JSON.
// Everything that is the same for every engine stands here once: digests bound
// to the bytes that are loaded, runtime_config, ids held to the vocabulary,
// lengths to the model's limit, answers to the frame's, normalisation, the check
// that no vector holds a value that is not finite.
package workerkit
