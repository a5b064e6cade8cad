package coreml

import (
	"github.com/synapse-module/workers/engines/coreml/internal/bridge"
	"github.com/synapse-module/workers/workerkit"
)

// The members of runtime_config.
const (
	optComputeUnits = "compute_units"
	optFunctions    = "functions"
	optMinShare     = "min_placement_share"
	optRanges       = "allow_range_shapes"
	optMaxTokens    = "max_tokens"
	optVocabSize    = "vocab_size"
	optPooling      = "pooling"
	optOutput       = "output"
	optPair         = "pair"
)

// Upper ends that only keep out slips of the pen.
const (
	maxMaxTokens = 1 << 20
	maxVocabSize = 1 << 30
)

// defaultUnits keeps the GPU out: Core ML's kernels for it were seen to abort the
// process on new chips, and the worker's purpose is the Neural Engine.
const defaultUnits = "cpu_and_neural_engine"

// computeUnits are Core ML's compute units by their names on the wire.
var computeUnits = map[string]bridge.Units{
	defaultUnits:  bridge.CPUAndNeuralEngine,
	"cpu_only":    bridge.CPUOnly,
	"cpu_and_gpu": bridge.CPUAndGPU,
	"all":         bridge.AllUnits,
}

// hasEngine says whether the units take the Neural Engine in.
func hasEngine(u bridge.Units) bool { return u == bridge.CPUAndNeuralEngine || u == bridge.AllUnits }

// options is the table of runtime_config's members.
func options() []workerkit.Option {
	return []workerkit.Option{
		{
			Name: optComputeUnits, Kind: workerkit.KindEnum, Enum: []string{defaultUnits, "cpu_only", "cpu_and_gpu", "all"}, Default: defaultUnits,
			Help: "The devices that Core ML may use. cpu_only is what a latency is compared with, and what runs in a virtual machine.",
		},
		{
			Name: optFunctions, Kind: workerkit.KindStrings,
			Help: "The functions of a package of several to serve, each a bucket. The default is what the artifact's metadata lists, else the default function. Needs macOS 15.",
		},
		{
			Name: optMinShare, Kind: workerkit.KindFloat, Min: 0, Max: 1,
			Help: "Refuse the model where a smaller share of its operations is planned on the Neural Engine, or the share is not known.",
		},
		{
			Name: optRanges, Kind: workerkit.KindBool, Default: false,
			Help: "Take inputs whose shape is a range. They leave the Neural Engine at every shape but their default.",
		},
		{
			Name: optMaxTokens, Kind: workerkit.KindInt, Min: 1, Max: maxMaxTokens,
			Help: "The longest row that passes. Needed where a range of shapes has no end; else it may lower the longest bucket's limit.",
		},
		{
			Name: optVocabSize, Kind: workerkit.KindInt, Min: 1, Max: maxVocabSize,
			Help: "Ids below it pass. Needed where the artifact's metadata does not tell; else it may lower that limit.",
		},
		{
			Name: optPooling, Kind: workerkit.KindEnum,
			Enum: []string{string(workerkit.PoolingMean), string(workerkit.PoolingCLS), string(workerkit.PoolingLast)},
			Help: "The model's own pooling, where the artifact's metadata does not tell.",
		},
		{
			Name: optOutput, Kind: workerkit.KindString,
			Help: "The model's output to use, where it has several and the artifact's metadata names none.",
		},
		{
			Name: optPair, Kind: workerkit.KindStrings,
			Help: "How a reranker's pair is laid out, where the artifact's metadata does not tell: ids, $A and $B, each with :TYPE where the token type is not 0, such as 101 $A 102 $B:1 102:1.",
		},
	}
}
