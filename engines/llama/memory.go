package llama

import "github.com/synapse-module/workers/engines/llama/internal/gguf"

// The library allocates its buffers in one piece and aborts or throws where it
// cannot, and the kernel kills where pages are missing later. So what a model
// will take is estimated first. The estimates were held against what the library
// reports for models of both kinds; they are meant to be a little over.

const (
	float32Bytes = 4

	// activations is how many copies of a token's state the graph's buffer holds:
	// queries, keys, values, residuals and their norms in one layer.
	activations = 8

	// fixedBytes is what a context takes besides: graph, scheduler, threads.
	fixedBytes = 16 << 20
)

// loadBytes estimates what a model takes from LOAD on: its weights and its first
// context. Weights that are expanded and then read are there twice for a while.
func (p plan) loadBytes(r *gguf.Retyped, s settings) uint64 {
	weights := uint64(0)
	for _, t := range r.Tensors {
		weights += uint64(t.Bytes)
	}
	if r.Changed > 0 && !s.mapped() {
		weights *= 2
	}
	if p.role == roleGenerator {
		return weights + p.contextBytes(s, min(s.batchTokens, p.maxTokens), 1)
	}
	return weights + p.contextBytes(s, s.batchTokens, s.batchTokens)
}

// contextBytes estimates what a context takes whose batches have the given
// numbers of tokens and outputs.
func (p plan) contextBytes(s settings, tokens, outputs int) uint64 {
	n, h := uint64(tokens), p.shape
	need := uint64(fixedBytes)
	need += n * uint64(activations*h.embd+2*h.ff) * float32Bytes
	cells := n
	if p.role == roleGenerator {
		cells = uint64(p.maxTokens)
	}
	scores := uint64(2) // the mask, as f32 and as f16
	if s.flash == flashModes["off"] {
		scores += 2 * uint64(h.heads)
	}
	need += n * cells * scores * float32Bytes
	if !p.encoder {
		need += cells * uint64(h.layers*h.kvValues) * kvTypes[s.kvType].bytes / kvBlock
		need += uint64(outputs) * uint64(h.table) * 2 * float32Bytes // computed, and copied out
	}
	return need
}
