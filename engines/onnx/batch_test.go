//go:build cgo

package onnx

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func rowsOf(lengths ...int) [][]int32 {
	rows := make([][]int32, len(lengths))
	for i, n := range lengths {
		rows[i] = make([]int32, n)
	}
	return rows
}

// batches are the lengths in each batch.
func batches(b *batcher, rows [][]int32) [][]int {
	order, cuts := b.pack(rows)
	var out [][]int
	start := 0
	for _, end := range cuts {
		var batch []int
		for _, i := range order[start:end] {
			batch = append(batch, len(rows[i]))
		}
		out, start = append(out, batch), end
	}
	return out
}

func TestPack(t *testing.T) {
	for _, c := range []struct {
		name    string
		batcher batcher
		lengths []int
		want    [][]int
	}{
		{"nothing", batcher{tokens: 100, padded: true}, nil, nil},
		{"one that is over the budget", batcher{tokens: 100, padded: true}, []int{500}, [][]int{{500}}},
		{"all fit", batcher{tokens: 100, padded: true}, []int{8, 10, 9}, [][]int{{10, 9, 8}}},
		{"the budget", batcher{tokens: 20, padded: true}, []int{10, 10, 10}, [][]int{{10}, {10, 10}}},
		{"padding that does not pay", batcher{tokens: 1000, padded: true}, []int{10, 300, 12}, [][]int{{300}, {12, 10}}},
		{"without padding", batcher{tokens: 1000}, []int{10, 12, 10, 12}, [][]int{{12, 12}, {10, 10}}},
		{"alone", batcher{tokens: 1000, padded: true, alone: true}, []int{10, 12, 10}, [][]int{{10}, {12}, {10}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := batches(&c.batcher, rowsOf(c.lengths...))
			if !slices.EqualFunc(got, c.want, slices.Equal) {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}

// Every row runs once, no call is over the budget, the first row of a batch is
// its longest, and the whole costs no more than the obvious ways.
func TestPackHoldsItsPromises(t *testing.T) {
	source := rand.New(rand.NewPCG(3, 4))
	b := batcher{tokens: 256, padded: true}
	for range 200 {
		lengths := make([]int, 1+source.IntN(60))
		for i := range lengths {
			lengths[i] = 1 + source.IntN(1+source.IntN(300))
		}
		var run []int
		cost, alone, one := 0, 0, 0
		for _, batch := range batches(&b, rowsOf(lengths...)) {
			if len(batch) > 1 && batch[0]*len(batch) > b.tokens {
				t.Fatalf("a call of %v is over the budget of %d", batch, b.tokens)
			}
			if slices.Max(batch) != batch[0] {
				t.Fatalf("the first row of %v is not its longest", batch)
			}
			cost += batch[0]*len(batch) + callTokens
			run = append(run, batch...)
		}
		slices.Sort(run)
		slices.Sort(lengths)
		if !slices.Equal(run, lengths) {
			t.Fatalf("rows of %v became %v", lengths, run)
		}
		for i := len(lengths); i > 0; {
			width := lengths[i-1]
			k := min(i, max(1, b.tokens/width))
			one += k*width + callTokens
			i -= k
		}
		for _, n := range lengths {
			alone += n + callTokens
		}
		if cost > min(alone, one) {
			t.Fatalf("%v costs %d; one by one %d, greedily filled %d", lengths, cost, alone, one)
		}
	}
}
