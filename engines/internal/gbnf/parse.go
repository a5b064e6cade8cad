package gbnf

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// parser reads a grammar's text.
type parser struct {
	text  string
	at    int
	depth int
	rules []rule
	index map[string]int
}

// fault is how the parser's functions leave it; Parse turns it into an *Error.
type fault struct {
	at  int
	msg string
}

func (p *parser) fail(at int, format string, args ...any) {
	panic(fault{at, fmt.Sprintf(format, args...)})
}

func parseRules(text string) (rules []rule, err error) {
	p := &parser{text: text, index: map[string]int{}}
	defer func() {
		switch f := recover().(type) {
		case nil:
		case fault:
			err = &Error{positionOf(text, f.at), f.msg}
		default:
			panic(f)
		}
	}()
	if len(text) > MaxText {
		p.fail(0, "the text is %d bytes long, at most %d are taken", len(text), MaxText)
	}
	for at, r := range text {
		if r == utf8.RuneError && !strings.HasPrefix(text[at:], string(utf8.RuneError)) {
			p.fail(at, "the text is not UTF-8")
		}
	}
	for p.space(true); p.at < len(text); p.space(true) {
		p.rule()
	}
	for _, r := range p.rules {
		if r.body == nil {
			p.fail(r.used, "the rule %q is used here but defined nowhere", r.name)
		}
	}
	root, ok := p.index["root"]
	if !ok {
		p.fail(0, "there is no rule named root, which is where a text begins")
	}
	p.rules[0], p.rules[root] = p.rules[root], p.rules[0]
	swapRefs(p.rules, root)
	return p.rules, nil
}

// swapRefs makes the references follow the exchange of rule 0 and rule root.
func swapRefs(rules []rule, root int) {
	var walk func(n node) node
	walk = func(n node) node {
		switch n := n.(type) {
		case seqNode:
			for i := range n.parts {
				n.parts[i] = walk(n.parts[i])
			}
		case altNode:
			for i := range n.choices {
				n.choices[i] = walk(n.choices[i])
			}
		case repeatNode:
			n.part = walk(n.part)
			return n
		case refNode:
			switch n.rule {
			case 0:
				n.rule = root
			case root:
				n.rule = 0
			}
			return n
		}
		return n
	}
	for i := range rules {
		rules[i].body = walk(rules[i].body)
	}
}

// peek is the next byte, 0 at the end.
func (p *parser) peek() byte {
	if p.at < len(p.text) {
		return p.text[p.at]
	}
	return 0
}

// space skips blanks and comments, and line ends where the rule may go on.
func (p *parser) space(lines bool) {
	for p.at < len(p.text) {
		switch c := p.text[p.at]; {
		case c == ' ' || c == '\t' || (lines && (c == '\n' || c == '\r')):
			p.at++
		case c == '#':
			for p.at < len(p.text) && p.text[p.at] != '\n' && p.text[p.at] != '\r' {
				p.at++
			}
		default:
			return
		}
	}
}

func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-'
}

func (p *parser) name() string {
	start := p.at
	for isWord(p.peek()) {
		p.at++
	}
	return p.text[start:p.at]
}

// lookup is the number of the rule of a name, which may still be without a body.
func (p *parser) lookup(name string, at int) int {
	if i, ok := p.index[name]; ok {
		return i
	}
	if len(p.rules) == maxRules {
		p.fail(at, "there are more than %d rules", maxRules)
	}
	i := len(p.rules)
	p.index[name] = i
	p.rules = append(p.rules, rule{name: name, used: at})
	return i
}

// rule reads NAME ::= ALTERNATIVES up to the end of the line.
func (p *parser) rule() {
	start := p.at
	name := p.name()
	if name == "" {
		p.fail(p.at, "the name of a rule is due (letters, digits and -), not %s", p.found())
	}
	p.space(false)
	if !strings.HasPrefix(p.text[p.at:], "::=") {
		p.fail(p.at, `"::=" is due behind the name %s, not %s`, name, p.found())
	}
	p.at += len("::=")
	p.space(true)
	i := p.lookup(name, start)
	if p.rules[i].body != nil {
		p.fail(start, "the rule %q is defined a second time", name)
	}
	body := p.alternatives(false)
	p.rules[i].body, p.rules[i].defined = body, start
	if c := p.peek(); c != 0 && c != '\n' && c != '\r' {
		p.fail(p.at, "the end of the rule %s is due, not %s", name, p.found())
	}
}

