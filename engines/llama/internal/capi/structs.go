package capi

import (
	"fmt"
	"strings"
)

// Handles of objects that llama.cpp owns. 0 is none.
type (
	// Model is a struct llama_model *.
	Model uintptr
	// Context is a struct llama_context *.
	Context uintptr
	// Vocab is a const struct llama_vocab *.
	Vocab uintptr
	// Memory is a llama_memory_t.
	Memory uintptr
	// Device is a ggml_backend_dev_t.
	Device uintptr
	// Reg is a ggml_backend_reg_t.
	Reg uintptr
)

// PoolingType is enum llama_pooling_type.
type PoolingType int32

// The pooling types of llama.h.
const (
	PoolingUnspecified PoolingType = -1
	PoolingNone        PoolingType = 0
	PoolingMean        PoolingType = 1
	PoolingCLS         PoolingType = 2
	PoolingLast        PoolingType = 3
	PoolingRank        PoolingType = 4
)

// AttentionWhole is the value of enum llama_attention_type by which every token
// sees every other.
const AttentionWhole = 1

// LoadMode is enum llama_load_mode.
type LoadMode int32

// The load modes of llama.h that the engine uses.
const (
	LoadRead      LoadMode = 0 // read into memory
	LoadMmap      LoadMode = 1
	LoadMlock     LoadMode = 2 // read into memory and lock it
	LoadMmapMlock LoadMode = 3
)

// Type is enum ggml_type, as far as a KV cache can be of it.
type Type int32

// The types of a KV cache.
const (
	TypeF32  Type = 0
	TypeF16  Type = 1
	TypeQ8_0 Type = 8
	TypeBF16 Type = 30
)

// Device types of enum ggml_backend_dev_type.
const (
	DeviceCPU int32 = iota
	DeviceGPU
	DeviceIGPU
	DeviceAccel
)

// ModelParams is struct llama_model_params.
type ModelParams struct {
	Devices                  *Device // NULL-terminated list; nil for all
	TensorBuftOverrides      uintptr
	NGPULayers               int32 // negative for all
	SplitMode                int32
	LoadMode                 LoadMode
	LazyMode                 int32
	MainGPU                  int32
	_                        [4]byte
	TensorSplit              *float32
	ProgressCallback         uintptr
	ProgressCallbackUserData uintptr
	KVOverrides              uintptr
	VocabOnly                bool
	CheckTensors             bool
	UseExtraBufts            bool
	NoHost                   bool
	NoAlloc                  bool
	LoadMTP                  bool
	_                        [2]byte
}

// ContextParams is struct llama_context_params.
type ContextParams struct {
	NCtx              uint32 // tokens in the KV cache; 0 for the model's
	NBatch            uint32 // most tokens in one call
	NUbatch           uint32 // most tokens computed at once
	NSeqMax           uint32 // most sequences in one call
	NRsSeq            uint32
	NOutputsMax       uint32
	NOutputsMaxPerSeq uint32
	NThreads          int32 // for one token at a time
	NThreadsBatch     int32 // for many
	CtxType           int32
	RopeScalingType   int32
	PoolingType       PoolingType
	AttentionType     int32
	FlashAttnType     int32 // -1 auto, 0 off, 1 on
	RopeFreqBase      float32
	RopeFreqScale     float32
	YarnExtFactor     float32
	YarnAttnFactor    float32
	YarnBetaFast      float32
	YarnBetaSlow      float32
	YarnOrigCtx       uint32
	DefragThold       float32
	CbEval            uintptr
	CbEvalUserData    uintptr
	TypeK             Type
	TypeV             Type
	AbortCallback     uintptr
	AbortCallbackData uintptr
	Embeddings        bool
	OffloadKQV        bool
	NoPerf            bool
	OpOffload         bool
	SwaFull           bool
	KVUnified         bool
	_                 [2]byte
	Samplers          uintptr
	NSamplers         uintptr
	CtxOther          Context
}

// Batch is struct llama_batch. The slices behind the pointers hold NTokens
// elements each and belong to the caller.
type Batch struct {
	NTokens int32
	_       [4]byte
	Token   *int32
	Embd    *float32
	Pos     *int32
	NSeqID  *int32
	SeqID   **int32
	Logits  *int8
}

// defaultModelParams and defaultContextParams are what the supported versions
// return from their *_default_params functions. A layout that were shifted by
// one field would show in one of them.
var (
	defaultModelParams = ModelParams{
		NGPULayers: -1, SplitMode: 1, LoadMode: -1, LazyMode: 1, UseExtraBufts: true,
	}
	defaultContextParams = ContextParams{
		NCtx: 512, NBatch: 2048, NUbatch: 512, NSeqMax: 1, NOutputsMaxPerSeq: 1,
		NThreads: 4, NThreadsBatch: 4,
		RopeScalingType: -1, PoolingType: PoolingUnspecified, AttentionType: -1, FlashAttnType: -1,
		YarnExtFactor: -1, YarnAttnFactor: -1, YarnBetaFast: -1, YarnBetaSlow: -1, DefragThold: -1,
		TypeK: TypeF16, TypeV: TypeF16,
		OffloadKQV: true, NoPerf: true, OpOffload: true, SwaFull: true,
	}
)

// checkLayout compares the library's default parameters with the expected ones.
func checkLayout(m ModelParams, c ContextParams) error {
	var wrong []string
	if m != defaultModelParams {
		wrong = append(wrong, fmt.Sprintf("llama_model_params reads as %+v", m))
	}
	if c != defaultContextParams {
		wrong = append(wrong, fmt.Sprintf("llama_context_params reads as %+v", c))
	}
	if wrong == nil {
		return nil
	}
	return fmt.Errorf("its structs are not laid out as this worker expects: %s", strings.Join(wrong, "; "))
}
