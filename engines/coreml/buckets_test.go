package coreml

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func computed(calls []call) (tokens int) {
	for _, c := range calls {
		tokens += c.bucket.rows * c.bucket.tokens
	}
	return tokens
}

// best is the least that any split computes, by trying all.
func best(lengths []int, buckets []bucket) (tokens, calls int) {
	if len(lengths) == 0 {
		return 0, 0
	}
	tokens = -1
	for _, b := range buckets {
		if b.tokens < lengths[0] {
			continue
		}
		// The first row's company: every subset of the others that fits.
		for set := range 1 << (len(lengths) - 1) {
			n, rest, fits := 1, []int{}, true
			for i, l := range lengths[1:] {
				if set&(1<<i) != 0 {
					n++
					fits = fits && l <= b.tokens
				} else {
					rest = append(rest, l)
				}
			}
			if !fits || n > b.rows {
				continue
			}
			t, c := best(rest, buckets)
			t, c = t+b.rows*b.tokens, c+1
			if tokens < 0 || t < tokens || (t == tokens && c < calls) {
				tokens, calls = t, c
			}
		}
	}
	return tokens, calls
}

func TestSplitComputesTheFewestTokens(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		buckets := make([]bucket, 1+rng.IntN(4))
		for i := range buckets {
			buckets[i] = bucket{rows: 1 + rng.IntN(4), tokens: 1 + rng.IntN(16)}
		}
		buckets[0].tokens = 16
		lengths := make([]int, rng.IntN(7))
		for i := range lengths {
			lengths[i] = 1 + rng.IntN(16)
		}
		calls := split(lengths, buckets)
		wantTokens, wantCalls := best(lengths, buckets)
		if got := computed(calls); got != wantTokens || len(calls) != wantCalls {
			t.Fatalf("rows of %v over %v: %d tokens in %d calls, the best is %d in %d", lengths, buckets, got, len(calls), wantTokens, wantCalls)
		}
		var seen []int
		for _, c := range calls {
			if len(c.rows) == 0 || len(c.rows) > c.bucket.rows {
				t.Fatalf("a call of %d rows in a bucket of %d", len(c.rows), c.bucket.rows)
			}
			for _, row := range c.rows {
				if lengths[row] > c.bucket.tokens {
					t.Fatalf("a row of %d tokens in a bucket of %d", lengths[row], c.bucket.tokens)
				}
				seen = append(seen, row)
			}
		}
		slices.Sort(seen)
		for i, row := range seen {
			if i != row {
				t.Fatalf("rows %v of %d", seen, len(lengths))
			}
		}
		if len(seen) != len(lengths) {
			t.Fatalf("%d of %d rows are in calls", len(seen), len(lengths))
		}
	}
}

// Calls of one bucket stand together, since they run as one batch.
func TestSplitKeepsBucketsTogether(t *testing.T) {
	buckets := []bucket{{rows: 1, tokens: 32}, {rows: 1, tokens: 8}}
	calls := split([]int{30, 3, 31, 4, 5}, buckets)
	for i, want := range []int{8, 8, 8, 32, 32} {
		if calls[i].bucket.tokens != want {
			t.Fatalf("calls are of %v", calls)
		}
	}
}
