package coreml

import (
	"slices"
	"testing"

	"github.com/synapse-module/workers/engines/coreml/internal/stubcoreml"
	"github.com/synapse-module/workers/protocol"
	"github.com/synapse-module/workers/workerkit"
)

// scoreOf is the stub's score of the pair in BERT's layout.
func scoreOf(query, document []int32) float32 {
	row := slices.Concat([]int32{101}, query, []int32{102}, document, []int32{102})
	types := make([]int32, len(row))
	for i := len(query) + 2; i < len(types); i++ {
		types[i] = 1
	}
	return float32(stubcoreml.Score(row, types))
}

// Pairs of all lengths over buckets of several rows: token types reach the model,
// order is kept, and special tokens that are there are not doubled.
func TestRerank(t *testing.T) {
	r := newRig(t)
	dir := t.TempDir()
	query := ids(3, 1)
	goldenPair := golden{Query: query, Document: ids(2, 7), Score: scoreOf(query, ids(2, 7))}
	for name, shape := range map[string][2]int{"a": {1, 8}, "b": {4, 16}, "c": {1, 32}} {
		stubcoreml.WritePackage(t, dir, name+".mlpackage", with(ranker(shape[0], shape[1]), keyGolden, goldenRows(t, goldenPair)))
	}
	m, err := r.load(dir, formatPackage, "")
	if err != nil {
		t.Fatal(err)
	}
	d := m.Describe()
	if _, embeds := m.(workerkit.Embedder); embeds || len(d.Poolings) != 0 || d.MaxTokens != 32 || d.VocabSize != 1000 {
		t.Errorf("described as %+v, embeds: %v", d, embeds)
	}
	var docs [][]int32
	for i, n := range []int{26, 1, 2, 10, 11, 3, 9, 5, 20} {
		docs = append(docs, ids(n, 10+i))
	}
	want := make([]float32, len(docs))
	for i, doc := range docs {
		want[i] = scoreOf(query, doc)
	}
	for name, q := range map[string][]int32{"bare": query, "with its special tokens": slices.Concat([]int32{101}, query, []int32{102})} {
		got, err := m.(workerkit.Reranker).Rerank(t.Context(), q, docs)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: got %v, %v; want %v", name, got, err, want)
		}
	}
	_, err = m.(workerkit.Reranker).Rerank(t.Context(), query, [][]int32{docs[1], ids(27, 1)})
	refusal(t, err, protocol.CodeRequestInvalid, "candidates[1]: the query and this document make a pair of 33 tokens, this model takes at most 32")
	m.Close()
	settled(t)
}

// runtime_config tells the layout where the artifact does not.
func TestRerankWithAToldLayout(t *testing.T) {
	r := newRig(t)
	m := r.must(without(ranker(1, 16), keyPair), `{"pair":["101","$A","102","$B:1","102:1"]}`)
	got, err := m.(workerkit.Reranker).Rerank(t.Context(), ids(3, 1), [][]int32{ids(4, 2)})
	if want := scoreOf(ids(3, 1), ids(4, 2)); err != nil || got[0] != want {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
}
