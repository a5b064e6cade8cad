package llama

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/synapse-module/workers/certify/suites"
	"github.com/synapse-module/workers/workerkit"
)

var poolings = []workerkit.Pooling{workerkit.PoolingMean, workerkit.PoolingCLS, workerkit.PoolingLast}

func TestDescription(t *testing.T) {
	d := loadAsset(t, "minilm-gguf-f32", "").Describe()
	if d.Arch != "bert" || d.Dims != 384 || d.MaxTokens != 512 || d.VocabSize != 30522 ||
		d.DefaultPooling != workerkit.PoolingMean || !slices.Equal(d.Poolings, poolings) || d.Grammar {
		t.Errorf("%+v", d)
	}
	if d := loadAsset(t, "bge-small-gguf-f32", `{"context_length": 100}`).Describe(); d.DefaultPooling != workerkit.PoolingCLS || d.MaxTokens != 100 {
		t.Errorf("%+v", d)
	}
}

// TestReference holds every precision to sentence-transformers in fp32, over the
// rows that are hardest for f16 and q8_0 (few tokens, unknown words, random ids) and some of all
// lengths; `make certify` takes all of them. With llama.cpp's own GELU f32 is where
// the last line says.
func TestReference(t *testing.T) {
	s, err := suites.Load("all-minilm-l6-v2")
	if err != nil {
		t.Fatal(err)
	}
	hardest := []int{0, 204, 245, 261, 288, 337, 354}
	rows, reference := [][]int32{}, [][]float32{}
	texts := map[int]bool{}
	for i, in := range s.Inputs {
		if i%24 == 0 && len(in.IDs) <= 128 || slices.Contains(hardest, i) {
			texts[len(rows)] = in.Text != nil && len(in.IDs) >= 24
			rows, reference = append(rows, in.IDs), append(reference, s.Reference[i])
		}
	}
	for _, c := range []struct {
		name, config string
		least, text  float64 // cosines: of every row, of a text of 24 ids or more
		most         float64
	}{
		{"minilm-gguf-f32", "", 0.9999998, 0.9999998, 1},
		{"minilm-gguf-f16", "", 0.999998, 0.999999, 1},
		{"minilm-gguf-q8_0", "", 0.999, 0.999, 0.9995},
		{"minilm-gguf-q8_0", `{"weights": "file"}`, 0.9975, 0.9985, 0.9995},
		{"minilm-gguf-f32", `{"gelu": "tanh"}`, 0.99999, 0.99999, 0.999995},
	} {
		lowest, lowestText := 1.0, 1.0
		for i, v := range embed(t, loadAsset(t, c.name, c.config), workerkit.PoolingMean, rows...) {
			cos := cosine(v, reference[i])
			lowest = min(lowest, cos)
			if texts[i] {
				lowestText = min(lowestText, cos)
			}
		}
		t.Logf("%s %s: %d rows, least cosine %.8f, of texts %.8f", c.name, c.config, len(rows), lowest, lowestText)
		if lowest < c.least || lowestText < c.text || lowest > c.most {
			t.Errorf("%s %s: want %v, texts %v, and no more than %v", c.name, c.config, c.least, c.text, c.most)
		}
	}
}

func TestPoolingsDiffer(t *testing.T) {
	m := loadAsset(t, "minilm-gguf-f32", "")
	var got [][]float32
	for _, p := range poolings {
		got = append(got, embed(t, m, p, row(9, 1))[0])
	}
	for i := range got {
		for k := range i {
			if c := cosine(got[i], got[k]); c > 0.999 {
				t.Errorf("%s and %s are the same: cosine %v", poolings[i], poolings[k], c)
			}
		}
	}
	// One token is its own mean, first and last.
	for _, p := range poolings {
		if d := directionDiff(embed(t, m, p, []int32{7592})[0], embed(t, m, poolings[0], []int32{7592})[0]); d > sameVector {
			t.Errorf("%s of one token differs from the mean by %v", p, d)
		}
	}
}

// sameVector is how far the directions of one row's vectors may lie apart, by the
// largest difference of a component after normalising. llama.cpp's fused attention
// takes keys and values in f16, and a short row alone is computed without it: up to
// 6.4e-5 was seen.
const sameVector = 1e-4

