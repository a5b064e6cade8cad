//go:build cgo

package onnx

import (
	"runtime"
	"strings"

	ort "github.com/yalue/onnxruntime_go"

	"github.com/synapse-module/workers/engines/onnx/internal/sidecar"
	"github.com/synapse-module/workers/workerkit"
)

// The members of runtime_config.
const (
	optThreads      = "threads"
	optBatchTokens  = "batch_tokens"
	optMaxTokens    = "max_tokens"
	optVocabSize    = "vocab_size"
	optPooling      = "pooling"
	optBatching     = "batching"
	optFile         = "file"
	optOutput       = "output"
	optPair         = "pair"
	optScores       = "scores"
	optLabel        = "label"
	optOptimization = "optimization"
	optProviders    = "providers"
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

// The values of batching.
const (
	batchingAuto   = "auto"
	batchingAlone  = "alone"
	batchingPacked = "packed"
)

// scoresSoftmax is the value of scores, beside those of package sidecar, for a
// head of several labels.
const scoresSoftmax = "softmax"

// maxLabels is the most classes that label may choose from.
const maxLabels = 1 << 16

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
			Name: optBatching, Kind: workerkit.KindEnum, Enum: []string{batchingAuto, batchingAlone, batchingPacked}, Default: batchingAuto,
			Help: "Whether rows share a call. auto: not where the graph takes scales over the call, since company moves those vectors; packed trades that for speed.",
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
			Help: "The model's own pooling, used for requests that name none. A bare ONNX file does not say it; a sidecar's word is the default.",
		},
		{
			Name: optFile, Kind: workerkit.KindString,
			Help: "The ONNX file's path inside a directory that holds several.",
		},
		{
			Name: optOutput, Kind: workerkit.KindString,
			Help: "The graph's output to use, where its name does not tell.",
		},
		{
			Name: optPair, Kind: workerkit.KindStrings,
			Help: "How a reranker's pair is laid out, where no tokenizer.json tells: ids, $A and $B, each with :TYPE where the token type is not 0, such as 101 $A 102 $B:1 102:1.",
		},
		{
			Name: optScores, Kind: workerkit.KindEnum, Enum: []string{string(sidecar.Raw), string(sidecar.Sigmoid), scoresSoftmax},
			Help: "What a reranker's logits become, where config.json does not tell.",
		},
		{
			Name: optLabel, Kind: workerkit.KindInt, Min: 0, Max: maxLabels - 1,
			Help: "The label whose value is the score, where a reranker's head has several.",
		},
		{
			Name: optOptimization, Kind: workerkit.KindEnum, Enum: []string{"off", "basic", "extended", "all"}, Default: "all",
			Help: "How far the library rewrites the graph at LOAD. Lower it only to look for a fault.",
		},
		{
			Name: optProviders, Kind: workerkit.KindStrings, Default: []string{providerCPU},
			Help: "Where nodes run, in order of preference: " + strings.Join(providerNames, ", ") + ". The library must have it; DESCRIBE says what was truly used.",
		},
	}
}

// usableCPUs is what affinity and, on Linux, the cgroup's quota leave. The
// library's own default counts the host's cores, and hangs or thrashes where
// fewer may be used.
func usableCPUs() int { return min(runtime.GOMAXPROCS(0), maxThreads) }
