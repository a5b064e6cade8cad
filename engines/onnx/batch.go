//go:build cgo

package onnx

import (
	"cmp"
	"slices"
)

// callTokens is what a call costs beside its tokens, in tokens. Measured on
// MiniLM: rows of 74 tokens one at a time run at 0.7 of the padded tokens per
// second of full batches, which is 30 tokens a call.
const callTokens = 32

// batcher packs rows into calls of one width each: batches of rows of similar
// length, as many tokens as the budget allows, with as little padding as pays.
// Its memory is reused.
type batcher struct {
	tokens int  // most padded tokens of a call; a longer row stands alone
	alone  bool // one row a call
	padded bool // rows of different length may share a call

	order []int // rows, longest first
	best  []int // the least cost of the first i rows in that order
	size  []int // the size of the last batch in that least cost
	cuts  []int // where batches end
}

// pack returns the rows' indices in the order in which they run, and the ends of
// the batches in that order. The first row of each batch is its longest. Both are
// valid until the next call.
//
// The split has the least cost of all: padded tokens plus callTokens a call.
func (b *batcher) pack(rows [][]int32) (order, cuts []int) {
	n := len(rows)
	b.order = slices.Grow(b.order[:0], n)[:n]
	for i := range b.order {
		b.order[i] = i
	}
	b.cuts = b.cuts[:0]
	if b.alone {
		for i := range n {
			b.cuts = append(b.cuts, i+1)
		}
		return b.order, b.cuts
	}
	slices.SortFunc(b.order, func(x, y int) int {
		return cmp.Or(cmp.Compare(len(rows[y]), len(rows[x])), cmp.Compare(x, y))
	})
	b.best = slices.Grow(b.best[:0], n+1)[:n+1]
	b.size = slices.Grow(b.size[:0], n+1)[:n+1]
	for i := 1; i <= n; i++ {
		b.best[i] = -1
	}
	b.best[0] = 0
	for i := range n {
		width := len(rows[b.order[i]])
		for k := 1; i+k <= n && (k == 1 || k*width <= b.tokens); k++ {
			if !b.padded && len(rows[b.order[i+k-1]]) != width {
				break
			}
			if cost := b.best[i] + k*width + callTokens; b.best[i+k] < 0 || cost < b.best[i+k] {
				b.best[i+k], b.size[i+k] = cost, k
			}
		}
	}
	for end := n; end > 0; end -= b.size[end] {
		b.cuts = append(b.cuts, end)
	}
	slices.Reverse(b.cuts)
	return b.order, b.cuts
}