// TestARowIsTheSameInAnyBatch: alone, beside long and short rows, in batches of
// every size round the powers of two, and of the greatest length.
func TestARowIsTheSameInAnyBatch(t *testing.T) {
	m := loadAsset(t, "minilm-gguf-f32", "")
	rows := [][]int32{row(3, 1), row(200, 5), row(2, 4), {7592}, row(17, 6), row(63, 7), row(64, 8)}
	for i := range 55 {
		rows = append(rows, row(2+i%7, int32(10+i)))
	}
	rows = append(slices.Insert(rows, 16, row(512, 2)), row(511, 3))
	var alone [][]float32
	for _, r := range rows {
		alone = append(alone, embed(t, m, workerkit.PoolingMean, r)...)
	}
	for _, n := range []int{1, 2, 15, 16, 17, 64} {
		for i, v := range embed(t, m, workerkit.PoolingMean, rows[:n]...) {
			if d := directionDiff(v, alone[i]); d > sameVector {
				t.Errorf("row %d of %d, %d tokens: differs from itself alone by %v", i, n, len(rows[i]), d)
			}
		}
	}
	var single [][]float32
	for i := range 5 {
		single = append(single, embed(t, m, workerkit.PoolingCLS, []int32{int32(2000 + i)})...)
	}
	// Rows of one token, up to more rows than one batch has sequences.
	for _, n := range []int{1, 2, 15, 16, 17, 64, 65, 130} {
		ids := make([][]int32, n)
		for i := range ids {
			ids[i] = []int32{int32(2000 + i%5)}
		}
		for i, v := range embed(t, m, workerkit.PoolingCLS, ids...) {
			if d := directionDiff(v, single[i%5]); d > sameVector {
				t.Errorf("row %d of %d rows of one token: differs by %v", i, n, d)
			}
		}
	}
}

// directionDiff is the largest difference of a component of two vectors scaled
// to length 1.
func directionDiff(a, b []float32) (most float64) {
	length := func(v []float32) (sum float64) {
		for _, x := range v {
			sum += float64(x) * float64(x)
		}
		return math.Sqrt(sum)
	}
	la, lb := length(a), length(b)
	for i := range a {
		most = max(most, math.Abs(float64(a[i])/la-float64(b[i])/lb))
	}
	return most
}

func TestRepeatsAreBitEqual(t *testing.T) {
	m := loadAsset(t, "minilm-gguf-f32", "")
	rows := [][]int32{row(5, 1), row(120, 2), row(33, 3)}
	want := embed(t, m, workerkit.PoolingMean, rows...)
	for range 8 {
		for i, v := range embed(t, m, workerkit.PoolingMean, rows...) {
			if !slices.Equal(v, want[i]) {
				t.Fatalf("row %d differs from the first run", i)
			}
		}
	}
}

// TestIDsAreUsedAsGiven: nothing is added, so a text with its end mark and the
// same without are two rows.
func TestIDsAreUsedAsGiven(t *testing.T) {
	m := loadAsset(t, "minilm-gguf-f32", "")
	v := embed(t, m, workerkit.PoolingLast, []int32{101, 7592, 2088, 102}, []int32{101, 7592, 2088})
	if c := cosine(v[0], v[1]); c > 0.999 {
		t.Errorf("with and without [SEP]: cosine %v", c)
	}
}

// TestALongRowEnlargesTheContext: with small batches the first context is small,
// and a longer row gets a larger one and the same vector.
func TestALongRowEnlargesTheContext(t *testing.T) {
	small := loadAsset(t, "minilm-gguf-f32", `{"batch_tokens": 8}`)
	large := loadAsset(t, "minilm-gguf-f32", "")
	for _, n := range []int{8, 9, 300, 512, 4} {
		a := embed(t, small, workerkit.PoolingMean, row(n, 1), row(3, 2), row(n, 3))
		for i, v := range embed(t, large, workerkit.PoolingMean, row(n, 1), row(3, 2), row(n, 3)) {
			if d := directionDiff(v, a[i]); d > sameVector {
				t.Errorf("row %d, length %d: differs by %v", i, n, d)
			}
		}
	}
}

func TestTheEndOfTheModuleStopsAComputation(t *testing.T) {
	m := loadAsset(t, "minilm-gguf-f32", `{"threads": 1}`)
	rows := make([][]int32, 400)
	for i := range rows {
		rows[i] = row(512, int32(i))
	}
	e := m.(workerkit.Embedder)
	stopsInTime(t, func(ctx context.Context) error {
		_, err := e.Embed(ctx, rows, workerkit.PoolingMean) // all of it would take a minute
		return err
	})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := e.Embed(ended, rows[:1], workerkit.PoolingMean); !errors.Is(err, context.Canceled) {
		t.Errorf("an ended context: got %v", err)
	}
	// The model is as good as before.
	fresh := loadAsset(t, "minilm-gguf-f32", `{"threads": 1}`)
	if d := maxDiff(embed(t, m, workerkit.PoolingMean, rows[0])[0], embed(t, fresh, workerkit.PoolingMean, rows[0])[0]); d > 1e-6 {
		t.Errorf("after the abort a row differs by %v", d)
	}
}

// stopsInTime cancels a long computation in its midst, and wants it back within 100
// ms. On a machine that is busy with other tests one try may have to wait for a core,
// so the quickest of some is taken.
func stopsInTime(t *testing.T, compute func(context.Context) error) {
	t.Helper()
	quickest := time.Hour
	for range 5 {
		ctx, cancel := context.WithCancel(t.Context())
		var canceled atomic.Int64
		time.AfterFunc(50*time.Millisecond, func() {
			canceled.Store(time.Now().UnixNano())
			cancel()
		})
		if err := compute(ctx); !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v", err)
		}
		quickest = min(quickest, time.Since(time.Unix(0, canceled.Load())))
	}
	if quickest > 100*time.Millisecond {
		t.Errorf("the quickest of 5 tries came back %v after its end", quickest)
	}
}
