package coreml

import (
	"cmp"
	"fmt"
	"slices"
)

// bucket is a shape that the Neural Engine runs: rows of so many tokens, computed
// whole whatever is in them.
type bucket struct {
	rows, tokens int
	unit         *unit // the loaded model that has the shape
}

func (b *bucket) String() string { return fmt.Sprintf("%d×%d", b.rows, b.tokens) }

// call is one run of a bucket: the indices of the rows in it, at most as many as
// the bucket has.
type call struct {
	bucket *bucket
	rows   []int
}

// split shares rows of the given lengths out to calls, so that the fewest tokens
// are computed, and of the splits that compute the fewest the one with the fewest
// calls is taken. Every length must fit a bucket. The calls lie in order of their
// buckets, shortest first.
//
// Rows sorted by length lose nothing by being cut into runs: in any split, two
// rows out of order can change places. So the least cost of the first i rows is
// the least, over the buckets that fit row i-1, of a call for the last of them
// and the least cost of the others.
func split(lengths []int, buckets []bucket) []call {
	order := make([]int, len(lengths))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(x, y int) int { return cmp.Compare(lengths[x], lengths[y]) })
	type cost struct{ tokens, calls, bucket int }
	best := make([]cost, len(order)+1)
	for i := 1; i <= len(order); i++ {
		best[i].bucket = -1
		for k, b := range buckets {
			if b.tokens < lengths[order[i-1]] {
				continue
			}
			before := best[max(0, i-b.rows)]
			c := cost{before.tokens + b.rows*b.tokens, before.calls + 1, k}
			if old := best[i]; old.bucket < 0 || c.tokens < old.tokens || (c.tokens == old.tokens && c.calls < old.calls) {
				best[i] = c
			}
		}
	}
	var calls []call
	for end := len(order); end > 0; {
		b := &buckets[best[end].bucket]
		start := max(0, end-b.rows)
		calls = append(calls, call{b, order[start:end]})
		end = start
	}
	slices.SortStableFunc(calls, func(x, y call) int {
		return cmp.Or(cmp.Compare(x.bucket.tokens, y.bucket.tokens), cmp.Compare(x.bucket.rows, y.bucket.rows))
	})
	return calls
}
