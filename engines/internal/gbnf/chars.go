package gbnf

import (
	"slices"
	"strconv"
	"unicode/utf8"
)

// class reads a set of characters in brackets.
func (p *parser) class() class {
	open := p.at
	p.at++
	negated := p.peek() == '^'
	if negated {
		p.at++
	}
	var set class
	for p.peek() != ']' {
		if p.at >= len(p.text) {
			p.fail(open, "the set of characters that begins here has no closing ]")
		}
		at := p.at
		lo := p.char()
		hi := lo
		if p.peek() == '-' && p.at+1 < len(p.text) && p.text[p.at+1] != ']' {
			p.at++
			hi = p.char()
		}
		if hi < lo {
			p.fail(at, "the range %q to %q ends before it begins", lo, hi)
		}
		set = append(set, interval{lo, hi})
	}
	p.at++
	set = normal(set)
	if negated {
		set = complement(set)
	}
	if len(set) == 0 {
		p.fail(open, "this set has no character: nothing could ever match it")
	}
	return set
}

// normal sorts the intervals and joins those that touch.
func normal(set class) class {
	slices.SortFunc(set, func(a, b interval) int { return int(a.lo) - int(b.lo) })
	var out class
	for _, i := range set {
		if n := len(out); n > 0 && i.lo <= out[n-1].hi+1 {
			out[n-1].hi = max(out[n-1].hi, i.hi)
		} else {
			out = append(out, i)
		}
	}
	return out
}

// complement is every character that is not in a normal set.
func complement(set class) class {
	var out class
	for _, all := range anything {
		next := all.lo
		for _, i := range set {
			if i.lo > next {
				if hi := min(i.lo-1, all.hi); hi >= next {
					out = append(out, interval{next, hi})
				}
			}
			next = max(next, i.hi+1)
		}
		if next <= all.hi {
			out = append(out, interval{next, all.hi})
		}
	}
	return out
}

// hexEscapes are the escapes of a code point by its number, and their digits.
var hexEscapes = map[byte]int{'x': 2, 'u': 4, 'U': 8}

// char reads one character of a literal or set, escaped or not.
func (p *parser) char() rune {
	at := p.at
	if p.peek() != '\\' {
		r, n := utf8.DecodeRuneInString(p.text[p.at:])
		p.at += n
		return r
	}
	p.at++
	c := p.peek()
	p.at++
	switch c {
	case 't':
		return '\t'
	case 'r':
		return '\r'
	case 'n':
		return '\n'
	case '\\', '"', '[', ']', '-':
		return rune(c)
	}
	digits, ok := hexEscapes[c]
	if !ok {
		p.fail(at, `an escape is one of \t \r \n \\ \" \[ \] \- \xHH \uHHHH \UHHHHHHHH`)
	}
	if p.at+digits > len(p.text) {
		p.fail(at, `\%c is due %d hexadecimal digits`, c, digits)
	}
	n, err := strconv.ParseUint(p.text[p.at:p.at+digits], 16, 32)
	if err != nil {
		p.fail(at, `\%c is due %d hexadecimal digits`, c, digits)
	}
	if n > utf8.MaxRune || n >= firstSurrogate && n <= lastSurrogate {
		p.fail(at, "U+%04X is no character", n)
	}
	p.at += digits
	return rune(n)
}
