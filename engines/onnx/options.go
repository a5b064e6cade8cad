package onnx

import (
	"runtime"

	ort "github.com/yalue/onnxruntime_go"

	"github.com/synapse-module/workers/workerkit"
)

// The members of runtime_config.
const (
	optThreads      = "threads"
	optBatchTokens  = "batch_tokens"
	optMaxTokens    = "max_tokens"
	optVocabSize    = "vocab_size"
	optPooling      = "pooling"
	optOptimization = "optimization"
)

// defaultBatchTokens bounds the padded tokens of one call. Measured on MiniLM:
// 512 to 2048 are equally fast, 4096 is slower, and memory grows with it.
const defaultBatchTokens = 1024

// Upper ends that only keep out slips of the pen.
const (
	maxThreads     = 1024
	maxBatchTokens = 1 << 20
	maxMaxTokens   = 1 << 20
	maxVocabSize   = 1 << 30
)

// optimizations are the library's levels of graph rewriting by name.
var optimizations = map[string]ort.GraphOptimizationLevel{
	"off":      ort.GraphOptimizationLevelDisableAll,
	"basic":    ort.GraphOptimizationLevelEnableBasic,
	"extended": ort.GraphOptimizationLevelEnableExtended,
	"all":      ort.GraphOptimizationLevelEnableAll,
}

// options is the table of runtime_config's members.
func options() []workerkit.Option {
	return []workerkit.Option{
		{
			Name: optThreads, Kind: workerkit.KindInt, Min: 1, Max: maxThreads, Default: usableCPUs(),
			Help: "Threads that compute one call. The default is the CPUs that this process may use.",
		},
		{
			Name: optBatchTokens, Kind: workerkit.KindInt, Min: 1, Max: maxBatchTokens, Default: defaultBatchTokens,
			Help: "Most tokens of one call, padding counted; a single longer row still runs. Bounds memory.",
		},
		{
			Name: optMaxTokens, Kind: workerkit.KindInt, Min: 1, Max: maxMaxTokens,
			Help: "The longest row that passes. Needed where the graph has no table of positions; may lower the table's limit.",
		},
		{
			Name: optVocabSize, Kind: workerkit.KindInt, Min: 1, Max: maxVocabSize,
			Help: "Ids below it pass. Needed where the graph has no embedding table that can be found.",
		},
		{
			Name: optPooling, Kind: workerkit.KindEnum,
			Enum: []string{string(workerkit.PoolingMean), string(workerkit.PoolingCLS), string(workerkit.PoolingLast)},
			Help: "The model's own pooling, used for requests that name none. A bare ONNX file does not say it.",
		},
		{
			Name: optOptimization, Kind: workerkit.KindEnum, Enum: []string{"off", "basic", "extended", "all"}, Default: "all",
			Help: "How far the library rewrites the graph at LOAD. Lower it only to look for a fault.",
		},
	}
}

// usableCPUs is what affinity and, on Linux, the cgroup's quota leave. The
// library's own default counts the host's cores, and hangs or thrashes where
// fewer may be used.
func usableCPUs() int { return min(runtime.GOMAXPROCS(0), maxThreads) }
