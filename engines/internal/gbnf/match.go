package gbnf

import "errors"

// ErrAmbiguous says that a text can be read in more ways than are followed.
var ErrAmbiguous = errors.New("the grammar is too ambiguous: the text so far can be read in thousands of ways")

// frame is where reading goes on when a rule is read. Equal stacks are one
// pointer, see [Matcher.push].
type frame struct {
	back int32
	up   *frame
}

// thread is one way of reading the text so far: the next character is read by
// the opChar at pc.
type thread struct {
	pc    int32
	stack *frame
}

// State is a point in a text: what may follow it. States are never changed.
type State struct {
	threads []thread
	ends    bool // the text may end here
	partial partial
}

// Ends says whether the text may end here.
func (s *State) Ends() bool { return s.ends && s.partial.missing == 0 }

// Complete says that the text may end here and nothing may follow.
func (s *State) Complete() bool { return s.Ends() && len(s.threads) == 0 }

// Matcher walks texts through one grammar. It is for one goroutine.
type Matcher struct {
	grammar *Grammar
	stacks  map[frame]*frame
	seen    map[thread]bool
}

// NewMatcher makes a matcher and the state at the beginning of a text.
func (g *Grammar) NewMatcher() (*Matcher, *State, error) {
	m := &Matcher{grammar: g, stacks: map[frame]*frame{}, seen: map[thread]bool{}}
	s := &State{}
	err := m.follow(s, thread{pc: g.entry[0]})
	return m, s, err
}

// push returns the stack with one frame more. There is one pointer for each
// stack, so threads can be compared.
func (m *Matcher) push(f frame) *frame {
	if known, ok := m.stacks[f]; ok {
		return known
	}
	m.stacks[f] = &f
	return &f
}

// follow adds to s every thread that begins at t and stands before a character.
func (m *Matcher) follow(s *State, t thread) error {
	for todo := []thread{t}; len(todo) > 0; {
		t := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if m.seen[t] {
			continue
		}
		if m.seen[t] = true; len(m.seen) > maxThreads {
			return ErrAmbiguous
		}
		switch i := m.grammar.code[t.pc]; i.op {
		case opChar:
			s.threads = append(s.threads, t)
		case opJump:
			todo = append(todo, thread{i.x, t.stack})
		case opSplit:
			todo = append(todo, thread{i.y, t.stack}, thread{i.x, t.stack})
		case opCall:
			stack := t.stack
			// A call that ends its rule needs no frame: a list of any length, written
			// as a rule that calls itself last, keeps the stack flat.
			if back := m.grammar.land(t.pc + 1); m.grammar.code[back].op != opReturn {
				stack = m.push(frame{back, t.stack})
			}
			todo = append(todo, thread{m.grammar.entry[i.x], stack})
		case opReturn:
			if t.stack == nil {
				s.ends = true
			} else {
				todo = append(todo, thread{t.stack.back, t.stack.up})
			}
		}
	}
	return nil
}

// step is the state behind one more character; nil where it may not follow.
func (m *Matcher) step(s *State, r rune) (*State, error) {
	clear(m.seen)
	next := &State{}
	for _, t := range s.threads {
		if m.grammar.classes[m.grammar.code[t.pc].x].has(r) {
			if err := m.follow(next, thread{t.pc + 1, t.stack}); err != nil {
				return nil, err
			}
		}
	}
	if len(next.threads) == 0 && !next.ends {
		return nil, nil
	}
	return next, nil
}

// Advance is the state behind more bytes of the text; nil where they may not
// follow. The bytes may end within a character: what is there of it must then be
// the beginning of one that may follow.
func (m *Matcher) Advance(s *State, text []byte) (*State, error) {
	for _, b := range text {
		p, ok := s.partial.add(b)
		if !ok {
			return nil, nil
		}
		if p.missing > 0 {
			if !m.meets(s, p) {
				return nil, nil
			}
			s = &State{threads: s.threads, ends: s.ends, partial: p}
			continue
		}
		var err error
		if s, err = m.step(s, p.value); s == nil || err != nil {
			return nil, err
		}
	}
	return s, nil
}

// meets says whether a character that begins as p may follow.
func (m *Matcher) meets(s *State, p partial) bool {
	lo, hi := p.bounds()
	for _, t := range s.threads {
		if m.grammar.classes[m.grammar.code[t.pc].x].meets(lo, hi) {
			return true
		}
	}
	return false
}

// FirstBytes are the bytes that may follow. It is a quick look: a byte that is
// not in it may not follow, one that is may still fail.
func (m *Matcher) FirstBytes(s *State) (set [256]bool) {
	if s.partial.missing > 0 {
		for b := 0x80; b < 0xC0; b++ {
			set[b] = true
		}
		return set
	}
	for _, t := range s.threads {
		for _, i := range m.grammar.classes[m.grammar.code[t.pc].x] {
			for b := int(firstByte(i.lo)); b <= int(firstByte(i.hi)); b++ {
				set[b] = true
			}
		}
	}
	return set
}
