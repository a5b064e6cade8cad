//go:build cgo

package main_test

import (
	"slices"
	"testing"

	"github.com/synapse-module/workers/engines/onnx"
	"github.com/synapse-module/workers/internal/assetstest"
	"github.com/synapse-module/workers/internal/benchkit"
	"github.com/synapse-module/workers/internal/wiretest"
	"github.com/synapse-module/workers/workerkit"
)

// BenchmarkMiniLM is the wire's share of real work: 32 rows of 32 tokens through
// MiniLM on one thread, over the socket and in process.
func BenchmarkMiniLM(b *testing.B) {
	lib := assetstest.LibDir(b, "onnxruntime")
	engine, err := onnx.Open(workerkit.Setup{LibDir: lib, Log: benchkit.Discard})
	if err != nil {
		b.Fatal(err)
	}
	pair := benchkit.Load(b, wiretest.Build(b, "cmd/worker-onnx"), []string{"--engine-lib", lib}, engine,
		assetstest.Path(b, "minilm-onnx-f32"), "onnx", `{"pooling":"mean","threads":1}`)
	row := append(append([]int32{101}, slices.Repeat([]int32{7592, 2088, 2003}, 10)...), 102)
	b.Run("32x32", func(b *testing.B) { pair.Embed(b, slices.Repeat([][]int32{row}, 32), workerkit.PoolingMean) })
}
