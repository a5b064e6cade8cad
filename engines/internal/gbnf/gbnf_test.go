package gbnf

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

func mustParse(tb testing.TB, text string) *Grammar {
	tb.Helper()
	g, err := ParseAny(text)
	if err != nil {
		tb.Fatalf("%s\n%v", text, err)
	}
	return g
}

// verdict is "no" where text may not stand, "part" where it may go on, "whole"
// where it may end and go on, "done" where it must end.
func verdict(tb testing.TB, g *Grammar, text string) string {
	tb.Helper()
	m, s, err := g.NewMatcher()
	if err != nil {
		tb.Fatal(err)
	}
	// Byte by byte, so that every way to cut the text into tokens is a part of it.
	for i := range len(text) {
		if first := m.FirstBytes(s); s != nil && !first[text[i]] {
			if next, _ := m.Advance(s, []byte{text[i]}); next != nil {
				tb.Fatalf("%q: byte %d may follow, but is not among the first bytes", text, i)
			}
		}
		if s, err = m.Advance(s, []byte{text[i]}); err != nil {
			tb.Fatal(err)
		}
		if s == nil {
			return "no"
		}
	}
	switch {
	case s.Complete():
		return "done"
	case s.Ends():
		return "whole"
	}
	return "part"
}

func TestTextsOfGrammars(t *testing.T) {
	for _, c := range []struct{ grammar, text, want string }{
		{`root ::= "yes" | "no"`, "", "part"},
		{`root ::= "yes" | "no"`, "y", "part"},
		{`root ::= "yes" | "no"`, "yes", "done"},
		{`root ::= "yes" | "no"`, "yes!", "no"},
		{`root ::= "yes" | "no"`, "maybe", "no"},
		{`root ::= ""`, "", "done"},
		{`root ::= "a"?`, "", "whole"},
		{`root ::= "a"*`, "aaaa", "whole"},
		{`root ::= "a"+`, "", "part"},
		{`root ::= "a"+`, "aa", "whole"},
		{`root ::= "ab"{2}`, "abab", "done"},
		{`root ::= "ab"{2}`, "aba", "part"},
		{`root ::= "a"{2,3}`, "aa", "whole"},
		{`root ::= "a"{2,3}`, "aaa", "done"},
		{`root ::= "a"{2,3}`, "aaaa", "no"},
		{`root ::= "a"{,2} "b"`, "b", "done"},
		{`root ::= "a"{,2} "b"`, "aaab", "no"},
		{`root ::= "a"{2,}`, "aaaaaa", "whole"},
		{`root ::= "a"{2}{3}`, "aaaaaa", "done"},
		{`root ::= "a"{0}`, "", "done"},
		{`root ::= ("a" | "b")* "c"`, "abbac", "done"},
		{`root ::= ("a"?)* "b"`, "aab", "done"},
		{`root ::= (("a"*)*)*`, "aaa", "whole"},
		{`root ::= [a-c1] [^a-c]`, "1d", "done"},
		{`root ::= [a-c1] [^a-c]`, "dd", "no"},
		{`root ::= [a-c1] [^a-c]`, "ab", "no"},
		{`root ::= [-a]`, "-", "done"},
		{`root ::= [a-]`, "-", "done"},
		{`root ::= [\]\[\\]`, "]", "done"},
		{`root ::= .`, "\n", "done"},
		{`root ::= .`, "\U0010FFFF", "done"},
		{`root ::= "\x41\u00e9\U0001F600\t\n\r\\\""`, "Aé😀\t\n\r\\\"", "done"},
		{`root ::= [^\x00-\x7f]`, "é", "done"},
		{`root ::= [ぁ-ゟ]+`, "ひら", "whole"},
		{`root ::= [ぁ-ゟ]+`, "\xe3\x81", "part"},
		{`root ::= [ぁ-ゟ]+`, "\xe4", "no"},
		{`root ::= [é]`, "\xc3", "part"},
		{`root ::= [é]`, "\xc3\xa8", "no"},
		{`root ::= .`, "\x80", "no"},
		{`root ::= .`, "\xc0", "no"},
		{`root ::= .`, "\xe0\x80", "no"},
		{`root ::= .`, "\xed\xa0", "no"},
		{`root ::= .`, "\xf4\x90", "no"},
		{`root ::= .`, "\xff", "no"},
		{"root ::= a-1 b\na-1 ::= \"x\" # a comment\n\n# another\nb ::= \"y\" |\n  \"z\"\n", "xz", "done"},
		{"root ::= (\n  \"a\"  # inside\n  \"b\"\n)\r\n", "ab", "done"},
		{`root ::= "(" root ")" | ""`, "((()))", "done"},
		{`root ::= "(" root ")" | ""`, "((())", "part"},
		{`root ::= "(" root ")" | ""`, "())", "no"},
		{"root ::= list\nlist ::= \"x\" list | \"x\"", strings.Repeat("x", 5000), "whole"},
		{"root ::= s\ns ::= \"a\" s s | \"b\"", "aabbb", "done"},
	} {
		if got := verdict(t, mustParse(t, c.grammar), c.text); got != c.want {
			t.Errorf("%s with %q: %s, want %s", c.grammar, c.text, got, c.want)
		}
	}
}

