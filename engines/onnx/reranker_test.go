//go:build cgo

package onnx

import (
	"math"
	"slices"
	"testing"

	"github.com/synapse-module/workers/engines/onnx/internal/onnxtest"
	"github.com/synapse-module/workers/protocol"
	"github.com/synapse-module/workers/workerkit"
)

// A tokenizer whose pairs are 7 query 9 document 9, as BERT's in shape.
const tokenizerJSON = `{"version": "1.0", "post_processor": {"type": "TemplateProcessing",
	"single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "[SEP]", "type_id": 0}}],
	"pair": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "[SEP]", "type_id": 0}},
		{"Sequence": {"id": "B", "type_id": 1}}, {"SpecialToken": {"id": "[SEP]", "type_id": 1}}],
	"special_tokens": {"[CLS]": {"id": "[CLS]", "ids": [7], "tokens": ["[CLS]"]}, "[SEP]": {"id": "[SEP]", "ids": [9], "tokens": ["[SEP]"]}}}}`

func crossEncoder(labels int, activation string) (onnxtest.Encoder, files) {
	e := onnxtest.CrossEncoder(labels)
	f := files{
		"model.onnx":     string(e.Model()),
		"tokenizer.json": tokenizerJSON,
		"config.json":    `{"model_type": "bert", "architectures": ["BertForSequenceClassification"]}`,
	}
	if activation != "" {
		f["config.json"] = `{"model_type": "bert", "architectures": ["BertForSequenceClassification"], "sentence_transformers": {"activation_fn": "torch.nn.modules.` + activation + `"}}`
	}
	return e, f
}

// reference is the logits of each pair.
func reference(e onnxtest.Encoder, query []int32, docs [][]int32) (logits [][]float64) {
	for _, doc := range docs {
		row := slices.Concat([]int32{7}, query, []int32{9}, doc, []int32{9})
		types := make([]int32, len(row))
		for i := len(query) + 2; i < len(row); i++ {
			types[i] = 1
		}
		logits = append(logits, e.Logits(row, types))
	}
	return logits
}

func wantScores(t *testing.T, m workerkit.Model, query []int32, docs [][]int32, want []float64) {
	t.Helper()
	got, err := m.(workerkit.Reranker).Rerank(t.Context(), query, docs)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != len(want) {
		t.Fatalf("%d scores for %d documents", len(got), len(docs))
	}
	for i := range got {
		if math.Abs(float64(got[i])-want[i]) > 1e-5 {
			t.Errorf("document %d scores %g, want %g", i, got[i], want[i])
		}
	}
}

var (
	query = []int32{20, 21, 22}
	docs  = [][]int32{{30}, {31, 32, 33, 34, 35}, {36, 37}, {38, 39, 40, 41, 42}}
)

func TestRerank(t *testing.T) {
	first := func(l []float64) float64 { return l[0] }
	for _, c := range []struct {
		name       string
		labels     int
		activation string
		config     string
		score      func([]float64) float64
	}{
		{"raw", 1, "linear.Identity", "", first},
		{"sigmoid", 1, "activation.Sigmoid", "", func(l []float64) float64 { return 1 / (1 + math.Exp(-l[0])) }},
		{"told over the config", 1, "activation.Sigmoid", `{"scores": "raw"}`, first},
		{"one of three labels", 3, "linear.Identity", `{"label": 2}`, func(l []float64) float64 { return l[2] }},
		{"the share of one of three", 3, "", `{"label": 1, "scores": "softmax"}`, func(l []float64) float64 {
			return math.Exp(l[1]) / (math.Exp(l[0]) + math.Exp(l[1]) + math.Exp(l[2]))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, f := crossEncoder(c.labels, c.activation)
			m := mustLoadDir(t, f, c.config)
			var want []float64
			for _, l := range reference(e, query, docs) {
				want = append(want, c.score(l))
			}
			wantScores(t, m, query, docs, want)
			for i := range docs { // alone as in company
				wantScores(t, m, query, docs[i:i+1], want[i:i+1])
			}
			// Texts that bring their special tokens get no second ones.
			dressed := make([][]int32, len(docs))
			for i, doc := range docs {
				dressed[i] = slices.Concat([]int32{7}, doc, []int32{9})
			}
			wantScores(t, m, slices.Concat([]int32{7}, query, []int32{9}), dressed, want)
		})
	}
}

