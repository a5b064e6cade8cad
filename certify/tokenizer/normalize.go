package tokenizer

import (
	"strings"
	"unicode"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/text/unicode/norm"
)

// normalizer is BERT's: it cleans a text, sets Chinese characters apart, drops
// accents and capital letters.
type normalizer struct {
	clean, chinese, accents, lower bool
}

func (n *normalizer) read(raw jsontext.Value) error {
	var m struct {
		kind
		Clean   bool  `json:"clean_text"`
		Chinese bool  `json:"handle_chinese_chars"`
		Accents *bool `json:"strip_accents"` // null: as lowercase
		Lower   bool  `json:"lowercase"`
	}
	if err := only(raw, "BertNormalizer", &m); err != nil {
		return err
	}
	*n = normalizer{clean: m.Clean, chinese: m.Chinese, accents: m.Lower, lower: m.Lower}
	if m.Accents != nil {
		n.accents = *m.Accents
	}
	return nil
}

func (n normalizer) apply(text string) string {
	if n.clean {
		text = strings.Map(cleaned, text)
	}
	if n.chinese {
		text = apart(text)
	}
	if n.accents {
		text = strings.Map(func(r rune) rune {
			if unicode.Is(unicode.Mn, r) {
				return -1
			}
			return r
		}, norm.NFD.String(text))
	}
	if n.lower {
		text = strings.Map(unicode.ToLower, text)
	}
	return text
}

// cleaned drops control characters and what stands for damaged ones, and makes
// each kind of space a blank.
func cleaned(r rune) rune {
	switch {
	case r == '\t' || r == '\n' || r == '\r':
		return ' '
	case r == unicode.ReplacementChar || unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co):
		return -1
	case unicode.IsSpace(r):
		return ' '
	}
	return r
}

// chinese are the blocks whose characters are words of their own.
var chinese = &unicode.RangeTable{
	R16: []unicode.Range16{{Lo: 0x3400, Hi: 0x4DBF, Stride: 1}, {Lo: 0x4E00, Hi: 0x9FFF, Stride: 1}, {Lo: 0xF900, Hi: 0xFAFF, Stride: 1}},
	R32: []unicode.Range32{
		{Lo: 0x20000, Hi: 0x2A6DF, Stride: 1},
		{Lo: 0x2A700, Hi: 0x2B73F, Stride: 1},
		{Lo: 0x2B740, Hi: 0x2B81F, Stride: 1},
		{Lo: 0x2B920, Hi: 0x2CEAF, Stride: 1},
		{Lo: 0x2F800, Hi: 0x2FA1F, Stride: 1},
	},
}

func apart(text string) string {
	var b strings.Builder
	for _, r := range text {
		if unicode.Is(chinese, r) {
			b.WriteByte(' ')
			b.WriteRune(r)
			b.WriteByte(' ')
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// words splits at spaces, which are dropped, and round each punctuation mark.
func words(text string) []string {
	var all []string
	for _, word := range strings.FieldsFunc(text, unicode.IsSpace) {
		from := 0
		for i, r := range word {
			if !punctuation(r) {
				continue
			}
			if i > from {
				all = append(all, word[from:i])
			}
			from = i + len(string(r))
			all = append(all, word[i:from])
		}
		if from < len(word) {
			all = append(all, word[from:])
		}
	}
	return all
}

// punctuation takes in the marks of ASCII that Unicode counts as symbols.
func punctuation(r rune) bool {
	ascii := r > ' ' && r < 0x7F && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	return ascii || unicode.IsPunct(r)
}
