package llama

import (
	"math"
	"strings"
	"testing"

	"github.com/synapse-module/workers/engines/llama/internal/ggufwriter"
	"github.com/synapse-module/workers/protocol"
	"github.com/synapse-module/workers/workerkit"
)

func TestInfoNamesTheBuild(t *testing.T) {
	info := open(t).Info()
	if info.Name != "llama" || info.Version == "" {
		t.Errorf("%+v", info)
	}
	for _, flag := range []string{"llama.cpp=", "ggml=", "cpu_variant=", "backends=", "features="} {
		found := false
		for _, f := range info.BuildFlags {
			found = found || strings.HasPrefix(f, flag)
		}
		if !found {
			t.Errorf("no %s in %q", flag, info.BuildFlags)
		}
	}
	if all := strings.Join(info.BuildFlags, " "); !strings.Contains(all, "CPU") {
		t.Errorf("no backend CPU in %s", all)
	}
}

func TestTinyModelsCompute(t *testing.T) {
	m, err := loadBytes(t, tinyBERT().file.Bytes(), "")
	if err != nil {
		t.Fatal(err)
	}
	if d := m.Describe(); d.Dims != tinyEmbd || d.MaxTokens != tinyCtx || d.VocabSize != tinyVocab {
		t.Errorf("%+v", d)
	}
	embed(t, m, workerkit.PoolingMean, []int32{1, 5, 39, 2}, make([]int32, tinyCtx))
	g, err := loadBytes(t, tinyDecoder().file.Bytes(), "")
	if err != nil {
		t.Fatal(err)
	}
	if d := g.Describe(); d.Dims != 0 || d.MaxTokens != tinyCtx-1 || d.Poolings != nil || !d.Grammar {
		t.Errorf("%+v", d)
	}
}

// TestSpoiltModelsAreRefused: nearly all of these reach an assertion, a division
// by zero or memory that is not theirs, were they given to the library.
func TestSpoiltModelsAreRefused(t *testing.T) {
	bert := func(change func(*tinyModel)) []byte {
		m := tinyBERT()
		change(m)
		return m.file.Bytes()
	}
	set := func(key string, value any) []byte { return bert(func(m *tinyModel) { m.set(key, value) }) }
	unset := func(key string) []byte { return bert(func(m *tinyModel) { m.unset(key) }) }
	floats := func(n int) ggufwriter.Raw {
		b := ggufwriter.Buffer{}
		b.Put(uint32(9), uint32(6), uint64(n), make([]float32, n))
		return b.Bytes()
	}
	whole := tinyBERT().file.Bytes()
	for name, c := range map[string]struct {
		file []byte
		want string
	}{
		"empty":                         {nil, "no GGUF file"},
		"junk":                          {[]byte(strings.Repeat("junk", 100)), "no GGUF file"},
		"cut in half":                   {whole[:len(whole)/2], "no GGUF file"},
		"cut by a byte":                 {whole[:len(whole)-1], "cut off"},
		"no architecture":               {unset("general.architecture"), "general.architecture"},
		"unknown architecture":          {bert(func(m *tinyModel) { rename(m, "hal9000") }), "unknown model architecture"},
		"encoder with decoder":          {bert(func(m *tinyModel) { rename(m, "t5") }), "encoder with a decoder"},
		"an adapter":                    {set("general.type", "adapter"), "no model but"},
		"one part of two":               {set("split.count", uint32(2)), "2 parts"},
		"context of 0":                  {set("bert.context_length", uint32(0)), "context_length is 0"},
		"context of 2^32-1":             {set("bert.context_length", uint32(1<<32-1)), "context_length is"},
		"context over the table":        {set("bert.context_length", uint32(tinyCtx+1)), "table of positions"},
		"no context":                    {unset("bert.context_length"), "context_length is missing"},
		"context of text":               {set("bert.context_length", "512"), "an integer"},
		"0 layers":                      {set("bert.block_count", uint32(0)), "block_count is 0"},
		"600 layers":                    {set("bert.block_count", uint32(600)), "block_count is 600"},
		"a layer that is not there":     {set("bert.block_count", uint32(2)), "refused it"},
		"embedding of 0":                {set("bert.embedding_length", uint32(0)), "embedding_length is 0"},
		"another embedding":             {set("bert.embedding_length", uint32(64)), "wide together"},
		"0 heads":                       {set("bert.attention.head_count", uint32(0)), "head_count"},
		"no heads":                      {unset("bert.attention.head_count"), "head_count"},
		"heads that do not divide":      {set("bert.attention.head_count", uint32(3)), "do not divide"},
		"2^31 heads":                    {set("bert.attention.head_count", uint32(1<<31)), "head_count"},
		"negative heads by layer":       {set("bert.attention.head_count", []int32{-2}), "head_count"},
		"feed-forward of 2^32-1":        {set("bert.feed_forward_length", uint32(1<<32-1)), "feed_forward_length"},
		"negative epsilon":              {set("bert.attention.layer_norm_epsilon", float32(-1)), "layer_norm_epsilon is -1"},
		"epsilon that is no number":     {set("bert.attention.layer_norm_epsilon", float32(math.NaN())), "layer_norm_epsilon is NaN"},
		"unknown pooling":               {set("bert.pooling_type", uint32(9)), "pooling_type is 9"},
		"0 token types":                 {set("tokenizer.ggml.token_type_count", uint32(0)), "refused it"},
		"no vocabulary":                 {unset("tokenizer.ggml.tokens"), "no vocabulary"},
		"vocabulary of numbers":         {set("tokenizer.ggml.tokens", make([]int32, tinyVocab)), "tokenizer.ggml.tokens"},
		"a token twice":                 {bert(func(m *tinyModel) { m.spell(7, "\u25815") }), "tokens 5 and 7"},
		"fewer tokens than rows":        {set("tokenizer.ggml.tokens", []string{"a", "b"}), "40 rows"},
		"fewer scores than tokens":      {set("tokenizer.ggml.scores", floats(3)), "tokenizer.ggml.scores"},
		"fewer kinds than tokens":       {set("tokenizer.ggml.token_type", []int32{1}), "tokenizer.ggml.token_type"},
		"kinds that are no integers":    {set("tokenizer.ggml.token_type", floats(tinyVocab)), "tokenizer.ggml.token_type"},
		"no embedding table":            {bert(func(m *tinyModel) { m.drop("token_embd.weight") }), "token_embd.weight is missing"},
		"no positions":                  {bert(func(m *tinyModel) { m.drop("position_embd.weight") }), "refused it"},
		"a weight missing":              {bert(func(m *tinyModel) { m.drop("blk.0.ffn_up.weight") }), "refused it"},
		"a weight too many":             {bert(func(m *tinyModel) { m.tensor("blk.0.extra.weight", 32) }), "refused it"},
		"EmbeddingGemma without layers": {bert(func(m *tinyModel) { rename(m, "gemma-embedding") }), "dense layers"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := loadBytes(t, c.file, "")
			wantCode(t, err, protocol.CodeArtifactInvalid, c.want)
		})
	}
	if _, err := loadFile(t, t.TempDir(), ""); err == nil {
		t.Error("a directory is loaded")
	}
}

