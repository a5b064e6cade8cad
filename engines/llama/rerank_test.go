package llama

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/synapse-module/workers/protocol"
	"github.com/synapse-module/workers/workerkit"
)

// scoredPair is a pair with its scores by tools/reranker/score.py: float64, erf
// GELU, no code shared with llama.cpp.
type scoredPair struct {
	Query, Document []int32
	Score           float64 `json:"score"`
	OneSegment      float64 `json:"one_segment"`
	Row             []int32 // the whole pair, of a reranker by template
}

func scoredPairs(t *testing.T) (pairs []scoredPair) {
	t.Helper()
	b, err := os.ReadFile("testdata/rerank.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &pairs); err != nil {
		t.Fatal(err)
	}
	return pairs
}

func rerank(t *testing.T, m workerkit.Model, query []int32, docs ...[]int32) []float32 {
	t.Helper()
	scores, err := m.(workerkit.Reranker).Rerank(t.Context(), query, docs)
	if err != nil {
		t.Fatal(err)
	}
	return slices.Clone(scores)
}

// TestScores holds the whole of a cross-encoder to its reference: pooler, tanh,
// classifier and the second segment, which llama.cpp itself has not.
func TestScores(t *testing.T) {
	for name, tolerance := range map[string]float64{"minilm-reranker-gguf-f32": 1e-4, "minilm-reranker-gguf-q8_0": 1.2e-2} {
		m := loadAsset(t, name, "")
		if d := m.Describe(); d.VocabSize != 30522 || d.MaxTokens != 512 || d.Dims != 0 || d.Poolings != nil {
			t.Errorf("%s: %+v", name, d)
		}
		most, segments := 0.0, 0.0
		for _, p := range scoredPairs(t) {
			got := float64(rerank(t, m, p.Query, p.Document)[0])
			most = max(most, math.Abs(got-p.Score))
			segments = max(segments, math.Abs(got-p.OneSegment))
		}
		t.Logf("%s: at most %.1e from the reference, %.1e from the one with a single segment", name, most, segments)
		if most > tolerance {
			t.Errorf("%s: %.1e from the reference, want %.1e", name, most, tolerance)
		}
		if segments < 0.05 {
			t.Errorf("%s: the second segment makes no difference", name)
		}
	}
}

func TestManyCandidatesScoreAsEachAlone(t *testing.T) {
	m := loadAsset(t, "minilm-reranker-gguf-f32", "")
	pairs := scoredPairs(t)
	query := pairs[0].Query
	var docs [][]int32
	for _, p := range pairs {
		docs = append(docs, p.Document)
	}
	for i, s := range rerank(t, m, query, docs...) {
		if alone := rerank(t, m, query, docs[i])[0]; math.Abs(float64(s-alone)) > 3e-4 {
			t.Errorf("candidate %d: %v among many, %v alone", i, s, alone)
		}
	}
}

func TestSpecialTokensAreNotDoubled(t *testing.T) {
	m := loadAsset(t, "minilm-reranker-gguf-f32", "")
	p := scoredPairs(t)[0]
	with := func(ids []int32) []int32 { return slices.Concat([]int32{101}, ids, []int32{102}) }
	want := rerank(t, m, p.Query, p.Document)
	if got := rerank(t, m, with(p.Query), with(p.Document)); !slices.Equal(got, want) {
		t.Errorf("with [CLS] and [SEP] %v, without %v", got, want)
	}
}

func TestAPairOverTheLimitIsRefused(t *testing.T) {
	m := loadAsset(t, "minilm-reranker-gguf-f32", "").(workerkit.Reranker)
	query, doc := row(102, 1)[1:101], row(411, 2)[1:410] // 100 and 409 ids, 3 special ones
	if _, err := m.Rerank(t.Context(), query, [][]int32{doc}); err != nil {
		t.Error(err)
	}
	_, err := m.Rerank(t.Context(), query, [][]int32{doc, append(slices.Clone(doc), 2000)})
	wantCode(t, err, protocol.CodeRequestInvalid, "candidates[1]", "513 tokens", "at most 512")
}

