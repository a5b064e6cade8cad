//go:build cgo

package onnx

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/synapse-module/workers/engines/onnx/internal/onnxfile"
	"github.com/synapse-module/workers/engines/onnx/internal/onnxtest"
	"github.com/synapse-module/workers/protocol"
	"github.com/synapse-module/workers/workerkit"
)

// piece is the text of a token of the test tokenizer.
func piece(id int32) string { return fmt.Sprintf("<%d>", id) }

// decoderFiles is a directory with a generating graph of the context length 64,
// whose texts end with the token eos.
func decoderFiles(d onnxtest.Decoder, eos int) files {
	var vocab []string
	for id := range d.Vocab {
		vocab = append(vocab, fmt.Sprintf("%q: %d", piece(int32(id)), id))
	}
	return files{
		"model.onnx":             string(d.Graph().Model()),
		"config.json":            fmt.Sprintf(`{"model_type": "gpt", "max_position_embeddings": 64, "vocab_size": %d, "eos_token_id": 0}`, d.Vocab),
		"generation_config.json": fmt.Sprintf(`{"eos_token_id": [%d]}`, eos),
		"tokenizer.json":         `{"model": {"vocab": {` + strings.Join(vocab, ", ") + `}}, "decoder": {"type": "ByteFallback"}}`,
	}
}

// continuation is the reference: text and tokens up to and with the end.
func continuation(d onnxtest.Decoder, prompt []int32, most, eos int) (text string, n int, finish protocol.FinishReason) {
	sequence := append([]int32(nil), prompt...)
	for n < most {
		next := d.Next(sequence)
		n++
		if int(next) == eos {
			return text, n, protocol.FinishStop
		}
		text += piece(next)
		sequence = append(sequence, next)
	}
	return text, n, protocol.FinishLength
}

func generate(t *testing.T, m workerkit.Model, prompt []int32, o workerkit.GenerateOptions) workerkit.Generation {
	t.Helper()
	g, err := m.(workerkit.Generator).Generate(t.Context(), prompt, o)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestGenerate(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*onnxtest.Decoder)
		config string
	}{
		{"plain", nil, ""},
		{"the prompt in pieces", nil, `{"batch_tokens": 3}`},
		{"without positions", func(d *onnxtest.Decoder) { d.Positions = false }, ""},
		{"a branch for the cache", func(d *onnxtest.Decoder) { d.UseCache = true }, ""},
		{"float16 cache", func(d *onnxtest.Decoder) { d.CacheType = onnxfile.Float16 }, ""},
		{"float16 logits", func(d *onnxtest.Decoder) { d.LogitsType = onnxfile.Float16 }, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := onnxtest.GPT()
			if c.change != nil {
				c.change(&d)
			}
			m := mustLoadDir(t, decoderFiles(d, 1), c.config)
			if got := m.Describe(); got.MaxTokens != 63 || got.VocabSize != d.Vocab || got.Arch != "gpt" || !got.Grammar || got.Dims != 0 {
				t.Errorf("described as %+v", got)
			}
			// One request after the other: nothing of the last may be left.
			for _, prompt := range [][]int32{{5}, {7, 3, 9, 11, 2, 30, 31}, {5}, {8, 8, 8, 8}} {
				text, n, finish := continuation(d, prompt, 12, 1)
				got := generate(t, m, prompt, workerkit.GenerateOptions{MaxTokens: 12})
				if got.Text != text || got.NGen != n || got.Finish != finish {
					t.Errorf("%v continues as %+v, want %d tokens %q, %s", prompt, got, n, text, finish)
				}
			}
		})
	}
}

func TestGenerateStops(t *testing.T) {
	d := onnxtest.GPT()
	prompt := []int32{7, 3}
	eos := int(d.Next(append(prompt, d.Next(prompt))))
	m := mustLoadDir(t, decoderFiles(d, eos), "")
	text, n, _ := continuation(d, prompt, 100, eos)
	if got := generate(t, m, prompt, workerkit.GenerateOptions{MaxTokens: 100}); got.Finish != protocol.FinishStop || got.NGen != n || got.Text != text {
		t.Errorf("%+v, want the end after %d tokens", got, n)
	}
	// Without an end, the context is one: 64 tokens of which 60 are the prompt's.
	m = mustLoadDir(t, decoderFiles(d, 99), "")
	if got := generate(t, m, make([]int32, 60), workerkit.GenerateOptions{MaxTokens: 100}); got.Finish != protocol.FinishLength || got.NGen != 5 {
		t.Errorf("%+v, want the context's end after 5 tokens", got)
	}
	got := generate(t, m, prompt, workerkit.GenerateOptions{MaxTokens: 100, Grammar: `root ::= "<1" [0-9] "><2" [0-9] ">"`})
	if len(got.Text) != len("<10><20>") || got.Text[:2] != "<1" || got.Text[4:6] != "<2" || got.Finish != protocol.FinishGrammar || got.NGen != 2 {
		t.Errorf("under a grammar: %+v", got)
	}
}

func TestGenerateGivenUp(t *testing.T) {
	d := onnxtest.GPT()
	m := mustLoadDir(t, decoderFiles(d, 1), "")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := m.(workerkit.Generator).Generate(ctx, []int32{5}, workerkit.GenerateOptions{MaxTokens: 5})
	wantCode(t, err, protocol.CodeEngineFailed, "given up")
	text, _, _ := continuation(d, []int32{5}, 5, 1)
	if got := generate(t, m, []int32{5}, workerkit.GenerateOptions{MaxTokens: 5}); got.Text != text {
		t.Errorf("after one that was given up: %+v, want %q", got, text)
	}
}

func TestDecoderRefuses(t *testing.T) {
	remove := func(name string) func(files) { return func(f files) { delete(f, name) } }
	oneWay := onnxtest.GPT().Graph()
	oneWay.Input("past_key_values.1.key", onnxfile.Float, -1, 1, -1, 8)
	openHeads := onnxtest.GPT().Graph()
	openHeads.Input("past_key_values.1.key", onnxfile.Float, -1, -1, -1, 8)
	openHeads.Output("present.1.key", onnxfile.Float, -1, -1, -1, 8)
	for _, c := range []struct {
		name   string
		change func(files)
		config string
		code   protocol.Code
		says   []string
	}{
		{"no tokenizer", remove("tokenizer.json"), "", protocol.CodeArtifactInvalid, []string{"tokenizer.json"}},
		{"no limit", remove("config.json"), "", protocol.CodeConfigInvalid, []string{"max_tokens"}},
		{"a cache that does not come back", func(f files) { f["model.onnx"] = string(oneWay.Model()) }, "", protocol.CodeArtifactInvalid, []string{"present.1.key"}},
		{"a cache of unknown size", func(f files) { f["model.onnx"] = string(openHeads.Model()) }, "", protocol.CodeArtifactInvalid, []string{"heads"}},
		{"another processor", func(files) {}, `{"providers": ["cuda"]}`, protocol.CodeConfigInvalid, []string{"cuda"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := decoderFiles(onnxtest.GPT(), 1)
			c.change(f)
			_, err := loadDir(t, f, c.config)
			wantCode(t, err, c.code, c.says...)
		})
	}
	_, err := loadBytes(t, onnxtest.GPT().Graph().Model(), `{"max_tokens": 64}`)
	wantCode(t, err, protocol.CodeArtifactInvalid, "tokenizer.json")
	good(t)
}
