package llama

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/synapse-module/workers/protocol"
	"github.com/synapse-module/workers/workerkit"
)

// A grammar here is a tree, printed as GBNF for the worker and walked by a matcher
// of its own, which knows nothing of GBNF's parser.

// expr is an expression of a grammar: one of the types below.
type expr interface {
	gbnf() string

	// ends are the places in text where a match from one of the places in from ends.
	ends(m *matching, from places) places
}

type (
	literal  string
	class    struct{ lo, hi rune }
	sequence []expr
	choice   []expr
	repeat   struct {
		of       expr
		min, max int // max < 0 for any number
	}
	reference int // a rule's number
)

func (e literal) gbnf() string  { return fmt.Sprintf("%q", string(e)) }
func (e class) gbnf() string    { return fmt.Sprintf("[%c-%c]", e.lo, e.hi) }
func (e sequence) gbnf() string { return "(" + join(e, " ") + ")" }
func (e choice) gbnf() string   { return "(" + join(e, " | ") + ")" }

func (e repeat) gbnf() string {
	if e.max < 0 {
		return fmt.Sprintf("%s{%d,}", e.of.gbnf(), e.min)
	}
	return fmt.Sprintf("%s{%d,%d}", e.of.gbnf(), e.min, e.max)
}
func (e reference) gbnf() string { return ruleName(int(e)) }

func join(all []expr, by string) string {
	texts := make([]string, len(all))
	for i, e := range all {
		texts[i] = e.gbnf()
	}
	return strings.Join(texts, by)
}

func ruleName(i int) string {
	if i == 0 {
		return "root"
	}
	return fmt.Sprintf("rule-%d", i)
}

type places map[int]bool

// matching is a grammar and the text that is held to it.
type matching struct {
	rules []expr
	text  []rune
	open  bool // an expression would go on behind the end of the text
}

// char moves on by one character that fits.
func (m *matching) char(from places, fits func(rune) bool) places {
	out := places{}
	for at := range from {
		if at == len(m.text) {
			m.open = true
		} else if fits(m.text[at]) {
			out[at+1] = true
		}
	}
	return out
}

func (e literal) ends(m *matching, from places) places {
	for _, c := range string(e) {
		from = m.char(from, func(r rune) bool { return r == c })
	}
	return from
}

func (e class) ends(m *matching, from places) places {
	return m.char(from, func(r rune) bool { return e.lo <= r && r <= e.hi })
}

func (e sequence) ends(m *matching, from places) places {
	for _, part := range e {
		from = part.ends(m, from)
	}
	return from
}

func (e choice) ends(m *matching, from places) places {
	out := places{}
	for _, part := range e {
		maps.Copy(out, part.ends(m, from))
	}
	return out
}

func (e repeat) ends(m *matching, from places) places {
	out := places{}
	for n := 0; len(from) > 0 && (e.max < 0 || n <= e.max); n++ {
		if n >= e.min {
			before := len(out)
			maps.Copy(out, from)
			if e.max < 0 && len(out) == before {
				break
			}
		}
		from = e.of.ends(m, from)
	}
	return out
}

func (e reference) ends(m *matching, from places) places {
	if len(from) == 0 {
		return from // where a rule that contains itself comes to an end
	}
	return m.rules[e].ends(m, from)
}

// match says whether text is of the grammar, and whether it is the beginning of one
// that is.
func match(rules []expr, text string) (whole, prefix bool) {
	m := &matching{rules: rules, text: []rune(text)}
	whole = rules[0].ends(m, places{0: true})[len(m.text)]
	return whole, whole || m.open
}

