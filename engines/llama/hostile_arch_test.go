package llama

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/synapse-module/workers/engines/llama/internal/gguf"
	"github.com/synapse-module/workers/engines/llama/internal/ggufwriter"
)

// hostileKeys are hyperparameters that llama.cpp reads from the files of several or
// all architectures.
var hostileKeys = []string{
	"rope.dimension_count", "rope.dimension_count_swa", "rope.dimension_sections", "rope.freq_base", "rope.freq_base_swa",
	"rope.scaling.type", "rope.scaling.factor", "rope.scaling.original_context_length", "rope.scaling.attn_factor",
	"attention.head_count", "attention.head_count_kv", "attention.key_length", "attention.value_length",
	"attention.key_length_swa", "attention.value_length_swa", "attention.sliding_window", "attention.sliding_window_pattern",
	"attention.causal", "attention.clamp_kqv", "attention.max_alibi_bias", "attention.scale",
	"block_count", "embedding_length", "embedding_length_out", "feed_forward_length", "vocab_size", "context_length",
	"expert_count", "expert_used_count", "expert_group_count", "expert_group_used_count", "moe_every_n_layers",
	"pooling_type", "classifier.pooling_type", "hidden_activation", "nextn_predict_layers",
	"dense_2_feat_in", "dense_2_feat_out", "dense_3_feat_in", "dense_3_feat_out", "logit_scale", "final_logit_softcapping",
}

// withPair is the GGUF file with one more pair before its own, of which the one of
// the same key, if any, loses its key.
func withPair(file []byte, key string, value any) []byte {
	const (
		alignment = 32 // of the tensors, so what is put in is a multiple of it
		pairs     = 16 // where the count of pairs stands, a uint64
		first     = 24 // where the first pair stands
	)
	file = bytes.Clone(file)
	own := ggufwriter.Buffer{}
	own.Text(key)
	if at := bytes.Index(file, own.Bytes()); at >= 0 {
		file[at+own.Len()-1] ^= 1
	}
	n := binary.LittleEndian.Uint64(file[pairs:])
	binary.LittleEndian.PutUint64(file[pairs:], n+2)
	pad := func(x string) (b ggufwriter.Buffer) {
		b.Put(key, value, fmt.Sprintf("pad.%d", n), x)
		return b
	}
	empty := pad("")
	full := pad(strings.Repeat("x", -empty.Len()&(alignment-1)))
	return slices.Concat(file[:first], full.Bytes(), file[first:])
}

// TestHostileArchitectures: one to three hyperparameters of each architecture are
// set to what they cannot be, and none reaches an assertion, a division by zero or a
// loop without an end.
func TestHostileArchitectures(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 26))
	const each = 60
	var n tally
	for _, name := range slices.Sorted(maps.Keys(tinyReferences(t))) {
		if differently[name] != nil || name == refusedGenerator {
			continue
		}
		file := tinyFile(t, name)
		header, err := gguf.Parse(bytes.NewReader(file), int64(len(file)))
		if err != nil {
			t.Fatal(err)
		}
		arch := header.Text("general.architecture")
		for range each {
			b, faults := file, ""
			for range 1 + r.IntN(2) {
				key, value := arch+"."+hostileKeys[r.IntN(len(hostileKeys))], hostileValue(r)
				b, faults = withPair(b, key, value), fmt.Sprintf("%s %s=%.20v", faults, key, value)
			}
			n.load(t, name+":"+faults, b)
		}
	}
	n.check(t, 1)
}
