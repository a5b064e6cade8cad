//go:build cgo

package onnx

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/synapse-module/workers/engines/onnx/internal/onnxtest"
	"github.com/synapse-module/workers/protocol"
	"github.com/synapse-module/workers/workerkit"
)

// The pinned build for Linux has the CPU alone: what it lacks is refused, never
// replaced.
func TestProviders(t *testing.T) {
	model := onnxtest.BERT().Model()
	for _, name := range []string{"cuda", "tensorrt", "directml", "openvino"} {
		_, err := loadBytes(t, model, `{"providers": ["`+name+`", "cpu"]}`)
		wantCode(t, err, protocol.CodeConfigInvalid, "providers", name)
	}
	_, err := loadBytes(t, model, `{"providers": ["gpu"]}`)
	wantCode(t, err, protocol.CodeConfigInvalid, "gpu", "cuda")
	m := mustLoad(t, model, `{"providers": ["cpu"]}`)
	if m.Describe().Placement != nil {
		t.Errorf("a model on the CPU has a placement: %+v", m.Describe().Placement)
	}
	good(t)
}

// What the profiler says of a session on the CPU: every node ran there.
func TestProfileCountsNodes(t *testing.T) {
	e := onnxtest.BERT()
	path := filepath.Join(t.TempDir(), "model.onnx")
	if err := os.WriteFile(path, e.Model(), 0o600); err != nil {
		t.Fatal(err)
	}
	good(t) // opens the engine
	c, err := workerkit.DecodeConfig(options(), nil)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	src, err := openSource(workerkit.Artifact{Path: path, File: f, Size: info.Size()}, c)
	if err != nil {
		t.Fatal(err)
	}
	p, err := makePlan(src, c)
	if err != nil {
		t.Fatal(err)
	}
	counts, err := profile(path, p, c)
	if err != nil {
		t.Fatal(err)
	}
	if len(counts) != 1 || counts[onCPU] < 5 {
		t.Errorf("nodes by provider: %v", counts)
	}
}
