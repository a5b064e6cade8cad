package gbnf

import "fmt"

// op is what an instruction of the compiled grammar does.
type op uint8

const (
	opChar   op = iota // read one character of the class, go on at the next instruction
	opJump             // go on at x
	opSplit            // go on at x and at y
	opCall             // go on at rule x, then at the next instruction
	opReturn           // the rule is read
)

type instruction struct {
	op   op
	x, y int32 // targets; opChar: x is the number of the class
}

// Grammar is a checked grammar. It can be finished from every point that it
// admits, and it is safe for concurrent use.
type Grammar struct {
	code    []instruction
	classes []class
	entry   []int32 // first instruction of each rule; rule 0 is root
}

// Parse reads and checks a grammar in GBNF. Its errors are of *Error.
func Parse(text string) (*Grammar, error) {
	rules, err := parseRules(text)
	if err != nil {
		return nil, err
	}
	c := &compiler{grammar: &Grammar{entry: make([]int32, len(rules))}}
	for i, r := range rules {
		c.grammar.entry[i] = int32(len(c.grammar.code))
		if !c.add(r.body) || !c.emit(instruction{op: opReturn}) {
			return nil, &Error{positionOf(text, r.defined), fmt.Sprintf("written out, the grammar has more than %d parts with the rule %s: repeat less", maxInstructions, r.name)}
		}
	}
	if i, msg := c.grammar.check(); i >= 0 {
		return nil, &Error{positionOf(text, rules[i].defined), fmt.Sprintf("the rule %s %s", rules[i].name, msg)}
	}
	return c.grammar, nil
}

// compiler writes instructions. Its methods return false once there are too
// many.
type compiler struct{ grammar *Grammar }

func (c *compiler) here() int32 { return int32(len(c.grammar.code)) }

func (c *compiler) emit(i instruction) bool {
	c.grammar.code = append(c.grammar.code, i)
	return len(c.grammar.code) <= maxInstructions
}

func (c *compiler) add(n node) bool {
	switch n := n.(type) {
	case charNode:
		c.grammar.classes = append(c.grammar.classes, n.set)
		return c.emit(instruction{op: opChar, x: int32(len(c.grammar.classes) - 1)})
	case refNode:
		return c.emit(instruction{op: opCall, x: int32(n.rule)})
	case seqNode:
		for _, part := range n.parts {
			if !c.add(part) {
				return false
			}
		}
		return true
	case altNode:
		return c.addChoices(n.choices)
	case repeatNode:
		return c.addRepeat(n)
	}
	panic(fmt.Sprintf("gbnf: a node of type %T", n))
}

func (c *compiler) addChoices(choices []node) bool {
	var ends []int32
	for _, choice := range choices[:len(choices)-1] {
		split := c.here()
		if !c.emit(instruction{op: opSplit, x: split + 1}) || !c.add(choice) {
			return false
		}
		ends = append(ends, c.here())
		if !c.emit(instruction{op: opJump}) {
			return false
		}
		c.grammar.code[split].y = c.here()
	}
	if !c.add(choices[len(choices)-1]) {
		return false
	}
	for _, end := range ends {
		c.grammar.code[end].x = c.here()
	}
	return true
}

func (c *compiler) addRepeat(n repeatNode) bool {
	for range n.min {
		if !c.add(n.part) {
			return false
		}
	}
	if n.max < 0 {
		split := c.here()
		if !c.emit(instruction{op: opSplit, x: split + 1}) || !c.add(n.part) || !c.emit(instruction{op: opJump, x: split}) {
			return false
		}
		c.grammar.code[split].y = c.here()
		return true
	}
	var splits []int32
	for range n.max - n.min {
		splits = append(splits, c.here())
		if !c.emit(instruction{op: opSplit, x: c.here() + 1}) || !c.add(n.part) {
			return false
		}
	}
	for _, split := range splits {
		c.grammar.code[split].y = c.here()
	}
	return true
}

// land is where jumps from pc lead to. They end, since every loop has a split.
func (g *Grammar) land(pc int32) int32 {
	for g.code[pc].op == opJump {
		pc = g.code[pc].x
	}
	return pc
}
