//go:build cgo

package onnx

import (
	"math/rand/v2"
	"os"
	"runtime/debug"
	"testing"

	"github.com/shirou/gopsutil/v4/process"

	"github.com/synapse-module/workers/internal/assetstest"
	"github.com/synapse-module/workers/workerkit"
)

// residentMiB is this process's resident memory, without garbage of Go's.
func residentMiB(tb testing.TB) float64 {
	tb.Helper()
	debug.FreeOSMemory()
	p, err := process.NewProcess(int32(os.Getpid()))
	if err != nil {
		tb.Fatal(err)
	}
	info, err := p.MemoryInfo()
	if err != nil {
		tb.Fatal(err)
	}
	return float64(info.RSS) / (1 << 20)
}

// varied embeds a batch of random shape.
func varied(tb testing.TB, m workerkit.Model, source *rand.Rand, mostRows, mostTokens int) {
	tb.Helper()
	rows := make([][]int32, 1+source.IntN(mostRows))
	for i := range rows {
		rows[i] = make([]int32, 1+source.IntN(mostTokens))
		for k := range rows[i] {
			rows[i][k] = int32(source.IntN(30522))
		}
	}
	if _, err := m.(workerkit.Embedder).Embed(tb.Context(), rows, workerkit.PoolingMean); err != nil {
		tb.Fatal(err)
	}
}

func TestReport33_MemoryIsFlatOverVariedShapes(t *testing.T) {
	m := loadAsset(t, "minilm-jar-onnx-f32", "")
	source := rand.New(rand.NewPCG(5, 6))
	var after100 float64
	for i := range 300 {
		varied(t, m, source, 8, 64)
		if i == 99 {
			after100 = residentMiB(t)
		}
	}
	after300 := residentMiB(t)
	t.Logf("resident after 100 batches %.0f MiB, after 300 %.0f MiB", after100, after300)
	if after300 > 1.05*after100 {
		t.Errorf("resident memory grew from %.0f to %.0f MiB over 200 more batches", after100, after300)
	}
}

// modelMiB is what one load of the model below takes: a leak would show forty
// times that.
const modelMiB = 64

func TestReport34_UnloadGivesMemoryBack(t *testing.T) {
	path := assetstest.Path(t, "minilm-jar-onnx-int8")
	var after10 float64
	for i := range 50 {
		m, err := loadFileUnclosed(t, path, "")
		if err != nil {
			t.Fatal(err)
		}
		embed(t, m, workerkit.PoolingMean, mixedRows(4, 20)...)
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
		if i == 9 {
			after10 = residentMiB(t)
		}
	}
	after50 := residentMiB(t)
	t.Logf("resident after 10 loads %.0f MiB, after 50 %.0f MiB", after10, after50)
	if after50 > after10+modelMiB {
		t.Errorf("resident memory grew from %.0f to %.0f MiB over 40 more loads", after10, after50)
	}
}