// found describes what stands at the place of an error.
func (p *parser) found() string {
	if p.at >= len(p.text) {
		return "the end of the text"
	}
	r, _ := utf8.DecodeRuneInString(p.text[p.at:])
	return strconv.QuoteRune(r)
}

func (p *parser) alternatives(nested bool) node {
	choices := []node{p.sequence(nested)}
	for p.peek() == '|' {
		p.at++
		p.space(true)
		choices = append(choices, p.sequence(nested))
	}
	if len(choices) == 1 {
		return choices[0]
	}
	return altNode{choices}
}

func (p *parser) sequence(nested bool) node {
	var parts []node
	stacked := 0 // repetitions of the last part
	for {
		switch c := p.peek(); {
		case c == '"':
			parts = append(parts, p.literal())
		case c == '[':
			parts = append(parts, charNode{p.class()})
		case c == '.':
			p.at++
			parts = append(parts, charNode{anything})
		case c == '(':
			parts = append(parts, p.group())
		case isWord(c):
			at := p.at
			parts = append(parts, refNode{p.lookup(p.name(), at)})
		case c == '*' || c == '+' || c == '?' || c == '{':
			if len(parts) == 0 {
				p.fail(p.at, "%q repeats what stands before it, and nothing does", c)
			}
			if stacked++; p.depth+stacked > maxNesting {
				p.fail(p.at, "more than %d repetitions and groups are inside one another", maxNesting)
			}
			lo, hi := p.repetition(nested)
			parts[len(parts)-1] = repeatNode{parts[len(parts)-1], lo, hi}
			p.space(nested)
			continue
		case c == '<' || c == '!':
			p.fail(p.at, "references to tokens are not supported: write the text that the token stands for")
		default:
			return seqNode{parts}
		}
		stacked = 0
		p.space(nested)
	}
}

func (p *parser) group() node {
	open := p.at
	if p.depth++; p.depth > maxNesting {
		p.fail(open, "more than %d repetitions and groups are inside one another", maxNesting)
	}
	p.at++
	p.space(true)
	n := p.alternatives(true)
	if p.peek() != ')' {
		p.fail(p.at, "a ) is due for the ( in line %d, column %d, not %s", positionOf(p.text, open).Line, positionOf(p.text, open).Column, p.found())
	}
	p.at++
	p.depth--
	return n
}

// repetition reads *, +, ? or {m}, {m,}, {m,n}, {,n}.
func (p *parser) repetition(nested bool) (lo, hi int) {
	open := p.at
	c := p.text[p.at]
	p.at++
	switch c {
	case '*':
		return 0, -1
	case '+':
		return 1, -1
	case '?':
		return 0, 1
	}
	p.space(nested)
	lo, given := p.number()
	hi = lo
	p.space(nested)
	if p.peek() == ',' {
		p.at++
		p.space(nested)
		var ok bool
		if hi, ok = p.number(); !ok {
			hi = -1
		}
		given = given || ok
		p.space(nested)
	}
	if !given || p.peek() != '}' {
		p.fail(p.at, "a repetition is {m}, {m,}, {m,n} or {,n}, not %s", p.found())
	}
	p.at++
	if hi >= 0 && lo > hi {
		p.fail(open, "the repetition {%d,%d} ends before it begins", lo, hi)
	}
	return lo, hi
}

func (p *parser) number() (int, bool) {
	start := p.at
	for c := p.peek(); c >= '0' && c <= '9'; c = p.peek() {
		p.at++
	}
	if p.at == start {
		return 0, false
	}
	n, err := strconv.Atoi(p.text[start:p.at])
	if err != nil || n > maxRepeat {
		p.fail(start, "a repetition goes up to %d, not %.20s", maxRepeat, p.text[start:p.at])
	}
	return n, true
}

func (p *parser) literal() node {
	open := p.at
	p.at++
	var parts []node
	for p.peek() != '"' {
		if p.at >= len(p.text) {
			p.fail(open, `the text in quotes that begins here has no closing "`)
		}
		r := p.char()
		parts = append(parts, charNode{class{{r, r}}})
	}
	p.at++
	return seqNode{parts}
}
