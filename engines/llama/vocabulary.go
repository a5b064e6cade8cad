package llama

import "github.com/synapse-module/workers/engines/llama/internal/capi"

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
		buf := make([]byte, maxPiece)
		n := v.lib.TokenToPiece(v.handle, token, &buf[0], int32(len(buf)), 0, false)
		if n < 0 {
			buf = make([]byte, -n)
			n = v.lib.TokenToPiece(v.handle, token, &buf[0], int32(len(buf)), 0, false)
		}
		v.pieces[token] = buf[:max(n, 0)]
	}
	return v.pieces[token]
}
