package llama

import (
	"os"
	"testing"

	"github.com/shirou/gopsutil/v4/process"

	"github.com/synapse-module/workers/workerkit"
)

// BenchmarkEmbed computes the same rows of 8 to 256 ids by every precision in turn,
// one thread each, so that what else the machine does meets all alike. It reports
// tokens per second of this process's CPU time, and each as a share of f32's.
func BenchmarkEmbed(b *testing.B) {
	var rows [][]int32
	tokens := 0
	for i := range 64 {
		rows = append(rows, row(8+i*37%249, int32(i)))
		tokens += len(rows[i])
	}
	precisions := []struct{ name, asset, config string }{
		{"f32", "minilm-gguf-f32", ""},
		{"f32-tanh", "minilm-gguf-f32", `{"gelu": "tanh"}`},
		{"f16", "minilm-gguf-f16", ""},
		{"q8_0", "minilm-gguf-q8_0", ""},
		{"q8_0-as-f32", "minilm-gguf-q8_0", `{"weights": "f32"}`},
		{"q8_0-as-it-is", "minilm-gguf-q8_0", `{"weights": "file"}`},
	}
	models := make([]workerkit.Model, len(precisions))
	for i, p := range precisions {
		m, err := loadFile(b, asset(b, p.asset), p.config)
		if err != nil {
			b.Fatal(err)
		}
		models[i] = m
	}
	spent := make([]float64, len(models))
	for b.Loop() {
		for i, m := range models {
			before := cpuSeconds(b)
			embed(b, m, workerkit.PoolingMean, rows...)
			spent[i] += cpuSeconds(b) - before
		}
	}
	b.ReportMetric(0, "ns/op") // of all together, which says nothing
	for i, p := range precisions {
		b.ReportMetric(float64(tokens*b.N)/spent[i], p.name+"-tokens/cpu-s")
		b.ReportMetric(spent[0]/spent[i], p.name+"/f32")
	}
}

// cpuSeconds is what this process has computed so far, in all its threads.
func cpuSeconds(b *testing.B) float64 {
	b.Helper()
	p, err := process.NewProcess(int32(os.Getpid()))
	if err != nil {
		b.Fatal(err)
	}
	t, err := p.Times()
	if err != nil {
		b.Fatal(err)
	}
	return t.User + t.System
}
