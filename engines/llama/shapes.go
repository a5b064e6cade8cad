package llama

import (
	"fmt"
	"slices"
	"strings"

	"github.com/synapse-module/workers/engines/llama/internal/gguf"
)

// What llama.cpp aborts for, in the graphs of the architectures that arch_test.go
// holds to a reference. Of others the library's own checks are relied on.

// ownWidth are the architectures whose heads may be together of another width than
// the model.
var ownWidth = map[string]bool{
	"gemma-embedding": true, "qwen3": true, "llama": true, "llama-embed": true,
	"qwen3moe": true, "mistral3": true, "gemma": true, "gemma2": true, "gemma3": true,
}

// partly are the decoders that turn all of each head by position, its first part, or
// none.
var partly = map[string]bool{
	"phi2": true, "phi3": true, "cohere2": true, "gptneox": true, "gemma": true, "gemma2": true, "gemma3": true,
	"gpt2": true,
}

// oneWidth are the decoders whose graphs take keys, values and what is turned by
// position to be of one width, as those of all encoders do.
var oneWidth = map[string]bool{
	"qwen2": true, "qwen3": true, "llama": true, "llama-embed": true,
	"qwen3moe": true, "mistral3": true, "olmo2": true, "granite": true, "smollm3": true, "falcon": true,
	"starcoder2": true,
}

const maxExperts = 1024 // LLAMA_MAX_EXPERTS

// ropeScalings are the names that the library knows.
var ropeScalings = []string{"", "none", "linear", "yarn", "longrope"}

// checkCounts holds counts to one another that the library asserts for every
// architecture.
func (p *plan) checkCounts(f *gguf.File) error {
	var counts [4]int64
	for i, name := range []string{"expert_count", "expert_group_count", "expert_group_used_count", "nextn_predict_layers"} {
		var err error
		if counts[i], err = f.Int(p.arch+"."+name, 0); err != nil {
			return err
		}
	}
	experts, groups, groupsUsed, nextn := counts[0], counts[1], counts[2], counts[3]
	used, err := p.largest(f, "expert_used_count", maxExperts, 0)
	if err != nil {
		return err
	}
	if experts == 1 && strings.HasPrefix(p.arch, "hunyuan") {
		experts, used = 0, 0 // the library takes one expert for none there
	}
	grouped := groups <= 1 || experts%groups == 0 && groupsUsed > 0 && groupsUsed < groups
	if experts < 0 || experts > maxExperts || used > experts || (used > 0) != (experts > 0) ||
		groups < 0 || groups >= max(experts, 1) || !grouped {
		return fmt.Errorf("%d experts, %d of them used, in %d groups, %d of them used, do not go together", experts, used, groups, groupsUsed)
	}
	if nextn < 0 || nextn > p.shape.layers {
		return fmt.Errorf("%s.nextn_predict_layers is %d, of %d layers", p.arch, nextn, p.shape.layers)
	}
	if key := p.arch + ".rope.scaling.type"; !slices.Contains(ropeScalings, f.Text(key)) || f.Has(key) && f.Text(key) == "" {
		return fmt.Errorf("%s is %.64q, which is none of llama.cpp's", key, f.Text(key))
	}
	return nil
}

