//go:build cgo

package onnx

import (
	"testing"

	"github.com/synapse-module/workers/engines/onnx/internal/onnxtest"
	"github.com/synapse-module/workers/workerkit"
)

func TestSteadyStateAllocatesNothing(t *testing.T) {
	m := mustLoad(t, onnxtest.BERT().Model(), "")
	rows := [][]int32{{1, 2, 3}, {4}, {5, 6, 7, 8, 9, 10}, {11, 12}}
	ctx, e := t.Context(), m.(workerkit.Embedder)
	run := func() {
		if _, err := e.Embed(ctx, rows, workerkit.PoolingMean); err != nil {
			t.Fatal(err)
		}
	}
	run()
	if n := testing.AllocsPerRun(20, run); n != 0 {
		t.Errorf("a request of a shape seen before allocates %v times", n)
	}
}

func BenchmarkEmbed(b *testing.B) {
	for _, asset := range []string{"minilm-jar-onnx-f32", "minilm-jar-onnx-int8"} {
		b.Run(asset, func(b *testing.B) {
			m := loadAsset(b, asset, "")
			rows := mixedRows(64, 128)
			tokens := 0
			for _, row := range rows {
				tokens += len(row)
			}
			e := m.(workerkit.Embedder)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := e.Embed(b.Context(), rows, workerkit.PoolingMean); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(tokens*b.N)/b.Elapsed().Seconds(), "tokens/s")
		})
	}
}
