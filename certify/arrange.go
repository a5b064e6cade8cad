package certify

import (
	"math/rand/v2"
	"slices"
)

// shuffleSeed makes every run shuffle alike, so that a failure can be repeated.
const shuffleSeed = 20260101

// shuffled returns 0..n-1 in an order that depends on n and salt alone.
func shuffled(n int, salt uint64) []int {
	return rand.New(rand.NewPCG(shuffleSeed, salt)).Perm(n)
}

// inOrder returns 0..n-1.
func inOrder(n int) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	return order
}

// batches cuts order into pieces of size, the last one maybe shorter.
func batches(order []int, size int) [][]int {
	return slices.Collect(slices.Chunk(order, size))
}

// spread returns k of 0..n-1, the first and the last among them, evenly spaced.
func spread(n, k int) []int {
	if k >= n {
		return inOrder(n)
	}
	if k == 1 {
		return []int{0}
	}
	out := make([]int, k)
	for i := range out {
		out[i] = i * (n - 1) / (k - 1)
	}
	return out
}

// rowOfLength makes a row of n tokens out of a longer or shorter one: it keeps
// the first and the last id, which are special tokens in most models, and
// repeats what stands between.
func rowOfLength(like []int32, n int) []int32 {
	row := make([]int32, n)
	inner := like[:1]
	if len(like) > 2 {
		inner = like[1 : len(like)-1]
	}
	for i := range row {
		row[i] = inner[i%len(inner)]
	}
	row[0] = like[0]
	row[n-1] = like[len(like)-1]
	return row
}
