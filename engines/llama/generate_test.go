package llama

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/synapse-module/workers/protocol"
	"github.com/synapse-module/workers/workerkit"
)

// Ids of SmolLM2-135M-Instruct.
var (
	// "Once upon a time"
	onceUponATime = []int32{6403, 1980, 253, 655}

	// "<|im_start|>user\nGive me a JSON object with the name and age of a person.<|im_end|>\n<|im_start|>assistant\n"
	askForJSON = []int32{1, 4093, 198, 26533, 549, 253, 20110, 1569, 351, 260, 1462, 284, 1850, 282, 253, 1055, 30, 2, 198, 1, 520, 9531, 198}
)

func generate(t *testing.T, m workerkit.Model, prompt []int32, limit int, grammar string) workerkit.Generation {
	t.Helper()
	g, err := m.(workerkit.Generator).Generate(t.Context(), prompt, workerkit.GenerateOptions{MaxTokens: limit, Grammar: grammar})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestGreedyIsDeterministicAndCounts(t *testing.T) {
	m := loadAsset(t, "smollm2-gguf", "")
	want := generate(t, m, onceUponATime, 24, "")
	if want.NGen != 24 || want.Finish != protocol.FinishLength || want.Text == "" || !utf8.ValidString(want.Text) {
		t.Fatalf("%+v", want)
	}
	generate(t, m, askForJSON, 8, "") // what came before leaves nothing behind
	if got := generate(t, m, onceUponATime, 24, ""); got != want {
		t.Errorf("the second time %+v, the first %+v", got, want)
	}
	// A prompt in pieces is the prompt.
	if got := generate(t, loadAsset(t, "smollm2-gguf", `{"batch_tokens": 3}`), onceUponATime, 24, ""); got != want {
		t.Errorf("with small batches %+v, want %+v", got, want)
	}
	for n := 1; n < 6; n++ {
		if got := generate(t, m, onceUponATime, n, ""); got.NGen != n || !strings.HasPrefix(want.Text, got.Text) {
			t.Errorf("%d tokens: %+v", n, got)
		}
	}
}

// TestGreedyIsLlamaCPPsOwn holds the worker's loop to llama-server's, which shares
// llama.cpp with it and nothing else. testdata/greedy.json was recorded from the
// llama-server that tools/llama-libs builds (SERVER=1, llama.cpp 0.5.0-dev) with the
// asset smollm2-gguf, by POST /completion of {"prompt": [ids], "temperature": 0,
// "samplers": ["top_k"], "top_k": 1, "return_tokens": true, "n_probs": 2}. Each record
// ends before the likeliest token leads the next by less than 0.15, so that another
// processor's kernels, which round the inputs of 4-bit weights, change none.
func TestGreedyIsLlamaCPPsOwn(t *testing.T) {
	b, err := os.ReadFile("testdata/greedy.json")
	if err != nil {
		t.Fatal(err)
	}
	var records []struct {
		Prompt, Tokens []int32
		Text           string
	}
	if err := json.Unmarshal(b, &records); err != nil {
		t.Fatal(err)
	}
	m := loadAsset(t, "smollm2-gguf", "")
	for _, r := range records {
		if g := generate(t, m, r.Prompt, len(r.Tokens), ""); g.Text != r.Text || g.NGen != len(r.Tokens) {
			t.Errorf("%d tokens %q, llama-server's are %d: %q", g.NGen, g.Text, len(r.Tokens), r.Text)
		}
	}
	if len(records) == 0 {
		t.Error("nothing was recorded")
	}
}

func TestAnEndTokenStops(t *testing.T) {
	m := loadAsset(t, "smollm2-gguf", "")
	// "<|im_start|>user\nSay hi.<|im_end|>\n<|im_start|>assistant\n"
	g := generate(t, m, []int32{1, 4093, 198, 36218, 15876, 30, 2, 198, 1, 520, 9531, 198}, 200, "")
	if g.Finish != protocol.FinishStop || strings.Contains(g.Text, "<|im_end|>") || g.NGen < 2 {
		t.Errorf("%+v", g)
	}
}

func TestTheContextsEndStops(t *testing.T) {
	m := loadAsset(t, "smollm2-gguf", `{"context_length": 16}`)
	if d := m.Describe(); d.MaxTokens != 15 {
		t.Errorf("longest prompt %d, want 15: one token needs a place", d.MaxTokens)
	}
	for n, want := range map[int]int{4: 13, 15: 2} { // the last token needs no place of its own
		prompt := slices.Repeat(onceUponATime, 4)[:n]
		g := generate(t, m, prompt, 100, "")
		if g.NGen != want || g.Finish != protocol.FinishLength {
			t.Errorf("prompt of %d: %+v, want %d tokens", n, g, want)
		}
	}
}

func TestGrammarsAreObeyed(t *testing.T) {
	m := loadAsset(t, "smollm2-gguf", "")
	for _, grammar := range []string{`root ::= "yes" | "no"`, `root ::= "{\"name\":\"" [a-zA-Z]{1,10} "\"}"`, `root ::= [0-9]{3} "é" [ぁ-ゟ]{2}`} {
		g := generate(t, m, askForJSON, 60, grammar)
		if g.Finish != protocol.FinishGrammar {
			t.Errorf("%s: %+v", grammar, g)
		}
		// Nothing follows what is complete, and what came is all of it.
		if again := generate(t, m, askForJSON, g.NGen, grammar); again.Text != g.Text || again.Finish != protocol.FinishGrammar {
			t.Errorf("%s: limited to its own %d tokens it is %+v", grammar, g.NGen, again)
		}
		if less := generate(t, m, askForJSON, g.NGen-1, grammar); less.Finish != protocol.FinishLength {
			t.Errorf("%s: one token fewer is %+v", grammar, less)
		}
	}
	const person = `{"type": "object", "properties": {"name": {"type": "string", "maxLength": 12}, "age": {"type": "integer"}}, "required": ["name", "age"], "additionalProperties": false}`
	g := generate(t, m, askForJSON, 100, person)
	var p struct {
		Name string
		Age  *int
	}
	if err := json.Unmarshal([]byte(g.Text), &p); err != nil || p.Name == "" || p.Age == nil || g.Finish != protocol.FinishGrammar {
		t.Errorf("%+v: %v", g, err)
	}
	if g := generate(t, m, askForJSON, 5, `root ::= ""`); g.Text != "" || g.NGen != 0 || g.Finish != protocol.FinishGrammar {
		t.Errorf("the empty text: %+v", g)
	}
	// Where the text may end and may go on, the model decides.
	if g := generate(t, m, askForJSON, 30, `root ::= "Hi"+ [a-z ]*`); !strings.HasPrefix(g.Text, "Hi") {
		t.Errorf("%+v", g)
	}
}

func TestFaultyGrammarsAreRefused(t *testing.T) {
	m := loadAsset(t, "smollm2-gguf", "").(workerkit.Generator)
	for grammar, want := range map[string]string{
		`root ::= (`:                       "line 1, column 11",
		`start ::= "a"`:                    "no rule named root",
		"root ::= \"a\"\nroot ::= missing": "line 2",
		" ":                                "no rule named root",
		"root ::= root \"a\" | \"a\"":      "left recursion",
		"root ::= " + strings.Repeat("(", 100_000): "inside one another",
		`root ::= "a"{1000}{1000}{1000}`:           "repeat less",
		`{"type": "string", "pattern": "a"}`:       `"pattern"`,
		strings.Repeat("#", 300<<10):               "bytes long",
	} {
		_, err := m.Generate(t.Context(), onceUponATime, workerkit.GenerateOptions{MaxTokens: 4, Grammar: grammar})
		wantCode(t, err, protocol.CodeRequestInvalid, want)
	}
	if g := generate(t, m.(workerkit.Model), onceUponATime, 4, ""); g.NGen != 4 {
		t.Errorf("afterwards: %+v", g)
	}
}

// TestAGrammarThatNoTokenContinues: the tiny model's tokens are "▁0" to "▁39".
func TestAGrammarThatNoTokenContinues(t *testing.T) {
	m, err := loadBytes(t, tinyDecoder().file.Bytes(), "")
	if err != nil {
		t.Fatal(err)
	}
	g := m.(workerkit.Generator)
	_, err = g.Generate(t.Context(), []int32{1, 5}, workerkit.GenerateOptions{MaxTokens: 9, Grammar: `root ::= " 7" "x"`})
	wantCode(t, err, protocol.CodeRequestInvalid, "cannot be satisfied", `" 7"`)
	if got := generate(t, m, []int32{1, 5}, 9, `root ::= " 7" " 1" "2"`); got.Text != " 7 12" || got.NGen != 2 || got.Finish != protocol.FinishGrammar {
		t.Errorf("%+v", got)
	}
}

func TestTheEndOfTheModuleStopsAGeneration(t *testing.T) {
	m := loadAsset(t, "smollm2-gguf", `{"threads": 1}`)
	prompt := slices.Repeat(onceUponATime, 500) // half a minute
	stopsInTime(t, func(ctx context.Context) error {
		_, err := m.(workerkit.Generator).Generate(ctx, prompt, workerkit.GenerateOptions{MaxTokens: 10})
		return err
	})
	if g := generate(t, m, onceUponATime, 3, ""); g.NGen != 3 {
		t.Errorf("afterwards: %+v", g)
	}
}