// TestWhatIsNoFaithfulRerankerIsRefused: each of these gets a number for every
// pair from llama.cpp.
func TestWhatIsNoFaithfulRerankerIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*tinyModel)
		want   string
	}{
		"no head":          {func(m *tinyModel) { m.drop("cls.weight", "cls.bias", "cls.output.weight", "cls.output.bias") }, "cls.weight is missing"},
		"no pooler":        {func(m *tinyModel) { m.drop("cls.weight", "cls.bias") }, "cls.weight is missing"},
		"no classifier":    {func(m *tinyModel) { m.drop("cls.output.weight", "cls.output.bias") }, "cls.output.weight is missing"},
		"two labels":       {func(m *tinyModel) { m.set("bert.classifier.output_labels", []string{"no", "yes"}) }, "several labels"},
		"two segments":     {func(m *tinyModel) { m.unset(segmentKey) }, "two segments"},
		"unmarked offset":  {func(m *tinyModel) { m.set(segmentKey, uint32(3)) }, "not twice as many"},
		"no special token": {func(m *tinyModel) { m.unset("tokenizer.ggml.bos_token_id") }, "pairs cannot be built"},
		"other tokenizer":  {func(m *tinyModel) { m.set("tokenizer.ggml.model", "llama") }, "not known here"},
	} {
		m := tinyReranker()
		c.change(m)
		_, err := loadBytes(t, m.file.Bytes(), "")
		t.Run(name, func(t *testing.T) { wantCode(t, err, protocol.CodeArtifactInvalid, c.want) })
	}
	if _, err := loadBytes(t, tinyReranker().file.Bytes(), ""); err != nil {
		t.Errorf("unchanged: %v", err)
	}
	_, err := loadFile(t, asset(t, "minilm-reranker-one-segment-gguf"), "")
	wantCode(t, err, protocol.CodeArtifactInvalid, "two segments", "--segments")
}

// TestRerankersByTheirHead: converters write no pooling for rerankers. A head of
// several labels is a classifier's, whose encoder embeds.
func TestRerankersByTheirHead(t *testing.T) {
	ranker := tinyReranker()
	declared, err := loadBytes(t, ranker.file.Bytes(), "")
	if err != nil {
		t.Fatal(err)
	}
	ranker.unset("bert.pooling_type")
	m, err := loadBytes(t, ranker.file.Bytes(), "")
	if err != nil {
		t.Fatal(err)
	}
	query, doc := []int32{5, 6}, []int32{7, 8, 9}
	if want, got := rerank(t, declared, query, doc), rerank(t, m, query, doc); !slices.Equal(want, got) {
		t.Errorf("%v, with the pooling declared %v", got, want)
	}
	ranker.drop("cls.weight", "cls.bias")
	_, err = loadBytes(t, ranker.file.Bytes(), "")
	wantCode(t, err, protocol.CodeArtifactInvalid, "cls.weight is missing")

	classifier := tinyBERT()
	classifier.unset("bert.pooling_type")
	classifier.set("bert.classifier.output_labels", []string{"a", "b", "c"})
	classifier.linear("cls", tinyEmbd, tinyEmbd)
	classifier.linear("cls.output", tinyEmbd, 3)
	if m, err = loadBytes(t, classifier.file.Bytes(), ""); err != nil {
		t.Fatal(err)
	}
	if d := m.Describe(); d.Dims != tinyEmbd || d.DefaultPooling != "" {
		t.Errorf("%+v", d)
	}
}

// TestWhatAModernBERTRerankerMustSay: its head takes the mean or the first token.
func TestWhatAModernBERTRerankerMustSay(t *testing.T) {
	modern := func(change func(*tinyModel)) []byte {
		m := tinyReranker()
		rename(m, "modern-bert")
		for _, name := range needed["modern-bert"] {
			m.set("modern-bert."+name, uint32(16))
		}
		m.set("modern-bert.classifier.pooling_type", uint32(1))
		m.tensor("cls.norm.weight", tinyEmbd)
		change(m)
		return m.file.Bytes()
	}
	for want, change := range map[string]func(*tinyModel){
		"cls.norm.weight is missing":           func(m *tinyModel) { m.drop("cls.norm.weight") },
		"classifier.pooling_type is missing":   func(m *tinyModel) { m.unset("modern-bert.classifier.pooling_type") },
		"neither 1 (mean) nor 2 (first token)": func(m *tinyModel) { m.set("modern-bert.classifier.pooling_type", uint32(3)) },
	} {
		_, err := loadBytes(t, modern(change), "")
		wantCode(t, err, protocol.CodeArtifactInvalid, want)
	}
}