// checkHeads holds what is said of the heads to one another and to the tensors.
func (p *plan) checkHeads(f *gguf.File, kvHeads, keys, values int64) error {
	if !p.encoder && !oneWidth[p.arch] && !partly[p.arch] {
		return nil
	}
	h := p.shape
	turned, err := p.largest(f, "rope.dimension_count", maxEmbedding, keys)
	if err != nil {
		return err
	}
	for name, want := range map[string]int64{
		"rope.dimension_count_swa": turned, "attention.key_length_swa": keys, "attention.value_length_swa": values,
		"embedding_length_out": h.embd,
	} {
		n, err := f.Int(p.arch+"."+name, want)
		if err != nil {
			return err
		}
		if n != want {
			return fmt.Errorf("%s.%s is %d, where the rest of the file has %d", p.arch, name, n, want)
		}
	}
	turns := turned == keys || partly[p.arch] && turned > 0 && turned < keys && turned%2 == 0
	if keys < 1 || keys != values || !turns || h.heads*keys != h.embd && !ownWidth[p.arch] {
		return fmt.Errorf("heads of %d values for keys, %d for values and %d that are turned do not go with %d heads and an embedding of %d", keys, values, turned, h.heads, h.embd)
	}
	for _, name := range []string{"attention.head_count", "attention.head_count_kv", "feed_forward_length"} {
		layers, err := f.Ints(p.arch+"."+name, maxLayers)
		if err != nil {
			return err
		}
		if len(layers) == 0 || slices.Min(layers) == slices.Max(layers) && layers[0] > 0 {
			continue
		}
		if !p.encoder {
			return nil // its layers differ, and the first does not speak for the others
		}
		return fmt.Errorf("%s.%s is %v, one number of 1 and more is taken for all layers", p.arch, name, clip(layers))
	}
	for name, width := range map[string]int64{"attn_q": h.heads * keys, "attn_k": kvHeads * keys, "attn_v": kvHeads * values} {
		t, ok := f.Tensor("blk.0." + name + ".weight")
		if ok && (len(t.Dims) != 2 || t.Dims[1] != width) {
			return fmt.Errorf("blk.0.%s.weight is %v, the heads are %d wide together", name, t.Dims, width)
		}
	}
	return nil
}

// windows is, by architecture, every how many layers one sees the whole row where
// the file does not say.
var windows = map[string]int64{"modern-bert": 3, "gemma-embedding": 6}

// checkWindows refuses models whose layers all see the whole row, or none: llama.cpp
// makes a mask for each kind and aborts for one that nothing uses.
func (p *plan) checkWindows(f *gguf.File) error {
	every := windows[p.arch]
	if window, err := f.Int(p.arch+".attention.sliding_window", 0); err != nil || every == 0 || window == 0 && p.arch == "modern-bert" {
		return err
	}
	key := p.arch + ".attention.sliding_window_pattern"
	whole, local := 0, 0
	count := func(sees bool) {
		if sees {
			whole++
		} else {
			local++
		}
	}
	if _, array := f.ElementKind(key); array {
		layers, err := f.Ints(key, maxLayers)
		if err != nil {
			return err
		}
		for _, l := range layers[:min(len(layers), int(p.shape.layers))] {
			count(l == 0)
		}
	} else {
		n, err := f.Int(key, every)
		if err != nil {
			return err
		}
		// ModernBERT's first layer of each group sees the whole row, Gemma's last.
		at := n - 1
		if p.arch == "modern-bert" {
			at = 0
		}
		for l := range p.shape.layers {
			count(n > 0 && l%n == at)
		}
	}
	if whole == 0 || local == 0 {
		return fmt.Errorf("%s leaves %d layers that see the whole row and %d that see a window of it; this model has both", key, whole, local)
	}
	return nil
}

// checkDense holds what is said of the dense layers behind the pooling to their
// tensors: llama.cpp aborts where the first does not take the pooled vector, or the
// last does not give one.
func (p *plan) checkDense(f *gguf.File) error {
	for layer, between := range map[string][2]string{"dense_2": {"dense_2_feat_in", "dense_2_feat_out"}, "dense_3": {"dense_3_feat_in", "dense_3_feat_out"}} {
		weight, _ := f.Tensor(layer + ".weight")
		for i, name := range between {
			n, err := p.positive(f, name, maxEmbedding)
			if err != nil {
				return err
			}
			outer := name == "dense_2_feat_in" || name == "dense_3_feat_out"
			if len(weight.Dims) != 2 || weight.Dims[i] != n || outer && n != p.shape.embd {
				return fmt.Errorf("%s.%s is %d, with an embedding of %d and %s.weight of %v", p.arch, name, n, p.shape.embd, layer, weight.Dims)
			}
		}
	}
	return nil
}
