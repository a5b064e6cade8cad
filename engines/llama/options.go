package llama

import (
	"runtime"

	"github.com/synapse-module/workers/engines/llama/internal/capi"
	"github.com/synapse-module/workers/workerkit"
)

// The members of runtime_config.
const (
	optContextLength  = "context_length"
	optBatchTokens    = "batch_tokens"
	optThreads        = "threads"
	optFlashAttention = "flash_attention"
	optGELU           = "gelu"
	optWeights        = "weights"
	optKVType         = "kv_type"
	optGPULayers      = "gpu_layers"
	optMainGPU        = "main_gpu"
	optMmap           = "mmap"
	optMlock          = "mlock"
	optRPCServers     = "rpc_servers"
)

const (
	// defaultBatchTokens is how many tokens of several rows are computed at once.
	// Attention is one matrix over all tokens of a batch, under a mask, so larger
	// batches waste work: MiniLM on a CPU is fastest at 256 to 512 and 40 % slower
	// at 4096.
	defaultBatchTokens = 512

	// defaultDecoderContext is the longest row of a model with a KV cache, where
	// context_length does not say: the cache is taken for all of it at LOAD, and
	// what such models are trained with (32,768 and more) can be gigabytes.
	defaultDecoderContext = 4096
)

// Upper ends that only keep out slips of the pen.
const (
	maxThreads     = 512 // GGML_MAX_N_THREADS; more is an abort
	maxBatchTokens = 1 << 16
	maxContext     = 1 << 22
	maxGPULayers   = 1 << 12
	maxGPUs        = 16 // GGML_SCHED_MAX_BACKENDS
)

// kvBlock is how many values of the type q8_0 share a scale.
const kvBlock = 32

// kvTypes are the types of a KV cache by name, with the bytes of kvBlock values.
var kvTypes = map[string]struct {
	id    capi.Type
	bytes uint64
}{
	"f32": {capi.TypeF32, 128}, "f16": {capi.TypeF16, 64}, "bf16": {capi.TypeBF16, 64}, "q8_0": {capi.TypeQ8_0, 34},
}

var flashModes = map[string]int32{"auto": -1, "off": 0, "on": 1}

// The values of gelu.
const (
	geluAuto = "auto"
	geluErf  = "erf"
	geluTanh = "tanh"
)

// The values of weights.
const (
	weightsAuto = "auto"
	weightsFile = "file"
	weightsF16  = "f16"
	weightsF32  = "f32"
)

