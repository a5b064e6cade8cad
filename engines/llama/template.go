package llama

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/synapse-module/workers/engines/internal/pairs"
	"github.com/synapse-module/workers/engines/llama/internal/gguf"
	"github.com/synapse-module/workers/workerkit"
)

// A reranker by template is a decoder that is asked in words whether a document
// answers a query. Its score is the share of "yes" in the softmax over the logits of
// "yes" and "no" behind the question.
//
// Source: Zhang et al., "Qwen3 Embedding: Advancing Text Embedding and Reranking
// Through Foundation Models" (2025), section 2.

// templated are the architectures whose graphs end in that softmax.
var templated = map[string]bool{"qwen3": true}

const (
	templateKey = "tokenizer.chat_template.rerank"

	// maxTemplate bounds a template: a question of some thousand words.
	maxTemplate = 32 << 10

	// templateSplitter is the pre-tokenizer for which newTemplate's cuts are known to
	// be ends of tokens.
	templateSplitter = "qwen2"
)

// template is the question around a query and a document.
type template struct {
	pieces [3]string // before the query, between the two, behind the document
	query  margins
	doc    margins
	yes    int // which of the head's two values is that of "yes"
}

// margins are the whitespace beside a text in the template. It is tokenised with
// the text, since it becomes one token with a word or a mark that it touches.
type margins struct{ before, after string }

func (p *plan) readTemplate(f *gguf.File) error {
	out, ok := f.Tensor(headOutput)
	if !ok || scores(out) != 2 {
		return fmt.Errorf("it declares to be a reranker, but %s, the output's rows of \"yes\" and \"no\", is missing or not of two rows", headOutput)
	}
	labels, err := f.Strings(p.arch+".classifier.output_labels", maxLabels)
	if err != nil {
		return err
	}
	if sorted := slices.Sorted(slices.Values(labels)); !slices.Equal(sorted, []string{"no", "yes"}) {
		return fmt.Errorf("%s.classifier.output_labels are %.64q, want \"yes\" and \"no\"", p.arch, labels)
	}
	if model, pre := f.Text("tokenizer.ggml.model"), f.Text("tokenizer.ggml.pre"); model != "gpt2" || pre != templateSplitter {
		return fmt.Errorf("it ranks by a template, and where a text can be put into one is not known for the tokenizer %.64q of %.64q", pre, model)
	}
	t, err := newTemplate(f.Text(templateKey))
	if err != nil {
		return fmt.Errorf("%s: %w", templateKey, err)
	}
	t.yes = slices.Index(labels, "yes")
	p.template = t
	return nil
}

// newTemplate cuts a template where no token can reach across, whatever the texts
// are: before the one space that stands before a text, behind a line's end, and
// before a special token. That it is one is seen when the library reads it.
func newTemplate(text string) (*template, error) {
	const query, document, blank = "{query}", "{document}", " \t\r\n"
	if text == "" {
		return nil, errors.New("it is missing; convert the model with a newer converter")
	}
	if len(text) > maxTemplate || !utf8.ValidString(text) {
		return nil, fmt.Errorf("it has %d bytes or is no UTF-8; %d bytes are taken", len(text), maxTemplate)
	}
	before, rest, ok := strings.Cut(text, query)
	between, after, both := strings.Cut(rest, document)
	if !ok || !both || strings.Contains(before+between+after, query) || strings.Contains(before+between+after, document) {
		return nil, fmt.Errorf("it does not have %s and then %s, once each", query, document)
	}
	t := &template{}
	t.pieces[0] = strings.TrimRight(before, blank)
	t.query.before = before[len(t.pieces[0]):]
	inner := strings.TrimLeft(between, blank)
	t.query.after = between[:len(between)-len(inner)]
	t.pieces[1] = strings.TrimRight(inner, blank)
	t.doc.before = inner[len(t.pieces[1]):]
	t.pieces[2] = strings.TrimLeft(after, blank)
	t.doc.after = after[:len(after)-len(t.pieces[2])]
	for _, m := range []margins{t.query, t.doc} {
		if m.before != " " || m.after != "" && !strings.HasSuffix(m.after, "\n") {
			return nil, fmt.Errorf("a text in it has %q before it and %q behind; one space before, and behind it a line's end or a special token, are taken", m.before, m.after)
		}
	}
	if slices.Contains(t.pieces[:], "") {
		return nil, errors.New("it asks nothing before, between or behind the texts")
	}
	return t, nil
}

// layout has the library tokenise the template.
func (t *template) layout(v *vocabulary) (pairs.Layout, error) {
	var ids [3][]int32
	for i, piece := range t.pieces {
		var err error
		if ids[i], err = v.tokens(piece); err != nil {
			return pairs.Layout{}, workerkit.ArtifactInvalid("%s: %v", templateKey, err)
		}
	}
	for i, m := range []margins{t.query, t.doc} {
		if m.after == "" && v.kind(ids[i+1][0]) == kindText {
			return pairs.Layout{}, workerkit.ArtifactInvalid("%s: what follows a text in it is neither a line's end nor a special token, so the tokens where they touch are not known", templateKey)
		}
	}
	return pairs.Layout{Pair: []pairs.Piece{
		{IDs: ids[0]}, {Part: pairs.Query}, {IDs: ids[1]}, {Part: pairs.Document}, {IDs: ids[2]},
	}}, nil
}

// check refuses rows that were tokenised without what stands beside them in the
// template: their tokens would not be those that the model was trained with.
func (t *template) check(v *vocabulary, query []int32, docs [][]int32) error {
	if !t.query.around(v, query) {
		return t.query.refusal("the query")
	}
	for i, doc := range docs {
		if !t.doc.around(v, doc) {
			return t.doc.refusal(fmt.Sprintf("candidates[%d]", i))
		}
	}
	return nil
}

func (m margins) refusal(row string) error {
	return workerkit.RequestInvalid("%s was tokenised without what stands beside it in this model's template: tokenise %q, then the text, then %q, as one", row, m.before, m.after)
}

// around says whether the row's text begins and ends with the margins.
func (m margins) around(v *vocabulary, row []int32) bool {
	var head, tail []byte
	for i := 0; i < len(row) && len(head) < len(m.before); i++ {
		head = append(head, v.Piece(row[i])...)
	}
	for i := len(row) - 1; i >= 0 && len(tail) < len(m.after); i-- {
		tail = slices.Concat(v.Piece(row[i]), tail)
	}
	return bytes.HasPrefix(head, []byte(m.before)) && bytes.HasSuffix(tail, []byte(m.after))
}
