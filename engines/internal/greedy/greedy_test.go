package greedy

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/synapse-module/workers/protocol"
	"github.com/synapse-module/workers/workerkit"
)

// script is a model whose likeliest tokens are written down, and a vocabulary.
// Behind the likeliest, lower ids are likelier.
type script struct {
	likeliest []int32
	pieces    []string
	fed       []int32
	logits    []float32
}

const end = 0 // the script's token that ends a text

func (s *script) Feed(_ context.Context, tokens []int32) ([]float32, error) {
	s.fed = append(s.fed, tokens...)
	s.logits = make([]float32, len(s.pieces))
	for i := range s.logits {
		s.logits[i] = float32(-i)
	}
	if len(s.likeliest) > 0 {
		if t := s.likeliest[0]; t >= 0 {
			s.logits[t] = 10
		} else {
			s.logits = slices.Repeat([]float32{float32(math.NaN())}, len(s.pieces))
		}
		s.likeliest = s.likeliest[1:]
	}
	return s.logits, nil
}

func (s *script) Ends(token int32) bool    { return token == end }
func (s *script) Piece(token int32) []byte { return []byte(s.pieces[token]) }

var pieces = []string{"", "a", "b", "yes", "no", "\xc3", "\xa9", ""}

func TestGenerate(t *testing.T) {
	for _, c := range []struct {
		name      string
		likeliest []int32
		grammar   string
		max, room int
		want      workerkit.Generation
	}{
		{"to the end", []int32{1, 2, end}, "", 10, 100, workerkit.Generation{Text: "ab", NGen: 3, Finish: protocol.FinishStop}},
		{"as many as asked for", []int32{1, 2, 1}, "", 2, 100, workerkit.Generation{Text: "ab", NGen: 2, Finish: protocol.FinishLength}},
		{"as many as fit", []int32{1, 2, 1}, "", 10, 3, workerkit.Generation{Text: "ab", NGen: 2, Finish: protocol.FinishLength}},
		{"a character of two tokens", []int32{5, 6, end}, "", 10, 100, workerkit.Generation{Text: "é", NGen: 3, Finish: protocol.FinishStop}},
		{"half a character is held back", []int32{1, 5, end}, "", 10, 100, workerkit.Generation{Text: "a", NGen: 3, Finish: protocol.FinishStop}},
		{"a token without text", []int32{7, 1, end}, "", 10, 100, workerkit.Generation{Text: "a", NGen: 3, Finish: protocol.FinishStop}},
		{"a grammar that agrees", []int32{3}, `root ::= "yes" | "no"`, 10, 100, workerkit.Generation{Text: "yes", NGen: 1, Finish: protocol.FinishGrammar}},
		{"a grammar that does not", []int32{2, 2}, `root ::= "no"`, 10, 100, workerkit.Generation{Text: "no", NGen: 1, Finish: protocol.FinishGrammar}},
		{"a grammar that may end", []int32{1, end}, `root ::= "a" "b"?`, 10, 100, workerkit.Generation{Text: "a", NGen: 2, Finish: protocol.FinishStop}},
		{"a grammar that may not end yet", []int32{1, end}, `root ::= "a" "b"`, 10, 100, workerkit.Generation{Text: "ab", NGen: 2, Finish: protocol.FinishGrammar}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &script{likeliest: c.likeliest, pieces: pieces}
			got, err := Generate(t.Context(), s, s, []int32{1, 1}, c.room, workerkit.GenerateOptions{MaxTokens: c.max, Grammar: c.grammar})
			if err != nil {
				t.Fatal(err)
			}
			if got != c.want {
				t.Errorf("%+v, want %+v", got, c.want)
			}
			if !slices.Equal(s.fed[:2], []int32{1, 1}) {
				t.Errorf("fed %v, want the prompt first", s.fed)
			}
		})
	}
}

func TestGenerateRefuses(t *testing.T) {
	for _, c := range []struct {
		name      string
		likeliest []int32
		grammar   string
		code      protocol.Code
	}{
		{"no finite logit", []int32{-1}, "", protocol.CodeEngineFailed},
		{"bytes that are no UTF-8", []int32{6, 1, end}, "", protocol.CodeEngineFailed},
		{"no grammar", nil, "root ::= (", protocol.CodeRequestInvalid},
		{"a grammar that no token serves", nil, `root ::= "zebra"`, protocol.CodeRequestInvalid},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &script{likeliest: c.likeliest, pieces: pieces}
			_, err := Generate(t.Context(), s, s, []int32{1}, 100, workerkit.GenerateOptions{MaxTokens: 10, Grammar: c.grammar})
			if !errors.Is(err, &protocol.Error{Code: c.code}) {
				t.Errorf("got %v, want %s", err, c.code)
			}
		})
	}
}

func TestBytesAreHeldBackOnlyAtTheEnd(t *testing.T) {
	for text, want := range map[string]string{
		"":                  "",
		"a":                 "a",
		"aé":                "aé",
		"a\xc3":             "a",
		"a\xe3\x81":         "a",
		"a\xf0\x9f\x98":     "a",
		"a\xf0\x9f\x98\x80": "a😀",
		"\xe3":              "",
	} {
		if got, err := whole([]byte(text)); got != want || err != nil {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	for _, text := range []string{"\xff", "a\x80", "\xc3a", "a\xc3\xc3", "\xe3\x81\xe3\x81"} {
		if got, err := whole([]byte(text)); err == nil {
			t.Errorf("%q: %q and no error", text, got)
		}
	}
}
