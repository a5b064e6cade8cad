package llama

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/synapse-module/workers/engines/llama/internal/gguf"
	"github.com/synapse-module/workers/protocol"
	"github.com/synapse-module/workers/workerkit"
)

// continuation is what a reference's generator says after a prompt, the likeliest
// token each time.
type continuation struct {
	Prompt, Tokens []int32
	Margin         float64   // the least lead of a likeliest token's logit
	Logits         []float64 // of the last step
}

// refusedGenerator is computed by llama.cpp as another model than the reference's.
const refusedGenerator = "generate-gpt-oss"

// generators are the references that continue a text.
func generators(t *testing.T) map[string]tinyReference {
	t.Helper()
	references := tinyReferences(t)
	maps.DeleteFunc(references, func(name string, r tinyReference) bool {
		return r.Continuations == nil || name == refusedGenerator
	})
	return references
}

// roundedOff is how far a step's logits may be where attention rounds keys and values
// to f16, or where fused attention, of fewer than flashTile tokens, sums in f16. It is
// less than what moves a token: see MARGIN where they are recorded.
const roundedOff = 2e-2

// tableOfHalves are the activations that llama.cpp looks up in a table of halves.
var tableOfHalves = map[string]bool{"gelu_pytorch_tanh": true, "gelu_new": true}

const tableOff = 1.5e-3

// How each generator is computed, and how far its logits may be from the
// reference's, by their length together.
var generating = map[string]float64{
	exactly:                      exactlyOff,
	"":                           roundedOff,
	`{"flash_attention": "off"}`: roundedOff,
	`{"kv_type": "f32"}`:         roundedOff,
	`{"batch_tokens": 7}`:        roundedOff, // of a prompt at once, fewer than a window

	`{"batch_tokens": 7, "flash_attention": "off", "kv_type": "f32"}`: exactlyOff,
}

// routed are the generators that send each token to some of their experts. Where two
// are nearly as likely, rounding decides which, so they are held to f32 alone.
var routed = map[string]bool{"generate-mixtral": true, "generate-qwen3moe": true}

// withoutWindow is a file of which llama.cpp leaves the window out, as converters
// do, with the key by which the window is known here.
const withoutWindow = "generate-mistral-window"

func generatorFile(t *testing.T, name string) []byte {
	b := tinyFile(t, name)
	if name == withoutWindow {
		b = withPair(b, "llama.attention.sliding_window", uint32(16))
	}
	return b
}

// TestGenerators holds each decoder to its own reference implementation: every
// token that it continues a prompt with, and the logits of the last.
func TestGenerators(t *testing.T) {
	for name, reference := range generators(t) {
		t.Run(name, func(t *testing.T) {
			for config, most := range generating {
				if routed[name] && most != exactlyOff {
					continue
				}
				m, err := loadBytes(t, generatorFile(t, name), config)
				if err != nil {
					t.Fatal(err)
				}
				exact := reference.Activation == "gelu"
				if arch := m.Describe().Arch; exact != erfGELU[arch] {
					t.Errorf("the GELU by the error function: %v; it was trained with %s", erfGELU[arch], reference.Activation)
				}
				if tableOfHalves[reference.Activation] {
					most = max(most, tableOff)
				}
				off := reference.continues(t, m)
				t.Logf("%s %s: %.1e off", name, config, off)
				if off > most {
					t.Errorf("%s: logits are %.1e from the reference's, want %.1e", config, off, most)
				}
			}
		})
	}
}

// TestRefusedGenerator: it is refused, and as long as llama.cpp computes something
// else.
func TestRefusedGenerator(t *testing.T) {
	const arch = "gpt-oss"
	_, err := loadBytes(t, tinyFile(t, refusedGenerator), exactly)
	wantCode(t, err, protocol.CodeArtifactInvalid, arch, "YaRN", "use an ONNX export")

	why := refused[arch]
	delete(refused, arch)
	defer func() { refused[arch] = why }()
	m, err := loadBytes(t, tinyFile(t, refusedGenerator), exactly)
	if err != nil {
		t.Fatal(err)
	}
	c := tinyReferences(t)[refusedGenerator].Continuations[2]
	off, _ := apart(t, logits(t, m, slices.Concat(c.Prompt, c.Tokens[:len(c.Tokens)-1])), c.Logits)
	t.Logf("%s: %.1e off", arch, off)
	if off < 0.01 {
		t.Errorf("%s is %.1e from its reference now: it can be run", arch, off)
	}
}

// continues holds the tokens that have a place in the model's context to the
// reference's, and returns the largest difference of the logits.
func (r tinyReference) continues(t *testing.T, m workerkit.Model) (off float64) {
	t.Helper()
	for _, c := range r.Continuations {
		want := c.Tokens[:max(0, min(len(c.Tokens), m.Describe().MaxTokens+2-len(c.Prompt)))] // the last needs no place
		if len(want) < 2 {
			continue
		}
		g := generate(t, m, c.Prompt, len(c.Tokens), "")
		if got := numbers(t, g.Text); !slices.Equal(got, want) || g.Finish != protocol.FinishLength {
			t.Errorf("a prompt of %d tokens is continued by %v (%s), want %v", len(c.Prompt), got, g.Finish, want)
		}
		if len(want) < len(c.Tokens) {
			continue
		}
		o, _ := apart(t, logits(t, m, slices.Concat(c.Prompt, c.Tokens[:len(c.Tokens)-1])), c.Logits)
		off = max(off, o)
	}
	return off
}

