package gbnf

import "unicode/utf8"

// partial is the beginning of a character's UTF-8. A token of a model may end in
// the middle of one.
type partial struct {
	value   rune // the bits so far; the character itself where none is missing
	missing int  // bytes that must still come
	length  int  // of the whole sequence
}

// add takes one more byte; false where no character goes on like that.
func (p partial) add(b byte) (partial, bool) {
	if p.missing == 0 {
		switch {
		case b < 0x80:
			return partial{value: rune(b)}, true
		case b >= 0xC2 && b <= 0xDF:
			return partial{rune(b & 0x1F), 1, 2}, true
		case b >= 0xE0 && b <= 0xEF:
			return partial{rune(b & 0x0F), 2, 3}, true
		case b >= 0xF0 && b <= 0xF4:
			return partial{rune(b & 0x07), 3, 4}, true
		}
		return p, false
	}
	if b&0xC0 != 0x80 {
		return p, false
	}
	p.value, p.missing = p.value<<6|rune(b&0x3F), p.missing-1
	lo, hi := p.bounds()
	return p, lo <= hi
}

// shortest is the first character that needs as many bytes.
var shortest = [...]rune{2: 0x80, 3: 0x800, 4: 0x10000}

// bounds are the characters that begin like p, without those that have a shorter
// form and those past the last. A range of surrogates alone comes out empty.
func (p partial) bounds() (lo, hi rune) {
	shift := 6 * p.missing
	lo, hi = p.value<<shift, p.value<<shift|(1<<shift-1)
	lo, hi = max(lo, shortest[p.length]), min(hi, utf8.MaxRune)
	if lo >= firstSurrogate && hi <= lastSurrogate {
		return 1, 0
	}
	return lo, hi
}

// firstByte is the first byte of a character's UTF-8.
func firstByte(r rune) byte {
	var b [utf8.UTFMax]byte
	utf8.EncodeRune(b[:], r)
	return b[0]
}
