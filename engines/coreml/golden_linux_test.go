package coreml

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/synapse-module/workers/engines/coreml/internal/stubcoreml"
	"github.com/synapse-module/workers/protocol"
)

func goldenRows(t *testing.T, rows ...golden) string {
	t.Helper()
	b, err := json.Marshal(rows)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func twoBuckets(golden string) stub {
	m := with(hidden(1, 8), keyGolden, golden)
	f := stubcoreml.Feature{Type: stubcoreml.Int32, Shape: []int{1, 8}, Shapes: [][]int{{1, 8}, {1, 16}}}
	m.Inputs = map[string]stubcoreml.Feature{"input_ids": f, "attention_mask": f}
	return m
}

// A bucket that computes something else is found at LOAD, by a row that has room
// in others too.
func TestGoldenRowsAreRunInEveryBucket(t *testing.T) {
	r := newRig(t)
	row := ids(5, 1)
	long := ids(12, 2)
	rows := goldenRows(t, golden{IDs: row, Vector: meanOf(row)}, golden{IDs: long, Vector: meanOf(long)})
	r.must(twoBuckets(rows), "")
	for length, bucket := range map[int]string{8: "1×8", 16: "1×16"} {
		m := failing(twoBuckets(rows), "wrong_values")
		m.FaultLength = length
		_, err := r.loadPackage(m, "")
		refusal(t, err, protocol.CodeArtifactInvalid, "golden row 0 fails in the bucket "+bucket)
		refusal(t, err, protocol.CodeArtifactInvalid, "cosine")
	}
}

func TestGoldenRefusals(t *testing.T) {
	r := newRig(t)
	row := ids(5, 1)
	right := golden{IDs: row, Vector: meanOf(row)}
	for name, c := range map[string]struct {
		model stub
		says  string
	}{
		"another vector":     {twoBuckets(goldenRows(t, golden{IDs: row, Vector: meanOf(ids(5, 9))})), "has the cosine"},
		"not finite":         {failing(twoBuckets(goldenRows(t, right)), "predict_nan"), "cosine NaN"},
		"other dims":         {twoBuckets(goldenRows(t, golden{IDs: row, Vector: []float32{1}})), "a vector of 1 values, this model gives 6"},
		"no ids":             {twoBuckets(goldenRows(t, golden{Vector: meanOf(row)})), "it has 0 ids"},
		"pooling unknown":    {without(twoBuckets(goldenRows(t, right)), keyPooling), "nobody says which pooling"},
		"another score":      {with(ranker(1, 16), keyGolden, goldenRows(t, golden{Query: ids(3, 1), Document: ids(4, 2), Score: 99})), "the golden one 99"},
		"a pair of one text": {with(ranker(1, 16), keyGolden, goldenRows(t, golden{Query: ids(3, 1)})), "has a query and a document"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := r.loadPackage(c.model, "")
			refusal(t, err, protocol.CodeArtifactInvalid, c.says)
			if err != nil && strings.Contains(err.Error(), "engine_failed") {
				t.Errorf("a code stands in the text: %v", err)
			}
		})
	}
	settled(t)
}