func TestFaultsAreNamedWithTheirPlace(t *testing.T) {
	for _, c := range []struct {
		grammar      string
		line, column int
		want         string
	}{
		{``, 1, 1, "no rule named root"},
		{" \n # nothing\n", 1, 1, "no rule named root"},
		{`start ::= "a"`, 1, 1, "no rule named root"},
		{`root ::= (`, 1, 11, "a ) is due"},
		{`root ::= ("a"`, 1, 14, "a ) is due"},
		{`root ::= "a")`, 1, 13, "the end of the rule root is due"},
		{`root ::= "a`, 1, 10, `no closing "`},
		{`root ::= [a`, 1, 10, "no closing ]"},
		{`root ::= []`, 1, 10, "no character"},
		{`root ::= [^\x00-\U0010FFFF]`, 1, 10, "no character"},
		{`root ::= [z-a]`, 1, 11, "ends before it begins"},
		{`root ::= "\q"`, 1, 11, "an escape is one of"},
		{`root ::= "\`, 1, 11, "an escape is one of"},
		{`root ::= "\u12"`, 1, 11, "hexadecimal"},
		{`root ::= "\ud800"`, 1, 11, "no character"},
		{`root ::= "\UFFFFFFFF"`, 1, 11, "no character"},
		{`root = "a"`, 1, 6, `"::=" is due`},
		{`::= "a"`, 1, 1, "the name of a rule"},
		{`root ::= *`, 1, 10, "repeats what stands before it"},
		{`root ::= "a"{`, 1, 14, "a repetition is"},
		{`root ::= "a"{,}`, 1, 15, "a repetition is"},
		{`root ::= "a"{1;2}`, 1, 15, "a repetition is"},
		{`root ::= "a"{3,2}`, 1, 13, "ends before it begins"},
		{`root ::= "a"{99999999999999999999}`, 1, 14, "up to"},
		{"root ::= \"a\"\nroot ::= \"b\"", 2, 1, "a second time"},
		{"root ::= \"é\"\n  missing", 2, 10, `"::=" is due`},
		{"root ::= \"é\" missing", 1, 14, "defined nowhere"},
		{"root ::= a\na ::= a \"x\" | \"x\"", 2, 1, "left recursion"},
		{"root ::= \"x\" a\na ::= b\nb ::= \"\" a \"x\" | \"y\"", 2, 1, "left recursion"},
		{"root ::= a a\na ::= \"x\"? b\nb ::= a | \"y\"", 2, 1, "left recursion"},
		{"root ::= \"x\" root", 1, 1, "can never end"},
		{"root ::= \"x\" | a\na ::= \"y\" b\nb ::= \"z\" a", 2, 1, "can never end"},
		{"root ::= <think>", 1, 10, "references to tokens"},
		{"root ::= \"a\xff\"", 1, 12, "not UTF-8"},
	} {
		_, err := Parse(c.grammar)
		var fault *Error
		if !errors.As(err, &fault) {
			t.Errorf("%q: got %v", c.grammar, err)
			continue
		}
		if (fault.At != Position{c.line, c.column}) || !strings.Contains(fault.Msg, c.want) {
			t.Errorf("%q: got %v, want line %d, column %d: %s", c.grammar, err, c.line, c.column, c.want)
		}
	}
}

func TestHugeGrammarsAreRefused(t *testing.T) {
	for name, c := range map[string]struct{ grammar, want string }{
		"60,000 nested groups":    {"root ::= " + strings.Repeat("(", 60000) + `"a"` + strings.Repeat(")", 60000), "inside one another"},
		"100,000 open groups":     {"root ::= " + strings.Repeat("(", 100000), "inside one another"},
		"repeated repetitions":    {`root ::= "a"` + strings.Repeat("*", 100000), "inside one another"},
		"text too long":           {`root ::= "` + strings.Repeat("a", MaxText) + `"`, "bytes long"},
		"a billion characters":    {`root ::= "a"{1000}{1000}{1000}`, "repeat less"},
		"a billion, by rules":     {"root ::= a{1000}\na ::= (\"x\"{1000}){1000}", "repeat less"},
		"optional bomb":           {`root ::= (("a"{0,1000}){0,1000}){0,1000}`, "repeat less"},
		"too many rules":          {manyRules(maxRules + 1), "rules"},
		"deep call chain is fine": {manyRules(maxRules - 10), ""},
	} {
		_, err := Parse(c.grammar)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: got %.200v, want %q", name, err, c.want)
		}
	}
}

// manyRules is a chain of n rules, each of which begins with the next.
func manyRules(n int) string {
	var b strings.Builder
	b.WriteString("root ::= r0\n")
	for i := range n - 1 {
		fmt.Fprintf(&b, "r%d ::= r%d\n", i, i+1)
	}
	fmt.Fprintf(&b, "r%d ::= \"x\"\n", n-1)
	return b.String()
}

func TestAnAmbiguousGrammarEndsInAnError(t *testing.T) {
	// Every character doubles the ways in which the brackets may still close.
	g := mustParse(t, "root ::= s\ns ::= \"x\" a s | \"x\" b s | \"y\"\na ::= \"x\" s \"p\" | \"x\"\nb ::= \"x\" s \"q\" | \"x\"")
	m, s, err := g.NewMatcher()
	for range 200 {
		if err != nil || s == nil {
			break
		}
		s, err = m.Advance(s, []byte("x"))
	}
	if !errors.Is(err, ErrAmbiguous) {
		t.Errorf("got %v", err)
	}
}

// TestAgainstRegexp compares grammars that are regular with Go's own engine, on
// every text over a small alphabet and on longer random ones.
func TestAgainstRegexp(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct{ grammar, pattern string }{
		{`root ::= ("a" | "bc")* "c"?`, `(a|bc)*c?`},
		{`root ::= [ab]{2,4} [^a]`, `[ab]{2,4}[^a]`},
		{"root ::= x x\nx ::= \"a\" | \"ab\" | y\ny ::= [bc] y | \"\"", `(a|ab|[bc]*){2}`},
		{`root ::= (("a"? "b"){1,2} | "c"+){2}`, `((a?b){1,2}|c+){2}`},
		{`root ::= "a"{0,3} ("b" | "é"){1,} .?`, `(?s)a{0,3}(b|é){1,}.?`},
	} {
		g := mustParse(t, c.grammar)
		want := regexp.MustCompile(`\A(?:` + c.pattern + `)\z`)
		check := func(text string) {
			got := verdict(t, g, text)
			if ends := got == "whole" || got == "done"; ends != want.MatchString(text) {
				t.Errorf("%s with %q: %s, regexp says %v", c.grammar, text, got, !ends)
			}
		}
		alphabet := []string{"a", "b", "c", "é"}
		for n := range 5 {
			for i := range 1 << (2 * n) {
				var b strings.Builder
				for k := range n {
					b.WriteString(alphabet[i>>(2*k)&3])
				}
				check(b.String())
			}
		}
		for range 500 {
			var b strings.Builder
			for range r.IntN(12) {
				b.WriteString(alphabet[r.IntN(4)])
			}
			check(b.String())
		}
	}
}

func FuzzGrammar(f *testing.F) {
	f.Add(`root ::= "a" [b-d]* ( "x" | root ){1,3}`, "abx")
	f.Add("root ::= a-b\na-b ::= \"\\u00e9\" | .", "é")
	f.Add(`{"type":"object","properties":{"a":{"type":["integer","null"]}},"required":["a"]}`, `{"a":1}`)
	f.Fuzz(func(t *testing.T, grammar, text string) {
		g, err := ParseAny(grammar)
		if err != nil {
			return
		}
		m, s, err := g.NewMatcher()
		if err != nil {
			return
		}
		for i := 0; i < len(text) && s != nil && err == nil; i++ {
			first := m.FirstBytes(s)
			before := s
			if s, err = m.Advance(s, []byte{text[i]}); s != nil && !first[text[i]] {
				t.Fatalf("%q behind %q: not among the first bytes", text[i], text[:i])
			}
			if s == nil && err == nil && len(before.threads) == 0 && !before.Ends() {
				t.Fatalf("%q: a state that neither ends nor goes on", text[:i])
			}
		}
		if s != nil && s.Ends() && !utf8.ValidString(text) {
			t.Fatalf("%q ends, and is no UTF-8", text)
		}
	})
}
