// Package detokenizer turns generated tokens into text, from the tokenizer.json
// of Hugging Face's tokenizers. It does not tokenize.
package detokenizer

import (
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Vocabulary is the text of each token.
type Vocabulary struct {
	pieces [][]byte // nil for a token that stands for no text
	ends   []bool
}

// file is what is read of tokenizer.json.
type file struct {
	Model struct {
		Vocab jsontext.Value `json:"vocab"`
	} `json:"model"`
	Added []struct {
		ID      int    `json:"id"`
		Content string `json:"content"`
		Special bool   `json:"special"`
	} `json:"added_tokens"`
	Decoder decoder `json:"decoder"`
}

// decoder is a decoder of any type.
type decoder struct {
	Type     string    `json:"type"`
	Decoders []decoder `json:"decoders"` // Sequence
	Pattern  struct {
		String string `json:"String"`
	} `json:"pattern"` // Replace
	Content     jsontext.Value `json:"content"`
	Replacement string         `json:"replacement"` // Metaspace
}

// endNames are special tokens that end a turn or a text in the chat formats in
// use, beside those that a model's configuration names: a model that was tuned
// for chat ends with them whatever its configuration says.
var endNames = map[string]bool{
	"<|endoftext|>": true, "<|im_end|>": true, "<|eot_id|>": true, "<|eom_id|>": true, "<|end|>": true,
	"<|end_of_text|>": true, "<end_of_turn>": true, "</s>": true, "<EOT>": true, "<|return|>": true,
}

// New reads a tokenizer of at most size tokens. ends are the ids that end a text
// by the model's configuration.
func New(tokenizer []byte, size int, ends []int) (*Vocabulary, error) {
	var f file
	if err := json.Unmarshal(tokenizer, &f); err != nil {
		return nil, fmt.Errorf("tokenizer.json: %w", err)
	}
	tokens, err := tokens(f.Model.Vocab)
	if err != nil {
		return nil, fmt.Errorf("tokenizer.json: model.vocab: %w", err)
	}
	var s speller
	if err := s.learn(f.Decoder); err != nil {
		return nil, fmt.Errorf("tokenizer.json: decoder: %w", err)
	}
	v := &Vocabulary{pieces: make([][]byte, size), ends: make([]bool, size)}
	for token, id := range tokens {
		if id >= 0 && id < size {
			v.pieces[id] = s.spell(token)
		}
	}
	for _, t := range f.Added {
		if t.ID < 0 || t.ID >= size {
			continue
		}
		v.pieces[t.ID] = []byte(t.Content)
		if t.Special {
			v.pieces[t.ID] = nil
			v.ends[t.ID] = endNames[t.Content]
		}
	}
	for _, id := range ends {
		if id >= 0 && id < size {
			v.ends[id] = true
		}
	}
	return v, nil
}

// tokens reads a vocabulary, which is written as {token: id} or as [[token,
// score], …] in the order of ids.
func tokens(b jsontext.Value) (map[string]int, error) {
	byName := map[string]int{}
	if b.Kind() != jsontext.KindBeginArray {
		err := json.Unmarshal(b, &byName)
		return byName, err
	}
	var scored [][]jsontext.Value
	if err := json.Unmarshal(b, &scored); err != nil {
		return nil, err
	}
	for id, entry := range scored {
		var token string
		if len(entry) == 0 {
			return nil, fmt.Errorf("entry %d is empty", id)
		}
		if err := json.Unmarshal(entry[0], &token); err != nil {
			return nil, err
		}
		byName[token] = id
	}
	return byName, nil
}

// Ends says that the token ends a text.
func (v *Vocabulary) Ends(token int32) bool { return v.ends[token] }

// Piece is the token's text, which may end within a character; nil for a token
// that stands for no text.
func (v *Vocabulary) Piece(token int32) []byte { return v.pieces[token] }

// speller knows how the decoder spells a token. What decoders do at the start of
// a text (stripping a blank) is left out: a generation goes on from a prompt.
type speller struct {
	byteLevel    bool // each rune stands for a byte
	byteFallback bool // <0x0A> stands for a byte
	replace      []string
}

func (s *speller) learn(d decoder) error {
	switch d.Type {
	case "Sequence":
		for _, inner := range d.Decoders {
			if err := s.learn(inner); err != nil {
				return err
			}
		}
	case "ByteLevel":
		s.byteLevel = true
	case "ByteFallback":
		s.byteFallback = true
	case "Replace":
		var content string
		if err := json.Unmarshal(d.Content, &content); err != nil || d.Pattern.String == "" {
			return fmt.Errorf("a Replace that does not replace one text by another is not supported")
		}
		s.replace = append(s.replace, d.Pattern.String, content)
	case "Metaspace":
		s.replace = append(s.replace, d.Replacement, " ")
	case "Fuse", "Strip":
	default:
		return fmt.Errorf("the type %.64q is not supported", d.Type)
	}
	return nil
}

func (s *speller) spell(token string) []byte {
	if s.byteFallback && len(token) == len("<0x00>") && strings.HasPrefix(token, "<0x") {
		if b, err := hex.DecodeString(token[3:5]); err == nil {
			return b
		}
	}
	if s.byteLevel {
		b := make([]byte, 0, len(token))
		for _, r := range token {
			v, ok := byteOf(r)
			if !ok { // a token added by hand, in plain text
				return []byte(token)
			}
			b = append(b, v)
		}
		return b
	}
	return []byte(strings.NewReplacer(s.replace...).Replace(token))
}

// byteOf inverts GPT-2's writing of bytes as printable runes: printable Latin-1
// stands for itself, the other bytes are counted up from 256.
//
// Source: Radford et al., "Language Models are Unsupervised Multitask Learners"
// (2019), bytes_to_unicode in the published encoder.
func byteOf(r rune) (byte, bool) {
	printable := func(r rune) bool { return r >= '!' && r <= '~' || r >= 0xA1 && r <= 0xAC || r >= 0xAE && r <= 0xFF }
	if printable(r) {
		return byte(r), true
	}
	n := rune(256)
	for b := rune(0); b < 256; b++ {
		if printable(b) {
			continue
		}
		if n == r {
			return byte(b), true
		}
		n++
	}
	return 0, false
}
