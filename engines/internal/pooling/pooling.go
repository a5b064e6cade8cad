// Package pooling turns the hidden states of a row's tokens into one vector, for
// the engines that pool outside their library.
//
// A row's states are n×d float32, row-major, one line a token, and of real
// tokens only: padding cannot be counted because it is not there.
package pooling

// lane is how many columns are summed at once: one cache line of float32 is read
// per token, and the sums stay in registers.
const lane = 8

// Mean writes the mean over the tokens into dst, whose length is d. The sums are
// in float64, so that the mean of thousands of tokens is as exact as that of
// one. There must be at least one token.
func Mean(dst, states []float32) {
	d := len(dst)
	scale := 1 / float64(len(states)/d)
	col := 0
	for ; col+lane <= d; col += lane {
		var sum [lane]float64
		for at := col; at < len(states); at += d {
			for k, x := range (*[lane]float32)(states[at:]) {
				sum[k] += float64(x)
			}
		}
		for k := range sum {
			dst[col+k] = float32(sum[k] * scale)
		}
	}
	for ; col < d; col++ {
		var sum float64
		for at := col; at < len(states); at += d {
			sum += float64(states[at])
		}
		dst[col] = float32(sum * scale)
	}
}

// CLS copies the first token's state into dst.
func CLS(dst, states []float32) { copy(dst, states) }

// Last copies the last token's state into dst.
func Last(dst, states []float32) { copy(dst, states[len(states)-len(dst):]) }
