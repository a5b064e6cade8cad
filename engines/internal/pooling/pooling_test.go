package pooling

import (
	"math"
	"testing"
)

// states makes n×d values that are exact in float32.
func states(n, d int) []float32 {
	s := make([]float32, n*d)
	for i := range s {
		s[i] = float32((i*7)%13) - 6
	}
	return s
}

func TestMean(t *testing.T) {
	for _, shape := range []struct{ n, d int }{{1, 1}, {1, 8}, {3, 7}, {5, 8}, {4, 19}, {512, 384}} {
		s := states(shape.n, shape.d)
		got := make([]float32, shape.d)
		Mean(got, s)
		for col := range shape.d {
			var want float64
			for row := range shape.n {
				want += float64(s[row*shape.d+col])
			}
			if want = float64(float32(want / float64(shape.n))); math.Abs(want-float64(got[col])) > 1e-7 {
				t.Fatalf("%d×%d: column %d is %g, want %g", shape.n, shape.d, col, got[col], want)
			}
		}
	}
}

// A sum in float32 stops growing here: 1 is lost beside 2²⁴.
func TestMeanIsExactOverManyTokens(t *testing.T) {
	const n = 1<<24 + 1<<22
	s := make([]float32, n)
	for i := range s {
		s[i] = 1
	}
	got := make([]float32, 1)
	if Mean(got, s); got[0] != 1 {
		t.Fatalf("the mean of %d ones is %g", n, got[0])
	}
}

func TestCLSAndLast(t *testing.T) {
	s := states(3, 5)
	got := make([]float32, 5)
	if CLS(got, s); got[0] != s[0] || got[4] != s[4] {
		t.Errorf("CLS gave %v", got)
	}
	if Last(got, s); got[0] != s[10] || got[4] != s[14] {
		t.Errorf("Last gave %v", got)
	}
}
