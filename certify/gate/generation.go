package gate

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/synapse-module/workers/certify/suite"
	"github.com/synapse-module/workers/protocol"
)

// Generation is a worker's answer to a prompt.
type Generation struct {
	ID     string // of the prompt
	Text   string
	NGen   int
	Finish protocol.FinishReason
}

// EqualTokens counts the leading tokens of the reference's answer that a text
// begins with: a worker gives text, so a token is equal where its bytes are, and
// those of all tokens before it.
func EqualTokens(text string, want suite.Answer) int {
	for i, piece := range want.Pieces {
		if !strings.HasPrefix(text, piece) {
			return i
		}
		text = text[len(piece):]
	}
	return len(want.Pieces)
}

// Greedy holds each answer to the reference's: its leading tokens, and where the
// reference's whole answer is no longer than what is held, how it ends.
func Greedy(got []Generation, want []suite.Answer, t suite.Greedy) []Check {
	least, worst := math.Inf(1), ""
	otherEnd, other, detail := 0, "", ""
	shares := 0.0
	for i, g := range got {
		equal := EqualTokens(g.Text, want[i])
		shares += float64(equal) / float64(len(want[i].Pieces))
		if equal == len(want[i].Pieces) { // a short answer has no more to be held
			equal = max(equal, t.Tokens)
		}
		if float64(equal) < least {
			least, worst = float64(equal), g.ID
		}
		if len(want[i].Pieces) <= t.Tokens && (g.Finish != want[i].Finish || g.NGen != len(want[i].Pieces)) {
			if otherEnd == 0 {
				other, detail = g.ID, fmt.Sprintf("%s after %d tokens, the reference %s after %d", g.Finish, g.NGen, want[i].Finish, len(want[i].Pieces))
			}
			otherEnd++
		}
	}
	if len(got) == 0 {
		least = math.NaN()
	}
	ends := hold("stops", "answers that end otherwise", float64(otherEnd), Equal, 0, other)
	ends.Detail = detail
	checks := []Check{hold("greedy", "least leading tokens equal", least, AtLeast, float64(t.Tokens), worst), ends}
	if t.Share > 0 {
		checks = append(checks, hold("greedy", "mean share equal", shares/float64(len(got)), AtLeast, t.Share, ""))
	}
	return checks
}

// Obedience counts the answers under a grammar that are not what it admits, or
// that did not end by it. disobeys says why, empty where one obeys.
func Obedience(got []Generation, disobeys []string) Check {
	bad, first, detail := 0, "", ""
	for i, g := range got {
		if disobeys[i] == "" {
			continue
		}
		if bad == 0 {
			first, detail = g.ID, disobeys[i]
		}
		bad++
	}
	c := hold("grammar", "answers that disobey", float64(bad), Equal, 0, first)
	c.Detail = detail
	c.Passed = c.Passed && len(got) > 0
	return c
}

// Limits counts the answers under a max_tokens that are not the beginning of the
// whole answer, of exactly so many tokens. An answer that is shorter stays as it
// is; one that is exactly as long may end in either way, since whether the token
// that ends it is counted is the engine's affair.
func Limits(limit int, whole, limited []Generation) Check {
	bad, first, detail := 0, "", ""
	for i, w := range whole {
		l := limited[i]
		same := l.Text == w.Text && l.NGen == w.NGen && l.Finish == w.Finish
		cut := l.NGen == limit && l.Finish == protocol.FinishLength && strings.HasPrefix(w.Text, l.Text)
		ok := w.NGen <= limit && same || w.NGen >= limit && cut
		if ok {
			continue
		}
		if bad == 0 {
			first, detail = l.ID, fmt.Sprintf("%d tokens %.60q, %s; the whole answer has %d: %.60q", l.NGen, l.Text, l.Finish, w.NGen, w.Text)
		}
		bad++
	}
	c := hold("limits", fmt.Sprintf("other answers to max_tokens %d", limit), float64(bad), Equal, 0, first)
	c.Detail = detail
	c.Passed = c.Passed && len(whole) > 0
	return c
}

// SameAnswers counts the answers that are others than those to the same prompts
// before. gate and figure say when they were asked.
func SameAnswers(gate, figure string, before, again []Generation) Check {
	bad, first := 0, ""
	for i := range before {
		if before[i] != again[i] {
			if bad == 0 {
				first = before[i].ID
			}
			bad++
		}
	}
	c := hold(gate, figure, float64(bad), Equal, 0, first)
	c.Passed = c.Passed && len(before) > 0 && slices.Equal(before, again)
	return c
}
