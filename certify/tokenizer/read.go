package tokenizer

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

const (
	// maxFileBytes bounds a tokenizer.json: the largest of the models that this
	// package reads has under 10 MB.
	maxFileBytes = 64 << 20

	// maxSpecials bounds what each text is searched for.
	maxSpecials = 1000
)

// Tokenizer is a tokenizer.json that this package understands.
type Tokenizer struct {
	vocab    map[string]int32
	unknown  int32
	prefix   string // of a piece that goes on within a word
	longest  int    // words of more characters are unknown
	norm     normalizer
	specials []special
	template []step
}

// special is a token that stands for itself wherever a text holds it.
type special struct {
	content string
	id      int32
}

// step is a piece of the row: the text's ids, or those of a special token.
type step struct {
	text bool
	ids  []int32
}

// kind is a member that names what it is.
type kind struct {
	Type string `json:"type"`
}

type file struct {
	Version       string         `json:"version"`
	Truncation    jsontext.Value `json:"truncation"` // not followed: nothing is cut here
	Padding       jsontext.Value `json:"padding"`    // nor padded
	AddedTokens   []addedToken   `json:"added_tokens"`
	Normalizer    jsontext.Value `json:"normalizer"`
	PreTokenizer  jsontext.Value `json:"pre_tokenizer"`
	PostProcessor jsontext.Value `json:"post_processor"`
	Decoder       jsontext.Value `json:"decoder"` // of no use here
	Model         jsontext.Value `json:"model"`
}

type addedToken struct {
	ID         int32  `json:"id"`
	Content    string `json:"content"`
	Special    bool   `json:"special"`
	SingleWord bool   `json:"single_word"`
	LStrip     bool   `json:"lstrip"`
	RStrip     bool   `json:"rstrip"`
	Normalized bool   `json:"normalized"`
}

// ReadFile reads a tokenizer.json. Its errors name the file, and what of it is not
// understood.
func ReadFile(path string) (*Tokenizer, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	t, err := Read(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}

// Read reads a tokenizer.json.
func Read(r io.Reader) (*Tokenizer, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxFileBytes+1))
	if err != nil {
		return nil, err
	}
	if len(b) > maxFileBytes {
		return nil, fmt.Errorf("it has more than %d bytes", maxFileBytes)
	}
	var f file
	if err := json.Unmarshal(b, &f, json.RejectUnknownMembers(true)); err != nil {
		return nil, fmt.Errorf("no tokenizer.json that is understood here: %w", err)
	}
	t := new(Tokenizer)
	for _, part := range []struct {
		name string
		raw  jsontext.Value
		read func(jsontext.Value) error
	}{
		{"model", f.Model, t.readModel},
		{"normalizer", f.Normalizer, t.norm.read},
		{"pre_tokenizer", f.PreTokenizer, readPreTokenizer},
		{"post_processor", f.PostProcessor, t.readTemplate},
	} {
		if err := part.read(part.raw); err != nil {
			return nil, fmt.Errorf("%s: %w", part.name, err)
		}
	}
	return t, t.readSpecials(f.AddedTokens)
}

// only decodes a member that must be of the stated kind.
func only(raw jsontext.Value, want string, into any) error {
	var k kind
	if len(raw) == 0 || json.Unmarshal(raw, &k) != nil || k.Type != want {
		return fmt.Errorf("the kind is %q, only %s is understood", k.Type, want)
	}
	return json.Unmarshal(raw, into, json.RejectUnknownMembers(true))
}

func (t *Tokenizer) readModel(raw jsontext.Value) error {
	var m struct {
		kind
		Unknown string           `json:"unk_token"`
		Prefix  string           `json:"continuing_subword_prefix"`
		Longest int              `json:"max_input_chars_per_word"`
		Vocab   map[string]int32 `json:"vocab"`
	}
	if err := only(raw, "WordPiece", &m); err != nil {
		return err
	}
	unknown, ok := m.Vocab[m.Unknown]
	if !ok {
		return fmt.Errorf("the vocabulary lacks the unknown token %q", m.Unknown)
	}
	if m.Longest < 1 {
		return fmt.Errorf("max_input_chars_per_word is %d", m.Longest)
	}
	t.vocab, t.unknown, t.prefix, t.longest = m.Vocab, unknown, m.Prefix, m.Longest
	return nil
}

func readPreTokenizer(raw jsontext.Value) error {
	var k kind
	return only(raw, "BertPreTokenizer", &k)
}

func (t *Tokenizer) readTemplate(raw jsontext.Value) error {
	type part struct {
		ID     string `json:"id"`
		TypeID int    `json:"type_id"`
	}
	type piece struct {
		SpecialToken *part
		Sequence     *part
	}
	var m struct {
		kind
		Single   []piece        `json:"single"`
		Pair     jsontext.Value `json:"pair"` // a worker builds pairs
		Specials map[string]struct {
			ID     string   `json:"id"`
			IDs    []int32  `json:"ids"`
			Tokens []string `json:"tokens"`
		} `json:"special_tokens"`
	}
	if err := only(raw, "TemplateProcessing", &m); err != nil {
		return err
	}
	texts := 0
	for _, p := range m.Single {
		switch {
		case p.Sequence != nil && p.SpecialToken == nil:
			texts++
			t.template = append(t.template, step{text: true})
		case p.SpecialToken != nil && p.Sequence == nil && len(m.Specials[p.SpecialToken.ID].IDs) > 0:
			t.template = append(t.template, step{ids: m.Specials[p.SpecialToken.ID].IDs})
		default:
			return errors.New("a piece of its template is neither the text nor a special token with ids")
		}
	}
	if texts != 1 {
		return fmt.Errorf("its template holds the text %d times", texts)
	}
	return nil
}

func (t *Tokenizer) readSpecials(tokens []addedToken) error {
	if len(tokens) > maxSpecials {
		return fmt.Errorf("added_tokens: %d of them, at most %d are searched for", len(tokens), maxSpecials)
	}
	for _, a := range tokens {
		if a.Content == "" || a.SingleWord || a.LStrip || a.RStrip || a.Normalized {
			return fmt.Errorf("added_tokens: %q is matched in a way that is not understood here", a.Content)
		}
		t.specials = append(t.specials, special{a.Content, a.ID})
	}
	return nil
}
