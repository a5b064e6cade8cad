//go:build cgo

package onnx

import (
	"math"
	"slices"
	"testing"

	"github.com/synapse-module/workers/workerkit"
)

// mixedRows makes rows of token ids between [CLS] and [SEP], of lengths from 3
// to most.
func mixedRows(n, most int) [][]int32 {
	rows := make([][]int32, n)
	for i := range rows {
		length := 3 + (i*i*7+i*11)%(most-2)
		rows[i] = make([]int32, length)
		for k := range rows[i] {
			rows[i][k] = int32(1996 + (i*131+k*k*17+k*29)%20000)
		}
		rows[i][0], rows[i][length-1] = 101, 102
	}
	return rows
}

func maxDifference(a, b []float32) float64 {
	worst := 0.0
	for i := range a {
		worst = max(worst, math.Abs(float64(a[i])-float64(b[i])))
	}
	return worst
}

func normalized(v []float32) []float32 {
	var sum float64
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	out := slices.Clone(v)
	for i := range out {
		out[i] = float32(float64(out[i]) / math.Sqrt(sum))
	}
	return out
}

func TestReport02_HelloWorld(t *testing.T) {
	want := []float32{-0.034477, 0.031023, 0.006735, 0.026109, -0.039362, -0.160302}
	for _, asset := range []string{"minilm-onnx-f32", "minilm-jar-onnx-f32"} {
		m := loadAsset(t, asset, "")
		if d := m.Describe(); d.Dims != 384 || d.MaxTokens != 512 || d.VocabSize != 30522 {
			t.Errorf("%s is described as %+v", asset, d)
		}
		got := normalized(embed(t, m, workerkit.PoolingMean, []int32{101, 7592, 2088, 102})[0])
		if worst := maxDifference(want, got); worst > 2e-6 {
			t.Errorf("%s: %v, want %v", asset, got[:len(want)], want)
		}
	}
}

// Rows alone, in batches of any size and in any order are the same; so are
// repeats, to the bit.
func TestReport10_BatchesOfFloatModels(t *testing.T) {
	m := loadAsset(t, "minilm-jar-onnx-f32", "")
	rows := mixedRows(64, 60)
	alone := make([][]float32, len(rows))
	for i, row := range rows {
		alone[i] = normalized(embed(t, m, workerkit.PoolingMean, row)[0])
	}
	for _, size := range []int{2, 15, 16, 17, 64} {
		for from := 0; from < len(rows); from += size {
			part := rows[from:min(from+size, len(rows))]
			for i, v := range embed(t, m, workerkit.PoolingMean, part...) {
				if worst := maxDifference(alone[from+i], normalized(v)); worst > 1e-5 {
					t.Fatalf("batches of %d, row %d: differs from alone by %g", size, from+i, worst)
				}
			}
		}
	}
	backwards := slices.Clone(rows)
	slices.Reverse(backwards)
	for i, v := range embed(t, m, workerkit.PoolingMean, backwards...) {
		if worst := maxDifference(alone[len(rows)-1-i], normalized(v)); worst > 1e-5 {
			t.Fatalf("backwards, row %d: differs from alone by %g", i, worst)
		}
	}
}

func TestReport08_RepeatsAreBitEqual(t *testing.T) {
	m := loadAsset(t, "minilm-jar-onnx-f32", "")
	rows := mixedRows(3, 40)
	first := embed(t, m, workerkit.PoolingLast, rows...)
	for range 20 {
		for i, v := range embed(t, m, workerkit.PoolingLast, rows...) {
			if !slices.Equal(first[i], v) {
				t.Fatalf("row %d of a repeat differs by %g", i, maxDifference(first[i], v))
			}
		}
	}
}

func TestReport11_ShortBesideLongestIsFinite(t *testing.T) {
	m := loadAsset(t, "minilm-jar-onnx-f32", "")
	m.(*encoder).width = 512 // one call of one width, which the cost of padding would never choose
	for i, v := range embed(t, m, workerkit.PoolingMean, mixedRows(1, 5)[0], mixedRows(40, 512)[39], make([]int32, 512)) {
		if slices.ContainsFunc(v, func(x float32) bool { return math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) }) {
			t.Errorf("row %d holds a value that is not finite", i)
		}
	}
}

// Company moves the rows of a dynamically quantised model; here it has none.
func TestQuantizedModelsAreInvariant(t *testing.T) {
	for _, asset := range []string{"minilm-jar-onnx-int8", "bge-small-onnx-int8", "e5-small-onnx-int8"} {
		t.Run(asset, func(t *testing.T) {
			m := loadAsset(t, asset, "")
			rows := mixedRows(12, 40)
			for i, v := range embed(t, m, workerkit.PoolingMean, rows...) {
				if together := slices.Clone(v); !slices.Equal(together, embed(t, m, workerkit.PoolingMean, rows[i])[0]) {
					t.Fatalf("row %d differs alone and in a request of %d", i, len(rows))
				}
			}
		})
	}
}

// The poolings must differ on a real model, or a swapped one could not be seen.
func TestReport01_PoolingsDiffer(t *testing.T) {
	m := loadAsset(t, "bge-small-onnx-f32", `{"pooling": "cls"}`)
	if got := m.Describe().DefaultPooling; got != workerkit.PoolingCLS {
		t.Errorf("the default pooling is %q", got)
	}
	row := mixedRows(1, 20)[0]
	cls, mean := embed(t, m, workerkit.PoolingCLS, row)[0], embed(t, m, workerkit.PoolingMean, row)[0]
	if maxDifference(normalized(cls), normalized(mean)) < 0.01 {
		t.Error("cls and mean give the same vector")
	}
}
