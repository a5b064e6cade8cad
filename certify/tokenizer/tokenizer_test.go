package tokenizer_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/synapse-module/workers/certify/suites"
	"github.com/synapse-module/workers/certify/tokenizer"
	"github.com/synapse-module/workers/internal/assetstest"
)

// Every text of every embedding suite has the ids that the reference's own
// tokenizer gave it.
func TestIDsAreTheReferences(t *testing.T) {
	for name, asset := range map[string]string{
		"all-minilm-l6-v2":  "minilm-safetensors",
		"bge-small-en-v1.5": "bge-small-onnx-f32",
		"e5-small-v2":       "e5-small-onnx-int8",
	} {
		t.Run(name, func(t *testing.T) {
			tok, err := tokenizer.ReadFile(filepath.Join(filepath.Dir(assetstest.Path(t, asset)), "tokenizer.json"))
			if err != nil {
				t.Fatal(err)
			}
			s, err := suites.Load(name)
			if err != nil {
				t.Fatal(err)
			}
			texts := 0
			for _, in := range s.Inputs {
				if in.Text == nil {
					continue
				}
				texts++
				if got := tok.Encode(*in.Text); !slices.Equal(got, in.IDs) {
					t.Errorf("%s %.60q\ngot  %v\nwant %v", in.ID, *in.Text, got, in.IDs)
				}
			}
			if texts < 300 {
				t.Errorf("only %d texts", texts)
			}
		})
	}
}

// tiny is a tokenizer.json with the letters of its words.
const tiny = `{
  "version": "1.0", "truncation": {"max_length": 2}, "padding": null,
  "added_tokens": [{"id": 1, "content": "[SEP]", "special": true, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false}],
  "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null, "lowercase": true},
  "pre_tokenizer": {"type": "BertPreTokenizer"},
  "post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "[SEP]", "type_id": 0}}], "pair": [], "special_tokens": {"[CLS]": {"id": "[CLS]", "ids": [0], "tokens": ["[CLS]"]}, "[SEP]": {"id": "[SEP]", "ids": [1], "tokens": ["[SEP]"]}}},
  "decoder": null,
  "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 5, "vocab": {"[CLS]": 0, "[SEP]": 1, "[UNK]": 2, "ab": 3, "##c": 4, "a": 5, ".": 6, "水": 7}}
}`

func TestEncode(t *testing.T) {
	tok, err := tokenizer.Read(strings.NewReader(tiny))
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string][]int32{
		"":             {},
		"ab":           {3},
		"ABC":          {3, 4},
		"äbc.":         {3, 4, 6},
		"a\u0000b":     {3},
		"ax a":         {2, 5},
		"abcccc ab":    {2, 3},
		"ab[SEP]ab":    {3, 1, 3},
		"a水a":          {5, 7, 5},
		"a\u2028a\xff": {5, 5},
	} {
		if got := tok.Encode(text); !slices.Equal(got, slices.Concat([]int32{0}, want, []int32{1})) {
			t.Errorf("%q gives %v, want %v between the ends", text, got, want)
		}
	}
}

func TestWhatIsNotUnderstoodIsRefused(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{`"WordPiece"`, `"BPE"`, `model: the kind is "BPE", only WordPiece is understood`},
		{`"BertNormalizer"`, `"NFKC"`, "normalizer: the kind is"},
		{`"BertPreTokenizer"`, `"Whitespace"`, "pre_tokenizer: the kind is"},
		{`"TemplateProcessing"`, `"ByteLevel"`, "post_processor: the kind is"},
		{`"lstrip": false`, `"lstrip": true`, `added_tokens: "[SEP]" is matched in a way`},
		{`"lowercase": true`, `"lowercase": true, "uppercase": false`, "uppercase"},
		{`"[UNK]": 2, `, ``, "lacks the unknown token"},
		{`{"Sequence": {"id": "A", "type_id": 0}}, `, ``, "the text 0 times"},
		{`"version"`, `"versions"`, "versions"},
		{`"max_input_chars_per_word": 5`, `"max_input_chars_per_word": 0`, "max_input_chars_per_word is 0"},
		{tiny, `[]`, "no tokenizer.json"},
	} {
		if !strings.Contains(tiny, c.old) {
			t.Fatalf("the file does not hold %q", c.old)
		}
		if _, err := tokenizer.Read(strings.NewReader(strings.Replace(tiny, c.old, c.new, 1))); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
}

// FuzzRead: whatever is read encodes whatever text, without a panic.
func FuzzRead(f *testing.F) {
	f.Add([]byte(tiny), "ab [SEP] 水")
	f.Add([]byte(`{"model":{}}`), "")
	f.Fuzz(func(_ *testing.T, file []byte, text string) {
		tok, err := tokenizer.Read(bytes.NewReader(file))
		if err != nil {
			return
		}
		tok.Encode(text)
	})
}

func TestReadFileNamesTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokenizer.json")
	if err := os.WriteFile(path, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := tokenizer.ReadFile(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("%v does not name the file", err)
	}
}
