package llama

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/synapse-module/workers/protocol"
	"github.com/synapse-module/workers/workerkit"
)

// question is a template as published rerankers have them.
const question = "<|im_start|>user\n<Query>: {query}\n<Document>: {document}<|im_end|>\n<think>\n\n</think>\n\n"

func TestTemplatesAreCutWhereTokensEnd(t *testing.T) {
	got, err := newTemplate(question)
	if err != nil {
		t.Fatal(err)
	}
	want := template{
		pieces: [3]string{"<|im_start|>user\n<Query>:", "<Document>:", "<|im_end|>\n<think>\n\n</think>\n\n"},
		query:  margins{" ", "\n"}, doc: margins{" ", ""},
	}
	if *got != want {
		t.Errorf("%+v", *got)
	}
	for text, why := range map[string]string{
		"":                                      "missing",
		"Q: {query}\nD:":                        "once each",
		"D: {document}\nQ: {query}\n<end>":      "once each",
		"Q: {query}\nQ: {query}\nD: {document}": "once each",
		"Q:{query}\nD: {document}\n<end>":       "one space before",
		"Q:  {query}\nD: {document}\n<end>":     "one space before",
		"Q:\n{query}\nD: {document}\n<end>":     "one space before",
		"Q: {query} D: {document}\n<end>":       "a line's end",
		"Q: {query}\n{document}\n<end>":         "one space before",
		"Q: {query}\nD: {document}\n":           "asks nothing",
		" {query}\nD: {document}\n<end>":        "asks nothing",
		"Q: {query}\nD: {document}\n\xff":       "no UTF-8",
		strings.Repeat("x", maxTemplate+1):      "bytes are taken",
	} {
		if _, err := newTemplate(text); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%q: %v, want %q", text, err, why)
		}
	}
}

func FuzzTemplate(f *testing.F) {
	f.Add(question)
	f.Add("Q: {query}\n\n D: {document} \n<end>")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := newTemplate(text)
		if err != nil {
			return
		}
		whole := c.pieces[0] + c.query.before + "{query}" + c.query.after +
			c.pieces[1] + c.doc.before + "{document}" + c.doc.after + c.pieces[2]
		if whole != text {
			t.Errorf("%q was cut into %q", text, whole)
		}
	})
}

// TestWhatIsNoRerankerByTemplateIsRefused: what stands in the file, and what the
// library then makes of it.
func TestWhatIsNoRerankerByTemplateIsRefused(t *testing.T) {
	asking := func(change func(*tinyModel)) []byte {
		m := tinyDecoder()
		for i, p := range m.file.Pairs {
			if rest, ok := strings.CutPrefix(p.Key, "llama."); ok {
				m.file.Pairs[i].Key = "qwen3." + rest
			}
		}
		m.set("general.architecture", "qwen3")
		m.set("qwen3.pooling_type", uint32(filePoolingRank))
		m.set("qwen3.classifier.output_labels", []string{"yes", "no"})
		m.set("tokenizer.ggml.model", "gpt2")
		m.set("tokenizer.ggml.pre", "qwen2")
		m.set(templateKey, question)
		m.tensor(headOutput, tinyEmbd, 2)
		change(m)
		return m.file.Bytes()
	}
	recorded := tinyFile(t, "qwen3-reranker")
	other := func(old, replacement string) []byte {
		if len(old) != len(replacement) || !bytes.Contains(recorded, []byte(old)) {
			t.Fatalf("%q cannot stand for %q", replacement, old)
		}
		return bytes.Replace(recorded, []byte(old), []byte(replacement), 1)
	}
	const one = "\x01\x00\x00\x00\x00\x00\x00\x00" // the length of a token of one byte
	for name, c := range map[string]struct {
		file []byte
		want string
	}{
		"no output":         {asking(func(m *tinyModel) { m.drop(headOutput) }), "cls.output.weight"},
		"one score":         {asking(func(m *tinyModel) { m.drop(headOutput); m.tensor(headOutput, tinyEmbd, 1) }), "not of two rows"},
		"other labels":      {asking(func(m *tinyModel) { m.set("qwen3.classifier.output_labels", []string{"yes", "maybe"}) }), "want \"yes\" and \"no\""},
		"no labels":         {asking(func(m *tinyModel) { m.unset("qwen3.classifier.output_labels") }), "want \"yes\" and \"no\""},
		"other tokenizer":   {asking(func(m *tinyModel) { m.set("tokenizer.ggml.pre", "gpt-2") }), "is not known for the tokenizer"},
		"no template":       {asking(func(m *tinyModel) { m.unset(templateKey) }), templateKey + ": it is missing"},
		"no text in it":     {asking(func(m *tinyModel) { m.set(templateKey, "yes or no?") }), "once each"},
		"text after a text": {other("{document}<|im_end|>", "{document}(im_end)!!"), "neither a line's end nor a special token"},
		"a letter too few":  {other(one+"S", one+"\x7f"), "cannot spell"},
		"another architecture": {asking(func(m *tinyModel) {
			m.set("general.architecture", "llama")
			for _, p := range slices.Clone(m.file.Pairs) {
				if rest, ok := strings.CutPrefix(p.Key, "qwen3."); ok {
					m.set("llama."+rest, p.Value)
				}
			}
		}), "how \"llama\" ranks"},
	} {
		_, err := loadBytes(t, c.file, "")
		t.Run(name, func(t *testing.T) { wantCode(t, err, protocol.CodeArtifactInvalid, c.want) })
	}
}

// TestTextsWithoutTheirMarginsAreRefused: a model asked with other tokens than it was
// trained with answers something else, and nothing shows it.
func TestTextsWithoutTheirMarginsAreRefused(t *testing.T) {
	m, err := loadBytes(t, tinyFile(t, "qwen3-reranker"), "")
	if err != nil {
		t.Fatal(err)
	}
	pair := tinyReferences(t)["qwen3-reranker"].Pairs[1]
	query, doc := pair.Query, pair.Document
	for want, c := range map[string]struct {
		query []int32
		docs  [][]int32
	}{
		"the query was tokenised":     {query[1:], [][]int32{doc}},
		`then "\n"`:                   {query[:len(query)-1], [][]int32{doc}},
		"candidates[1] was tokenised": {query, [][]int32{doc, doc[1:]}},
		"the query":                   {nil, [][]int32{doc}},
	} {
		_, err := m.(workerkit.Reranker).Rerank(t.Context(), c.query, c.docs)
		wantCode(t, err, protocol.CodeRequestInvalid, want)
	}
}

func TestManyCandidatesOfATemplateScoreAsEachAlone(t *testing.T) {
	m, err := loadBytes(t, tinyFile(t, "qwen3-reranker"), exactly)
	if err != nil {
		t.Fatal(err)
	}
	pairs := tinyReferences(t)["qwen3-reranker"].Pairs
	var docs [][]int32
	for range 3 { // several batches
		for _, p := range pairs {
			docs = append(docs, p.Document)
		}
	}
	for i, s := range rerank(t, m, pairs[0].Query, docs...) {
		if alone := rerank(t, m, pairs[0].Query, docs[i])[0]; math.Abs(float64(s-alone)) > 1e-5 {
			t.Errorf("candidate %d: %v among many, %v alone", i, s, alone)
		}
	}
}
