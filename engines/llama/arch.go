package llama

// encoders are the architectures that llama.cpp runs as encoders: without a KV
// cache, every token sees every other.
var encoders = map[string]bool{
	"bert": true, "nomic-bert": true, "nomic-bert-moe": true, "jina-bert-v2": true, "jina-bert-v3": true,
	"modern-bert": true, "neo-bert": true, "eurobert": true, "gemma-embedding": true,
}

// erfGELU are the architectures whose models were trained with the exact GELU, by
// the error function. llama.cpp computes the tanh approximation for all: for the
// others it is right (Gemma, GPT-2, Phi, Falcon), or they have none (SwiGLU).
var erfGELU = map[string]bool{
	"bert": true, "nomic-bert-moe": true, "jina-bert-v2": true, "jina-bert-v3": true, "modern-bert": true,
}

// rankers are the architectures whose graphs end in the ranking head of the
// model that they were converted from: a dense layer and then one score.
var rankers = map[string]bool{"bert": true, "modern-bert": true, "neo-bert": true}

// refused are architectures that the library loads and this engine cannot drive:
// with a separate decoder, that generate by diffusion, or whose input is no text.
var refused = map[string]string{
	"t5":               "it is an encoder with a decoder",
	"t5encoder":        "it is the encoder of a translation model",
	"dream":            "it generates by diffusion",
	"llada":            "it generates by diffusion",
	"llada-moe":        "it generates by diffusion",
	"rnd1":             "it generates by diffusion",
	"clip":             "it takes images",
	"wavtokenizer-dec": "it gives sound",
	"pockettts":        "it gives sound",
	"eagle3":           "it only drafts for another model",
	"dflash":           "it only drafts for another model",
	"gemma4-assistant": "it only drafts for another model",
}

// denseAfterPooling are architectures whose reference has dense layers behind
// the pooling. Conversions that leave them out compute vectors that have nothing
// to do with the model's.
var denseAfterPooling = map[string][]string{
	"gemma-embedding": {"dense_2.weight", "dense_3.weight"},
}

// segmentKey is the metadata key of files of our converter that hold the word
// embeddings twice, for the two segments of a pair; see tools/gguf/convert.py.
const segmentKey = "synapse.segment_b_offset"