// draw makes an expression. It refers to later rules alone, so texts are finite.
func draw(r *rand.Rand, depth, rule, rules int) expr {
	pick := r.IntN(6)
	if depth == 0 {
		pick = r.IntN(2)
	}
	several := func() (all []expr) {
		for range 1 + r.IntN(3) {
			all = append(all, draw(r, depth-1, rule, rules))
		}
		return all
	}
	switch pick {
	case 0:
		words := []string{"a", "ab", "(", "}", `"`, `\`, " ", "\n", "é", "日本", "yes", "no", "𝄞"}
		return literal(words[r.IntN(len(words))])
	case 1:
		classes := []class{{'a', 'f'}, {'0', '9'}, {'あ', 'ん'}, {'!', '/'}}
		return classes[r.IntN(len(classes))]
	case 2:
		return sequence(several())
	case 3:
		return choice(several())
	case 4:
		least := r.IntN(3)
		return repeat{draw(r, depth-1, rule, rules), least, least + r.IntN(3)}
	default:
		if rule+1 < rules {
			return reference(rule + 1 + r.IntN(rules-rule-1))
		}
		return literal("z")
	}
}

// drawGrammar makes a grammar of three rules. An endless one admits texts without
// end: by a rule inside itself, or by a repetition.
func drawGrammar(r *rand.Rand, endless bool) (rules []expr) {
	const n = 3
	for i := range n {
		rules = append(rules, sequence{literal("<"), draw(r, 3, i, n), draw(r, 2, i, n)})
	}
	if endless {
		rules[0] = sequence{rules[0], repeat{class{'a', 'c'}, 1, -1}, reference(1)}
		rules[1] = choice{sequence{literal("["), reference(1), literal("]")}, rules[1]}
	}
	return rules
}

func grammarText(rules []expr) string {
	var b strings.Builder
	for i, rule := range rules {
		fmt.Fprintf(&b, "%s ::= %s\n", ruleName(i), rule.gbnf())
	}
	return b.String()
}

// tinySpeller is a generating model that knows every byte and some longer pieces,
// so that there is no grammar that it cannot obey.
func tinySpeller() *tinyModel {
	const bytes, first = 256, 4
	pieces := []string{"ab", "abc", "[[", "]]", "12", "yes", "no ", "é", "日本", "((", "<a", "z<", "\u2581a", "aaaa"}
	m := tinyDecoderOf(first+bytes+len(pieces), 256)
	tokens, kinds := []string{"<unk>", "<s>", "</s>", "[PAD]"}, []int32{2, 3, 3, 3}
	for b := range bytes {
		tokens, kinds = append(tokens, fmt.Sprintf("<0x%02X>", b)), append(kinds, 6)
	}
	for _, p := range pieces {
		tokens, kinds = append(tokens, p), append(kinds, 1)
	}
	m.set("tokenizer.ggml.tokens", tokens)
	m.set("tokenizer.ggml.token_type", kinds)
	return m
}

// TestRandomGrammarsAreObeyed: 200 of them. What a finite grammar begins it ends.
func TestRandomGrammarsAreObeyed(t *testing.T) {
	m, err := loadBytes(t, tinySpeller().file.Bytes(), "")
	if err != nil {
		t.Fatal(err)
	}
	const grammars, limit = 200, 200
	r := rand.New(rand.NewPCG(4, 2026))
	finishes := map[protocol.FinishReason]int{}
	for i := range grammars {
		endless := i%10 == 0
		rules := drawGrammar(r, endless)
		text := grammarText(rules)
		prompt := []int32{1, int32(4 + r.IntN(256))} // another state of the model each time
		g, err := m.(workerkit.Generator).Generate(t.Context(), prompt, workerkit.GenerateOptions{MaxTokens: limit, Grammar: text})
		if err != nil {
			t.Errorf("%v of\n%s", err, text)
			continue
		}
		finishes[g.Finish]++
		whole, prefix := match(rules, g.Text)
		switch {
		case g.Finish == protocol.FinishLength && (!endless || !prefix), g.Finish != protocol.FinishLength && !whole:
			t.Errorf("%q, %s, is not of\n%s", g.Text, g.Finish, text)
		case g.Finish == protocol.FinishGrammar:
			// Nothing may follow, and one token fewer is not yet all of it.
			less, err := m.(workerkit.Generator).Generate(t.Context(), prompt, workerkit.GenerateOptions{MaxTokens: max(g.NGen-1, 1), Grammar: text})
			if err != nil || g.NGen > 1 && less.Finish != protocol.FinishLength {
				t.Errorf("%q with a token fewer is %+v, %v, of\n%s", g.Text, less, err, text)
			}
		}
	}
	t.Logf("finished by %v", finishes)
	if finishes[protocol.FinishGrammar] < grammars/2 || finishes[protocol.FinishLength] == 0 {
		t.Errorf("%v: the grammars drawn do not test what they should", finishes)
	}
}

// TestTheMatcherTellsRightFromWrong: the one that outputs are held to.
func TestTheMatcherTellsRightFromWrong(t *testing.T) {
	rules := []expr{
		sequence{literal("a"), repeat{class{'0', '9'}, 2, 3}, reference(1)},
		choice{sequence{literal("["), reference(1), literal("]")}, literal("é")},
	}
	for text, want := range map[string][2]bool{
		"a12é": {true, true}, "a123[[é]]": {true, true}, "a1": {false, true}, "a123[[é": {false, true}, "": {false, true},
		"a1é": {false, false}, "a1234é": {false, false}, "a12[é]]": {false, false}, "b": {false, false},
	} {
		if whole, prefix := match(rules, text); [2]bool{whole, prefix} != want {
			t.Errorf("%q: %v %v, want %v", text, whole, prefix, want)
		}
	}
	if got, want := grammarText(rules), "root ::= (\"a\" [0-9]{2,3} rule-1)\nrule-1 ::= ((\"[\" rule-1 \"]\") | \"é\")\n"; got != want {
		t.Errorf("printed as %s, want %s", got, want)
	}
}