// rename gives the model another architecture, its keys included.
func rename(m *tinyModel, arch string) {
	for i, p := range m.file.Pairs {
		if rest, ok := strings.CutPrefix(p.Key, "bert."); ok {
			m.file.Pairs[i].Key = arch + "." + rest
		}
	}
	m.set("general.architecture", arch)
}

func TestRuntimeConfig(t *testing.T) {
	path := asset(t, "minilm-gguf-f32")
	wrong := map[string]string{
		`{"context_length": 0}`:                         "context_length",
		`{"context_length": 513}`:                       "1 to 512",
		`{"batch_tokens": 0}`:                           "batch_tokens",
		`{"threads": 0}`:                                "threads",
		`{"threads": 513}`:                              "threads",
		`{"flash_attention": true}`:                     "flash_attention",
		`{"kv_type": "q2"}`:                             "kv_type",
		`{"kv_type": "q8_0", "flash_attention": "off"}`: "needs flash_attention",
		`{"weights": "q8_0"}`:                           "weights",
		`{"gpu_layers": -1}`:                            "gpu_layers",
		`{"mmap": 1}`:                                   "mmap",
		`{"rpc_servers": ["127.0.0.1:1"]}`:              "rpc_servers",
		`{"contextlength": 3}`:                          "contextlength",
	}
	if len(open(t).(*engine).lib.LocalGPUs()) == 0 {
		wrong[`{"gpu_layers": 3}`], wrong[`{"main_gpu": 0}`] = "no GPU", "0 GPUs"
	}
	for config, want := range wrong {
		_, err := loadFile(t, path, config)
		t.Run(config, func(t *testing.T) { wantCode(t, err, protocol.CodeConfigInvalid, want) })
	}
	want := embed(t, loadAsset(t, "minilm-gguf-f32", ""), workerkit.PoolingMean, row(20, 1))
	for _, config := range []string{
		`{"mmap": false}`, `{"mmap": true, "mlock": true}`, `{"gpu_layers": 0}`, `{"threads": 1}`, `{"batch_tokens": 1}`,
		`{"flash_attention": "off"}`, `{"flash_attention": "on", "kv_type": "q8_0"}`, `{"context_length": 20}`,
	} {
		got := embed(t, loadAsset(t, "minilm-gguf-f32", config), workerkit.PoolingMean, row(20, 1))
		if c := cosine(got[0], want[0]); c < 0.999999 {
			t.Errorf("%s: cosine %v to the vector with defaults", config, c)
		}
	}
}

// TestACacheInBlocksNeedsHeadsOfWholeBlocks: llama.cpp finds out when it makes the
// context, and does not say why.
func TestACacheInBlocksNeedsHeadsOfWholeBlocks(t *testing.T) {
	for _, m := range []*tinyModel{tinyDecoder(), tinyBERT()} { // heads of 16; it asks encoders too
		_, err := loadBytes(t, m.file.Bytes(), `{"kv_type": "q8_0"}`)
		wantCode(t, err, protocol.CodeConfigInvalid, "kv_type", "16 wide", "f16")
	}
	if _, err := loadFile(t, asset(t, "smollm2-gguf"), `{"kv_type": "q8_0", "context_length": 64}`); err != nil {
		t.Errorf("heads of 64: %v", err)
	}
}

// TestMemoryIsRefusedBeforeItIsTaken: a header that asks for more than there is
// costs an error, not the process.
func TestMemoryIsRefusedBeforeItIsTaken(t *testing.T) {
	m := tinyDecoder()
	m.set("llama.context_length", uint32(1<<22))
	m.set("llama.block_count", uint32(maxLayers))
	_, err := loadBytes(t, m.file.Bytes(), `{"context_length": 4194304}`)
	wantCode(t, err, protocol.CodeOOM, "MiB")
}