func TestRerankBareFile(t *testing.T) {
	e := onnxtest.CrossEncoder(1)
	m := mustLoad(t, e.Model(), `{"pair": ["7", "$A", "9", "$B:1", "9:1"], "scores": "raw"}`)
	var want []float64
	for _, l := range reference(e, query, docs) {
		want = append(want, l[0])
	}
	wantScores(t, m, query, docs, want)
}

func TestReport25_RankingModelDoesNotEmbed(t *testing.T) {
	_, f := crossEncoder(1, "linear.Identity")
	m := mustLoadDir(t, f, "")
	if _, embeds := m.(workerkit.Embedder); embeds {
		t.Error("a cross-encoder offers embeddings")
	}
	if _, ranks := mustLoad(t, onnxtest.BERT().Model(), "").(workerkit.Reranker); ranks {
		t.Error("an embedder offers scores")
	}
}

func TestRerankPairTooLong(t *testing.T) {
	_, f := crossEncoder(1, "linear.Identity")
	m := mustLoadDir(t, f, "")
	limit := m.Describe().MaxTokens
	fits := make([]int32, limit-len(query)-3)
	if _, err := m.(workerkit.Reranker).Rerank(t.Context(), query, [][]int32{fits}); err != nil {
		t.Fatal(err)
	}
	_, err := m.(workerkit.Reranker).Rerank(t.Context(), query, [][]int32{{1}, append(fits, 1)})
	wantCode(t, err, protocol.CodeRequestInvalid, "candidates[1]", "16", "17")
}

func TestRerankerRefuses(t *testing.T) {
	noTokenizer := func(f files) { delete(f, "tokenizer.json") }
	for _, c := range []struct {
		name       string
		labels     int
		activation string
		change     func(files)
		config     string
		code       protocol.Code
		says       []string
	}{
		{"no layout", 1, "linear.Identity", noTokenizer, "", protocol.CodeConfigInvalid, []string{"pair"}},
		{"no scores", 1, "", nil, "", protocol.CodeConfigInvalid, []string{"scores"}},
		{"no label", 2, "linear.Identity", nil, "", protocol.CodeConfigInvalid, []string{"label", "2 labels"}},
		{"a label too many", 2, "linear.Identity", nil, `{"label": 2}`, protocol.CodeConfigInvalid, []string{"0 to 1"}},
		{"sigmoid of several labels", 2, "activation.Sigmoid", nil, `{"label": 1}`, protocol.CodeConfigInvalid, []string{"softmax"}},
		{"softmax of one", 1, "", nil, `{"scores": "softmax"}`, protocol.CodeConfigInvalid, []string{"sigmoid"}},
		{"an unknown activation", 1, "activation.GELU", nil, "", protocol.CodeArtifactInvalid, []string{"GELU"}},
		{"a layout that is none", 1, "linear.Identity", nil, `{"pair": ["7", "$B", "$A"]}`, protocol.CodeConfigInvalid, []string{"$A"}},
		{"a piece that is none", 1, "linear.Identity", nil, `{"pair": ["[CLS]", "$A", "$B"]}`, protocol.CodeConfigInvalid, []string{"[CLS]"}},
		{"a token outside the vocabulary", 1, "linear.Identity", nil, `{"pair": ["100", "$A", "$B"]}`, protocol.CodeConfigInvalid, []string{"100", "99"}},
		{"a token type that the graph lacks", 1, "linear.Identity", nil, `{"pair": ["7", "$A", "$B:2"]}`, protocol.CodeArtifactInvalid, []string{"pair"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, f := crossEncoder(c.labels, c.activation)
			if c.change != nil {
				c.change(f)
			}
			_, err := loadDir(t, f, c.config)
			wantCode(t, err, c.code, c.says...)
		})
	}
	good(t)
}
