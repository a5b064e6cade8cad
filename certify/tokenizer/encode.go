package tokenizer

import (
	"strings"
	"unicode/utf8"
)

// Encode returns the ids of a text, with the special tokens that the model's
// tokenizer puts round it. Bytes that are no UTF-8 are read as damaged characters,
// which BERT drops.
func (t *Tokenizer) Encode(text string) []int32 {
	text = strings.ToValidUTF8(text, "\uFFFD")
	var row []int32
	for _, s := range t.template {
		if s.text {
			row = t.text(row, text)
		} else {
			row = append(row, s.ids...)
		}
	}
	return row
}

// text appends the ids of a text in which special tokens may stand by name.
func (t *Tokenizer) text(row []int32, text string) []int32 {
	for text != "" {
		at, found := t.firstSpecial(text)
		for _, word := range words(t.norm.apply(text[:at])) {
			row = t.word(row, word)
		}
		if found == nil {
			return row
		}
		row = append(row, found.id)
		text = text[at+len(found.content):]
	}
	return row
}

// firstSpecial finds the special token that stands first in a text, the longest
// where several begin there; the text's length and nil where there is none.
func (t *Tokenizer) firstSpecial(text string) (at int, found *special) {
	at = len(text)
	for i := range t.specials {
		s := &t.specials[i]
		switch n := strings.Index(text, s.content); {
		case n < 0 || n > at:
		case n < at || found == nil || len(s.content) > len(found.content):
			at, found = n, s
		}
	}
	return at, found
}

// word appends the pieces of a word: each time the longest that the vocabulary
// has. A word that cannot be put together is unknown as a whole.
func (t *Tokenizer) word(row []int32, word string) []int32 {
	if utf8.RuneCountInString(word) > t.longest {
		return append(row, t.unknown)
	}
	pieces := row
	for rest, prefix := word, ""; rest != ""; prefix = t.prefix {
		id, n := t.longestPiece(prefix, rest)
		if n == 0 {
			return append(row, t.unknown)
		}
		pieces, rest = append(pieces, id), rest[n:]
	}
	return pieces
}

// longestPiece returns the id and the length of the longest piece that a text
// begins with; 0 where it begins with none.
func (t *Tokenizer) longestPiece(prefix, text string) (id int32, n int) {
	for n = len(text); n > 0; n-- {
		if n < len(text) && !utf8.RuneStart(text[n]) {
			continue
		}
		if id, ok := t.vocab[prefix+text[:n]]; ok {
			return id, n
		}
	}
	return 0, 0
}
