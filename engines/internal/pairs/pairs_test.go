package pairs

import (
	"slices"
	"testing"
)

func TestLayouts(t *testing.T) {
	bert, roberta := BERT(101, 102), RoBERTa(0, 2)
	for _, c := range []struct {
		name            string
		layout          Layout
		query, document []int32
		want            []int32
		second          int
	}{
		{"BERT", bert, []int32{7, 8}, []int32{9}, []int32{101, 7, 8, 102, 9, 102}, 4},
		{"BERT, tokenized with its special tokens", bert, []int32{101, 7, 8, 102}, []int32{101, 9, 102}, []int32{101, 7, 8, 102, 9, 102}, 4},
		{"BERT, separator in the middle", bert, []int32{7, 102, 8}, []int32{9}, []int32{101, 7, 102, 8, 102, 9, 102}, 5},
		{"BERT, nothing but special tokens", bert, []int32{101, 102}, []int32{9}, []int32{101, 102, 9, 102}, 2},
		{"XLM-R", roberta, []int32{7, 8}, []int32{9}, []int32{0, 7, 8, 2, 2, 9, 2}, 5},
		{"XLM-R, tokenized with its special tokens", roberta, []int32{0, 7, 2}, []int32{0, 9, 2}, []int32{0, 7, 2, 2, 9, 2}, 4},
	} {
		q, d := c.layout.Bare(c.query), c.layout.Bare(c.document)
		pair, second := c.layout.Append([]int32{-1}, q, d)
		if pair = pair[1:]; !slices.Equal(pair, c.want) || second-1 != c.second {
			t.Errorf("%s: %v, second segment from %d; want %v from %d", c.name, pair, second-1, c.want, c.second)
		}
		if n := c.layout.Len(q, d); n != len(c.want) {
			t.Errorf("%s: length %d, want %d", c.name, n, len(c.want))
		}
	}
}

func TestTypes(t *testing.T) {
	query, document := []int32{7, 8}, []int32{9}
	if got := BERT(101, 102).AppendTypes([]int32{-1}, query, document); !slices.Equal(got, []int32{-1, 0, 0, 0, 0, 1, 1}) {
		t.Errorf("BERT: %v", got)
	}
	if got := RoBERTa(0, 2).AppendTypes(nil, query, document); !slices.Equal(got, make([]int32, 7)) {
		t.Errorf("RoBERTa: %v", got)
	}
}

func TestValid(t *testing.T) {
	for name, l := range map[string]Layout{
		"empty":        {},
		"no document":  {Pair: []Piece{{Part: Query}}},
		"turned round": {Pair: []Piece{{Part: Document}, {Part: Query}}},
		"twice":        {Pair: []Piece{{Part: Query}, {Part: Document}, {Part: Document}}},
	} {
		if l.Valid() {
			t.Errorf("%s: taken for a layout", name)
		}
	}
	if !BERT(101, 102).Valid() || !RoBERTa(0, 2).Valid() {
		t.Error("real layouts are refused")
	}
}
