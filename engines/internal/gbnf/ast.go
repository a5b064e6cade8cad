package gbnf

import (
	"fmt"
	"unicode/utf8"
)

// Position is a place in a grammar's text, both from 1; columns count code
// points.
type Position struct{ Line, Column int }

// Error is a fault of a grammar.
type Error struct {
	At  Position
	Msg string
}

func (e *Error) Error() string {
	return fmt.Sprintf("grammar, line %d, column %d: %s", e.At.Line, e.At.Column, e.Msg)
}

func positionOf(text string, offset int) Position {
	p := Position{1, 1}
	for _, r := range text[:offset] {
		if r == '\n' {
			p = Position{p.Line + 1, 1}
		} else {
			p.Column++
		}
	}
	return p
}

// interval is a closed range of code points.
type interval struct{ lo, hi rune }

// class is a set of code points: intervals in ascending order, none touching
// another.
type class []interval

func (c class) has(r rune) bool { return c.meets(r, r) }

// meets says whether the class has a code point of lo..hi.
func (c class) meets(lo, hi rune) bool {
	for _, i := range c {
		if i.lo <= hi && lo <= i.hi {
			return true
		}
	}
	return false
}

// Surrogates are no characters: no UTF-8 encodes them.
const (
	firstSurrogate = 0xD800
	lastSurrogate  = 0xDFFF
)

// anything is every character.
var anything = class{{0, firstSurrogate - 1}, {lastSurrogate + 1, utf8.MaxRune}}

// node is a part of a rule's right side.
type node interface{}

type (
	charNode   struct{ set class }
	seqNode    struct{ parts []node }
	altNode    struct{ choices []node }
	refNode    struct{ rule int }
	repeatNode struct {
		part     node
		min, max int // max -1 for no end
	}
)

// rule is a named rule.
type rule struct {
	name    string
	body    node // nil until it is defined
	defined int  // offset of the definition in the text
	used    int  // offset of the first use
}
