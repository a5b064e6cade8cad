package detokenizer

import (
	"strings"
	"testing"
)

func TestPieces(t *testing.T) {
	const added = `"added_tokens": [{"id": 0, "content": "<|im_end|>", "special": true}, {"id": 1, "content": "<pad>", "special": true}, {"id": 2, "content": "[plain]", "special": false}]`
	for _, c := range []struct {
		name, vocab, decoder string
		want                 []string // from id 3 on
	}{
		{"byte level", `{"Ġhello": 3, "Ċ": 4, "Ã": 5, "©": 6, "Ńx": 7}`, `{"type": "ByteLevel"}`, []string{" hello", "\n", "\xc3", "\xa9", "\xadx"}},
		{
			"SentencePiece", `{"▁hello": 3, "<0x0A>": 4, "x▁y": 5}`,
			`{"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]}`,
			[]string{" hello", "\n", "x y"},
		},
		{"Unigram", `[["a", 0], ["b", 0], ["c", 0], ["▁d", -1.5], ["e", -2]]`, `{"type": "Metaspace", "replacement": "▁", "add_prefix_space": true}`, []string{" d", "e"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			v, err := New([]byte(`{`+added+`, "model": {"type": "X", "vocab": `+c.vocab+`}, "decoder": `+c.decoder+`}`), 10, []int{9, 100})
			if err != nil {
				t.Fatal(err)
			}
			for i, want := range c.want {
				if got := string(v.Piece(int32(3 + i))); got != want {
					t.Errorf("token %d is %q, want %q", 3+i, got, want)
				}
			}
			if v.Piece(0) != nil || v.Piece(1) != nil || string(v.Piece(2)) != "[plain]" || v.Piece(9) != nil {
				t.Errorf("added tokens are %q, %q, %q", v.Piece(0), v.Piece(1), v.Piece(2))
			}
			for id, want := range []bool{true, false, false, false, false, false, false, false, false, true} {
				if v.Ends(int32(id)) != want {
					t.Errorf("token %d ends a text: %v, want %v", id, !want, want)
				}
			}
		})
	}
}

// Every byte has one rune, and the 256 are different.
func TestByteLevelIsABijection(t *testing.T) {
	seen := map[byte]rune{}
	for r := range rune(400) {
		if b, ok := byteOf(r); ok {
			if other, twice := seen[b]; twice {
				t.Fatalf("the byte %d is written %q and %q", b, other, r)
			}
			seen[b] = r
		}
	}
	if len(seen) != 256 {
		t.Fatalf("%d bytes can be written", len(seen))
	}
}

func TestNewRefuses(t *testing.T) {
	for says, text := range map[string]string{
		"tokenizer.json": `{`,
		"model.vocab":    `{"model": {"vocab": 5}}`,
		"entry 0":        `{"model": {"vocab": [[]]}}`,
		"CTC":            `{"model": {"vocab": {}}, "decoder": {"type": "CTC"}}`,
		"Replace":        `{"model": {"vocab": {}}, "decoder": {"type": "Replace", "pattern": {"Regex": "a"}, "content": "b"}}`,
	} {
		if _, err := New([]byte(text), 10, nil); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: got %v", text, err)
		}
	}
}
