//go:build cgo

package onnx

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/synapse-module/workers/internal/assetstest"
	"github.com/synapse-module/workers/workerkit"
)

// scoredPair is a pair with its score by tools/reranker/score.py: float64, in
// numpy alone.
type scoredPair struct {
	Query, Document []int32
	Score           float64 `json:"score"`
	OneSegment      float64 `json:"one_segment"`
}

// scoredPairs are the reference that worker-llama is held to as well.
func scoredPairs(t *testing.T) (pairs []scoredPair) {
	t.Helper()
	b, err := os.ReadFile("../llama/testdata/rerank.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &pairs); err != nil {
		t.Fatal(err)
	}
	return pairs
}

// A whole cross-encoder: pooler, tanh, classifier, the second segment, and the
// pair's layout from its own tokenizer.json.
func TestCrossEncoderScoresAsItsReference(t *testing.T) {
	f := files{}
	for _, name := range []string{"model.onnx", "config.json", "tokenizer.json"} {
		b, err := os.ReadFile(filepath.Join(filepath.Dir(assetstest.Path(t, "minilm-reranker-onnx-f32")), name))
		if err != nil {
			t.Fatal(err)
		}
		f[name] = string(b)
	}
	m := mustLoadDir(t, f, `{"scores": "raw"}`).(workerkit.Reranker)
	pairs := scoredPairs(t)
	most, segments := 0.0, 0.0
	for _, p := range pairs {
		got, err := m.Rerank(t.Context(), p.Query, [][]int32{p.Document})
		if err != nil {
			t.Fatal(err)
		}
		most = max(most, math.Abs(float64(got[0])-p.Score))
		segments = max(segments, math.Abs(float64(got[0])-p.OneSegment))
	}
	t.Logf("at most %.1e from the reference, %.1e from the one with a single segment", most, segments)
	if most > 1e-5 {
		t.Errorf("%.1e from the reference", most)
	}
	if segments < 0.05 {
		t.Error("the second segment makes no difference")
	}

	// Candidates in company score as each alone, in their order.
	var docs [][]int32
	var alone []float32
	for _, p := range pairs {
		docs = append(docs, p.Document)
		got, err := m.Rerank(t.Context(), pairs[0].Query, docs[len(docs)-1:])
		if err != nil {
			t.Fatal(err)
		}
		alone = append(alone, got[0])
	}
	together, err := m.Rerank(t.Context(), pairs[0].Query, docs)
	if err != nil {
		t.Fatal(err)
	}
	if worst := maxDifference(alone, slices.Clone(together)); worst > 1e-5 {
		t.Errorf("candidates in company differ from alone by %g", worst)
	}
}
