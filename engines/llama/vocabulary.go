package llama

import (
	"fmt"
	"unsafe"

	"github.com/synapse-module/workers/engines/llama/internal/capi"
)

// vocabulary knows the text of each token, as far as it was asked for it. It is
// a [greedy.Vocabulary].
type vocabulary struct {
	lib    *capi.Library
	handle capi.Vocab
	pieces [][]byte // nil where it was not asked for yet
	kinds  []tokenKind
}

type tokenKind uint8

const (
	kindUnknown tokenKind = iota // not asked yet
	kindText
	kindControl // stands for no text
	kindEnd     // ends a generation
)

func newVocabulary(lib *capi.Library, model capi.Model, size int) *vocabulary {
	return &vocabulary{lib: lib, handle: lib.ModelVocab(model), pieces: make([][]byte, size), kinds: make([]tokenKind, size)}
}

func (v *vocabulary) kind(token int32) tokenKind {
	if v.kinds[token] == kindUnknown {
		switch {
		case v.lib.VocabIsEOG(v.handle, token):
			v.kinds[token] = kindEnd
		case v.lib.VocabIsControl(v.handle, token):
			v.kinds[token] = kindControl
		default:
			v.kinds[token] = kindText
		}
	}
	return v.kinds[token]
}

// Ends implements [greedy.Vocabulary].
func (v *vocabulary) Ends(token int32) bool { return v.kind(token) == kindEnd }

// maxPiece is the first buffer for a token's text; the library says how much a
// longer one needs.
const maxPiece = 64

// Piece implements [greedy.Vocabulary].
func (v *vocabulary) Piece(token int32) []byte {
	if v.kind(token) == kindControl {
		return nil
	}
	if v.pieces[token] == nil {
		v.pieces[token] = v.spell(token, false)
	}
	return v.pieces[token]
}

// spell is a token's text; that of a special one only if special is set.
func (v *vocabulary) spell(token int32, special bool) []byte {
	buf := make([]byte, maxPiece)
	n := v.lib.TokenToPiece(v.handle, token, &buf[0], int32(len(buf)), 0, special)
	if n < 0 {
		buf = make([]byte, -n)
		n = v.lib.TokenToPiece(v.handle, token, &buf[0], int32(len(buf)), 0, special)
	}
	return buf[:max(n, 0)]
}

// tokens are those of a text, in which special tokens are spelled. The error is of
// a vocabulary that has none for a part of it.
func (v *vocabulary) tokens(text string) ([]int32, error) {
	ids := make([]int32, len(text)) // no token stands for less than a byte
	n := v.lib.Tokenize(v.handle, text, int32(len(text)), unsafe.SliceData(ids), int32(len(ids)), false, true)
	if n <= 0 {
		return nil, fmt.Errorf("llama.cpp makes no tokens of %.64q", text)
	}
	ids = ids[:n]
	var back []byte
	for _, id := range ids {
		back = append(back, v.spell(id, true)...)
	}
	if string(back) != text {
		return nil, fmt.Errorf("the vocabulary cannot spell %.64q", text)
	}
	return ids, nil
}
