package gguf

// The bounds of a header. Each is far over what models have and far under what
// would cost memory or time; llama.cpp itself has none of them.
const (
	maxPairs     = 1 << 14 // metadata; models have about 50
	maxTensors   = 1 << 16 // the largest mixture-of-experts models have about 2,000
	maxName      = 63      // bytes of a tensor's name: GGML_MAX_NAME less its NUL
	maxKey       = 256     // bytes of a key; the format allows 65,535
	maxString    = 4 << 20 // bytes of a string; chat templates reach some 100 KiB
	maxElement   = 1 << 16 // bytes of a string in an array: one token of a vocabulary
	maxElements  = 1 << 25 // elements of an array: vocabularies and merges reach 2^20
	maxDims      = 4       // GGML_MAX_DIMS
	maxDim       = 1 << 40 // keeps the product of a row's bytes and the rest inside 63 bits
	maxAlign     = 1 << 16
	defaultAlign = 32
)