// options is the table of runtime_config's members.
func options() []workerkit.Option {
	return []workerkit.Option{
		{
			Name: optContextLength, Kind: workerkit.KindInt, Min: 1, Max: maxContext,
			Help: "The longest row, or prompt with its continuation, in tokens; at most what the model was trained with. " +
				"Default: that for encoders, 4096 at most for models with a KV cache, whose memory it decides.",
		},
		{
			Name: optBatchTokens, Kind: workerkit.KindInt, Min: 1, Max: maxBatchTokens, Default: defaultBatchTokens,
			Help: "Tokens that several rows may have together in one computation; a longer row is computed alone. Larger is slower on CPUs.",
		},
		{
			Name: optThreads, Kind: workerkit.KindInt, Min: 1, Max: maxThreads, Default: usableCPUs(),
			Help: "Threads that compute one call. The default is the CPUs that this process may use. Fewer than the free ones: threads that wait for a core hold all the others up.",
		},
		{
			Name: optFlashAttention, Kind: workerkit.KindEnum, Enum: []string{"auto", "on", "off"}, Default: "auto",
			Help: "Fused attention. Auto leaves it off for an encoder's batches of fewer than 64 tokens, where llama.cpp's fused kernel rounds more than the plain one. Off halves the speed of encoders on CPUs.",
		},
		{
			Name: optGELU, Kind: workerkit.KindEnum, Enum: []string{geluAuto, geluErf, geluTanh}, Default: geluAuto,
			Help: "How GELU is computed: erf is exact, tanh is the approximation that llama.cpp uses for every model, some percent faster. Auto is what the architecture was trained with: erf for BERT and its kin.",
		},
		{
			Name: optWeights, Kind: workerkit.KindEnum, Enum: []string{weightsAuto, weightsFile, weightsF16, weightsF32}, Default: weightsAuto,
			Help: "The type in which quantised weights are multiplied. With file, llama.cpp rounds the inputs of each product to 8 bits as well; f16 and f32 expand the weights at LOAD, and take the memory of such a model. Auto is f16 for encoders and file for all others.",
		},
		{
			Name: optKVType, Kind: workerkit.KindEnum, Enum: []string{"f16", "f32", "bf16", "q8_0"}, Default: "f16",
			Help: "Type of the KV cache. q8_0 halves its memory, costs accuracy and needs flash_attention.",
		},
		{
			Name: optGPULayers, Kind: workerkit.KindInt, Min: 0, Max: maxGPULayers,
			Help: "Layers that a GPU computes. Default: all, where the libraries have a GPU backend.",
		},
		{
			Name: optMainGPU, Kind: workerkit.KindInt, Min: 0, Max: maxGPUs - 1,
			Help: "The one GPU to use. Default: layers are spread over all.",
		},
		{
			Name: optMmap, Kind: workerkit.KindBool, Default: true,
			Help: "Map the weights instead of reading them: loads faster, and processes share the memory.",
		},
		{
			Name: optMlock, Kind: workerkit.KindBool, Default: false,
			Help: "Keep the weights in memory. Needs a limit on locked memory (ulimit -l) over the size of the weights, expanded where they are; LOAD is refused else.",
		},
		{
			Name: optRPCServers, Kind: workerkit.KindStrings,
			Help: "HOST:PORT of llama.cpp's RPC servers that share the model with this machine. They have no authentication: private networks only. Needs --sandbox off and libraries of make llama-rpc.",
		},
	}
}

// usableCPUs is what affinity and, on Linux, the cgroup's quota leave.
func usableCPUs() int { return min(runtime.GOMAXPROCS(0), maxThreads) }

// settings is a runtime_config as the engine uses it.
type settings struct {
	contextLength int // 0 where it is not given
	batchTokens   int
	threads       int32
	flash         int32
	gelu          string
	weights       string
	kvType        string
	gpuLayers     int32 // -1 for all
	mainGPU       int32 // -1 for all of them
	loadMode      capi.LoadMode
	rpcServers    []string
}

// mapped says whether the weights stay in the file's own memory.
func (s settings) mapped() bool {
	return s.loadMode == capi.LoadMmap || s.loadMode == capi.LoadMmapMlock
}

func newSettings(c workerkit.Config) (settings, error) {
	s := settings{
		contextLength: c.Int(optContextLength),
		batchTokens:   c.Int(optBatchTokens),
		threads:       int32(c.Int(optThreads)),
		flash:         flashModes[c.String(optFlashAttention)],
		gelu:          c.String(optGELU),
		weights:       c.String(optWeights),
		kvType:        c.String(optKVType),
		gpuLayers:     -1,
		mainGPU:       -1,
		rpcServers:    c.Strings(optRPCServers),
	}
	if c.Has(optGPULayers) {
		s.gpuLayers = int32(c.Int(optGPULayers))
	}
	if c.Has(optMainGPU) {
		s.mainGPU = int32(c.Int(optMainGPU))
	}
	switch mmap, mlock := c.Bool(optMmap), c.Bool(optMlock); {
	case mmap && mlock:
		s.loadMode = capi.LoadMmapMlock
	case mmap:
		s.loadMode = capi.LoadMmap
	case mlock:
		s.loadMode = capi.LoadMlock
	default:
		s.loadMode = capi.LoadRead
	}
	if s.kvType == "q8_0" && s.flash == flashModes["off"] {
		return s, workerkit.ConfigInvalid(`runtime_config.%s is "q8_0", which needs %s: allowed without it are f16, bf16 and f32`, optKVType, optFlashAttention)
	}
	return s, nil
}
