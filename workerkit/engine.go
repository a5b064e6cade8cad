package workerkit

import (
	"context"
	"log/slog"
	"os"

	"github.com/synapse-module/workers/internal/diskcache"
	"github.com/synapse-module/workers/protocol"
)

// Engine is one inference library in this process. workerkit calls it and the
// models that it loads from one goroutine at a time.
type Engine interface {
	// Info says what HELLO and --version say. It must not change.
	Info() Info

	// Load makes a model of a verified artifact. An error that is no
	// [protocol.Error] is answered as artifact_invalid.
	Load(ctx context.Context, a Artifact, c Config) (Model, error)
}

// Open loads the engine's libraries. It runs before the worker says HELLO, so a
// missing or wrong library is one clear line and no worker at all.
type Open func(Setup) (Engine, error)

// Setup is what a worker's command line decides for its engine.
type Setup struct {
	LibDir     string       // absolute directory of the engine's native libraries
	CacheDir   string       // absolute directory, perhaps not made yet, for what outlives the process
	CacheLimit int64        // bytes that each of the caches there may take
	Log        *slog.Logger // the worker's structured log on stderr
}

// DefaultCacheLimit is the [Setup.CacheLimit] of a worker that is not told one.
const DefaultCacheLimit = diskcache.DefaultLimit

// Info describes an engine.
type Info struct {
	Name       string   // "onnx", "llama", "coreml"
	Version    string   // the library's version
	BuildFlags []string // what changes the numbers: library build, CPU class, chosen variant
	Formats    []string // artifact formats of LOAD, each packing named: "onnx", "onnx+zstd"
	Options    []Option // the members of runtime_config
}

// Artifact is a model's bytes, verified against the digest of the LOAD.
type Artifact struct {
	// Path opens the very bytes that were hashed: on Linux the verified
	// descriptor under /proc/self/fd, elsewhere and for directories a private
	// copy. What was packed lies in the cache. It is valid until the model is closed,
	// and nothing is to be written there.
	Path string

	File   *os.File // the verified descriptor; nil for a directory
	Size   int64    // bytes of all files
	Format string   // as in the LOAD, without how it was packed
	Digest string   // as in the LOAD
	Name   string   // the path that the module named, for messages only

	// unchanged says, when the engine has loaded the model, whether somebody wrote to
	// the file after it was hashed. It is nil for what lies where nobody else writes.
	unchanged func() error
}

// Model is a loaded model. What else it can do it says by implementing
// [Embedder], [Reranker] or [Generator]; for the rest workerkit answers
// unsupported.
type Model interface {
	// Describe says what the model is and takes. It must not change: the limits
	// in it are what workerkit enforces before the engine is called.
	Describe() Description

	// Close frees the model. It is called once.
	Close() error
}

// Description is what a model is and takes.
type Description struct {
	Arch           string              // the artifact's own name for its architecture
	Dims           int                 // length of an embedding; 0 where there is none
	MaxTokens      int                 // the longest row (or pair, or prompt) that passes
	VocabSize      int                 // ids 0..VocabSize-1 pass
	Poolings       []Pooling           // what Embed does faithfully
	DefaultPooling Pooling             // the artifact's own
	Grammar        bool                // Generate enforces a grammar
	Placement      *protocol.Placement // Core ML's plan; nil where unknown or not applicable
}

// Pooling is how a row's hidden states become one vector.
type Pooling string

// The poolings of the protocol.
const (
	PoolingMean Pooling = "mean" // mean over the row's tokens
	PoolingCLS  Pooling = "cls"  // the first token's state
	PoolingLast Pooling = "last" // the last token's state
)

// Embedder turns rows of token ids into vectors.
type Embedder interface {
	// Embed returns one vector a row, in order, not normalised. The ids are
	// in the vocabulary, no row is empty or longer than MaxTokens, and p is one
	// of the model's Poolings; ids are used as given, none added or dropped.
	// The vectors lend the engine's memory: they are valid, and may be
	// overwritten by the caller, until the next call on the model.
	Embed(ctx context.Context, rows [][]int32, p Pooling) (vectors [][]float32, err error)
}

// Reranker scores documents against a query.
type Reranker interface {
	// Rerank returns one score a document, in order. It builds the pair's
	// special tokens itself, doubling none that are there.
	Rerank(ctx context.Context, query []int32, docs [][]int32) ([]float32, error)
}

// Generator continues a prompt greedily.
type Generator interface {
	Generate(ctx context.Context, prompt []int32, o GenerateOptions) (Generation, error)
}

// GenerateOptions bounds a generation.
type GenerateOptions struct {
	MaxTokens int
	Grammar   string // empty for none; never set for a model without Grammar
}

// Generation is what a [Generator] made.
type Generation struct {
	Text   string // whole UTF-8 only
	NGen   int    // tokens sampled
	Finish protocol.FinishReason
}
