package main_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/synapse-module/workers/engines/fake"
	"github.com/synapse-module/workers/internal/benchkit"
	"github.com/synapse-module/workers/internal/wiretest"
	"github.com/synapse-module/workers/workerkit"
)

// BenchmarkWire is the wire alone: an engine that costs next to nothing, over the
// socket and in process.
func BenchmarkWire(b *testing.B) {
	path := filepath.Join(b.TempDir(), "model.fake")
	if err := os.WriteFile(path, []byte(fake.Magic+"\n"), 0o600); err != nil {
		b.Fatal(err)
	}
	pair := benchkit.Load(b, wiretest.Build(b, "cmd/worker-fake"), nil, fake.New(nil), path, fake.Format, `{"dims":384}`)
	b.Run("ping", pair.Ping)
	rows := slices.Repeat([][]int32{{1, 2, 3, 4, 5, 6, 7, 8}}, 64)
	b.Run("64x384", func(b *testing.B) { pair.Embed(b, rows, workerkit.PoolingCLS) })
}
