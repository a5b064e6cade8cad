package llama

import (
	"math"

	"github.com/synapse-module/workers/engines/internal/gbnf"
	"github.com/synapse-module/workers/engines/llama/internal/capi"
)

var negativeInf = float32(math.Inf(-1))

// vocabulary knows the text of each token, as far as it was asked for it.
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

func (v *vocabulary) ends(token int32) bool { return v.kind(token) == kindEnd }

// maxPiece is the first buffer for a token's text; the library says how much a
// longer one needs.
const maxPiece = 64

// piece is a token's text, which may end within a character. A control token has
// none.
func (v *vocabulary) piece(token int32) []byte {
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

// constraint is where a generation stands in its grammar.
type constraint struct {
	matcher *gbnf.Matcher
	state   *gbnf.State
}

func newConstraint(g *gbnf.Grammar) (*constraint, error) {
	m, s, err := g.NewMatcher()
	return &constraint{m, s}, err
}

// admits returns the state behind a token; nil where it may not follow. A token
// that ends the generation may follow where the text may end; one that stands
// for no text may not, since it would change nothing for ever.
func (c *constraint) admits(token int32, v *vocabulary) (*gbnf.State, error) {
	switch v.kind(token) {
	case kindEnd:
		if c.state.Ends() {
			return c.state, nil
		}
		return nil, nil
	case kindControl:
		return nil, nil
	}
	piece := v.piece(token)
	if len(piece) == 0 {
		return nil, nil
	}
	return c.matcher.Advance(c.state, piece)
}

// choose moves on by the likeliest token that is admitted, best if it is, and
// returns it; -1 where there is none.
func (c *constraint) choose(best int32, logits []float32, v *vocabulary) (int32, error) {
	next, err := c.admits(best, v)
	if err != nil {
		return -1, err
	}
	if next == nil {
		best, next, err = c.search(logits, v)
		if err != nil || best < 0 {
			return -1, err
		}
	}
	c.state = next
	return best, nil
}

// search looks through the whole vocabulary. A token is only tried if it is
// likelier than the best so far, and its first byte may follow.
func (c *constraint) search(logits []float32, v *vocabulary) (int32, *gbnf.State, error) {
	first := c.matcher.FirstBytes(c.state)
	best, most := int32(-1), negativeInf
	var state *gbnf.State
	for i, logit := range logits {
		token := int32(i)
		if !(logit > most) {
			continue
		}
		if v.kind(token) == kindText {
			if piece := v.piece(token); len(piece) == 0 || !first[piece[0]] {
				continue
			}
		}
		next, err := c.admits(token, v)
		if err != nil {
			return -1, nil, err
		}
		if next != nil {
			best, most, state = token, logit, next
		}
	}
	return best, state, nil
}
