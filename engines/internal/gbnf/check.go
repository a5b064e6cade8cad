package gbnf

// check looks for rules that would make a generation go wrong: one that has no
// end, so that the text never does, and one that calls itself before anything is
// read, so that reading never ends. It returns the rule and what is wrong with
// it, or -1.
func (g *Grammar) check() (int, string) {
	for i, ok := range g.reach(true) {
		if !ok {
			return i, "can never end: each of its alternatives needs it again"
		}
	}
	if i := g.leftRecursive(g.reach(false)); i >= 0 {
		return i, "calls itself before anything is read (left recursion): let it read something first"
	}
	return -1, ""
}

// reach finds the rules that can be walked from entry to return: with
// characters read on the way, or with none. A call can be walked over once its
// rule is found; those that stand before one wait for it, so every instruction
// is visited once.
func (g *Grammar) reach(chars bool) []bool {
	type place struct {
		pc   int32
		rule int
	}
	found := make([]bool, len(g.entry))
	waiting := make([][]place, len(g.entry))
	seen := make([]bool, len(g.code))
	var todo []place
	for i, entry := range g.entry {
		todo = append(todo, place{entry, i})
	}
	for len(todo) > 0 {
		p := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if seen[p.pc] {
			continue
		}
		seen[p.pc] = true
		switch i := g.code[p.pc]; i.op {
		case opJump:
			todo = append(todo, place{i.x, p.rule})
		case opSplit:
			todo = append(todo, place{i.x, p.rule}, place{i.y, p.rule})
		case opChar:
			if chars {
				todo = append(todo, place{p.pc + 1, p.rule})
			}
		case opCall:
			if behind := (place{p.pc + 1, p.rule}); found[i.x] {
				todo = append(todo, behind)
			} else {
				waiting[i.x] = append(waiting[i.x], behind)
			}
		case opReturn:
			found[p.rule] = true
			todo = append(todo, waiting[p.rule]...)
			waiting[p.rule] = nil
		}
	}
	return found
}

// leading lists the rules that a rule can begin with. empty says which rules can
// read nothing.
func (g *Grammar) leading(entry int32, empty, seen []bool) (rules []int32) {
	for todo := []int32{entry}; len(todo) > 0; {
		pc := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if seen[pc] {
			continue
		}
		seen[pc] = true
		switch i := g.code[pc]; i.op {
		case opJump:
			todo = append(todo, i.x)
		case opSplit:
			todo = append(todo, i.x, i.y)
		case opCall:
			rules = append(rules, i.x)
			if empty[i.x] {
				todo = append(todo, pc+1)
			}
		}
	}
	return rules
}

// leftRecursive returns a rule that can call itself with nothing read between,
// or -1.
func (g *Grammar) leftRecursive(empty []bool) int {
	leading := make([][]int32, len(g.entry))
	seen := make([]bool, len(g.code))
	for i, entry := range g.entry {
		leading[i] = g.leading(entry, empty, seen)
	}
	const (
		unseen = iota
		open
		done
	)
	state := make([]int, len(g.entry))
	type visit struct{ rule, next int }
	for start := range leading {
		if state[start] != unseen {
			continue
		}
		state[start] = open
		for path := []visit{{rule: start}}; len(path) > 0; {
			v := &path[len(path)-1]
			if v.next == len(leading[v.rule]) {
				state[v.rule] = done
				path = path[:len(path)-1]
				continue
			}
			next := int(leading[v.rule][v.next])
			v.next++
			switch state[next] {
			case open:
				return next
			case unseen:
				state[next] = open
				path = append(path, visit{rule: next})
			}
		}
	}
	return -1
}