// numbers are the tokens that spell a text: each is a space and its own number.
func numbers(t *testing.T, text string) (tokens []int32) {
	t.Helper()
	for _, word := range strings.Fields(text) {
		n, err := strconv.ParseInt(word, 10, 32)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		tokens = append(tokens, int32(n))
	}
	return tokens
}

// logits are those behind a row.
func logits(t *testing.T, m workerkit.Model, row []int32) (out []float32) {
	t.Helper()
	g := m.(*generator)
	err := g.run(t.Context(), func() error {
		g.engine.lib.MemoryClear(g.engine.lib.GetMemory(g.ctx), false)
		values, err := g.Feed(t.Context(), row)
		out = slices.Clone(values)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// endOfTurn are the texts of tokens that end a turn in the models of Llama 3, Qwen and
// SmolLM, Gemma, Phi and Granite, whose files name the end of a text alone.
var endOfTurn = []string{"<|eot_id|>", "<|im_end|>", "<end_of_turn>", "<|end|>", "<|end_of_text|>"}

// withToken is the file with another text for a token.
func withToken(t *testing.T, file []byte, id int32, text string) []byte {
	t.Helper()
	const key = "tokenizer.ggml.tokens"
	header, err := gguf.Parse(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	tokens, err := header.Strings(key, header.Count(key))
	if err != nil {
		t.Fatal(err)
	}
	tokens[id] = text
	return withPair(file, key, tokens)
}

// TestWhatEndsAGeneration: the token that the file says ends a text or a turn, one
// that is spelled as the end of a turn, the request's limit, and the context's end.
func TestWhatEndsAGeneration(t *testing.T) {
	for name, reference := range generators(t) {
		c := reference.Continuations[1]
		// A token that comes for the first time, after some others.
		at := slices.IndexFunc(c.Tokens[4:], func(id int32) bool { return slices.Index(c.Tokens, id) >= 4 }) + 4
		for _, key := range []string{"eos_token_id", "eot_token_id", "eom_token_id"} {
			b := withPair(generatorFile(t, name), "tokenizer.ggml."+key, uint32(c.Tokens[at]))
			m, err := loadBytes(t, b, "")
			if err != nil {
				t.Fatal(err)
			}
			g := generate(t, m, c.Prompt, len(c.Tokens), "")
			if got := numbers(t, g.Text); g.Finish != protocol.FinishStop || g.NGen != at+1 || !slices.Equal(got, c.Tokens[:at]) {
				t.Errorf("%s, %s %d: %v, %d tokens (%s); want %v", name, key, c.Tokens[at], got, g.NGen, g.Finish, c.Tokens[:at])
			}
		}
		for _, text := range endOfTurn {
			m, err := loadBytes(t, withToken(t, generatorFile(t, name), c.Tokens[at], text), "")
			if err != nil {
				t.Fatal(err)
			}
			if g := generate(t, m, c.Prompt, len(c.Tokens), ""); g.Finish != protocol.FinishStop || g.NGen != at+1 || !slices.Equal(numbers(t, g.Text), c.Tokens[:at]) {
				t.Errorf("%s, %s: %q, %d tokens (%s); want %v", name, text, g.Text, g.NGen, g.Finish, c.Tokens[:at])
			}
		}
		m, err := loadBytes(t, generatorFile(t, name), fmt.Sprintf(`{"context_length": %d}`, len(c.Prompt)+5))
		if err != nil {
			t.Fatal(err)
		}
		// The last token needs no place in the context.
		for limit, want := range map[int]int{1: 1, 6: 6, 7: 6, 100: 6} {
			g := generate(t, m, c.Prompt, limit, "")
			if got := numbers(t, g.Text); g.Finish != protocol.FinishLength || !slices.Equal(got, c.Tokens[:want]) {
				t.Errorf("%s, limited to %d: %v (%s)", name, limit, got, g.Finish)
			}
		}
	}
}

// TestRowsThatLlamaCPPComputesOtherwise are refused, and as long as they are.
func TestRowsThatLlamaCPPComputesOtherwise(t *testing.T) {
	references := generators(t)
	for name, reached := range map[string]struct {
		tokens int
		why    string
	}{
		withoutWindow:            {16, "without its sliding window"},
		"generate-phi3-window":   {32, "without its sliding window"},
		"generate-phi3-longrope": {256, "rope_factors_long"},
	} {
		m, err := loadBytes(t, generatorFile(t, name), "")
		if err != nil {
			t.Fatal(err)
		}
		if got := m.Describe().MaxTokens; got != reached.tokens-1 {
			t.Errorf("%s: prompts of %d tokens, want %d", name, got, reached.tokens-1)
		}
		if _, err := loadBytes(t, generatorFile(t, name), fmt.Sprintf(`{"context_length": %d}`, reached.tokens)); err != nil {
			t.Error(err)
		}
		_, err = loadBytes(t, generatorFile(t, name), fmt.Sprintf(`{"context_length": %d}`, reached.tokens+1))
		wantCode(t, err, protocol.CodeConfigInvalid, optContextLength, fmt.Sprint("1 to ", reached.tokens), reached.why)

		if name == "generate-phi3-longrope" {
			continue // nothing that a file could say makes llama.cpp go by the row
		}
		// Where the file says no window, llama.cpp is asked for a longer row.
		long := references[name].Continuations[2]
		b := withPair(tinyFile(t, name), m.Describe().Arch+".attention.sliding_window", uint32(0))
		if m, err = loadBytes(t, b, exactly); err != nil {
			t.Fatal(err)
		}
		if got := numbers(t, generate(t, m, long.Prompt, len(long.Tokens), "").Text); slices.Equal(got, long.Tokens) {
			t.Errorf("%s: rows over %d tokens are the reference's now: they can be computed", name, reached.tokens)
		}
	}
}
