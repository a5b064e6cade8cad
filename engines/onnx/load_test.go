//go:build cgo

package onnx

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/synapse-module/workers/engines/onnx/internal/onnxfile"
	"github.com/synapse-module/workers/engines/onnx/internal/onnxtest"
	"github.com/synapse-module/workers/protocol"
	"github.com/synapse-module/workers/workerkit"
)

// good is loaded after each refusal: the engine must be as sound as before.
func good(t *testing.T) {
	t.Helper()
	e := onnxtest.BERT()
	wantVectors(t, mustLoad(t, e.Model(), ""), e, 1e-5)
}

func TestReport26_BytesThatAreNoModel(t *testing.T) {
	model := onnxtest.BERT().Model()
	random := make([]byte, 4096)
	source := rand.New(rand.NewPCG(1, 2))
	for i := range random {
		random[i] = byte(source.Uint32())
	}
	for name, b := range map[string][]byte{
		"empty":       {},
		"random":      random,
		"half":        model[:len(model)/2],
		"one short":   model[:len(model)-1],
		"zeros":       make([]byte, 1000),
		"text":        []byte("this is a pointer to a large file\n"),
		".ort format": append([]byte{24, 0, 0, 0}, "ORTM and so on"...),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := loadBytes(t, b, "")
			wantCode(t, err, protocol.CodeArtifactInvalid)
		})
	}
	good(t)
}

// A flipped bit may leave a sound model with another weight, and must leave a
// sound engine in any case.
func TestReport27_FlippedBits(t *testing.T) {
	model := onnxtest.BERT().Model()
	refused := 0
	for bit := 0; bit < 8*len(model); bit += 8*41 + 3 {
		b := bytes.Clone(model)
		b[bit/8] ^= 1 << (bit % 8)
		m, err := loadBytes(t, b, "")
		if err == nil {
			row := make([]int32, m.Describe().MaxTokens)
			_, err = m.(workerkit.Embedder).Embed(t.Context(), [][]int32{row}, workerkit.PoolingMean)
		}
		if err != nil {
			refused++
		}
	}
	if refused == 0 {
		t.Error("no flipped bit was ever refused: the test flips nothing that matters")
	}
	good(t)
}

func TestLoadRefuses(t *testing.T) {
	encoder := func(change func(*onnxtest.Encoder)) []byte {
		e := onnxtest.BERT()
		change(&e)
		return e.Model()
	}
	three := onnxtest.BERT()
	three.Types = ""
	extraInput := three.Graph()
	extraInput.Input("pixel_values", onnxfile.Float, -1, 3, 224, 224)
	twoMore := onnxtest.BERT()
	twoMore.Types = ""
	unknownInputs := twoMore.Graph()
	unknownInputs.Input("a", onnxfile.Int64, -1, -1)
	unknownInputs.Input("b", onnxfile.Int64, -1, -1)
	missingNode := onnxtest.BERT().Graph()
	missingNode.Node("Identity", []string{"nowhere"}, []string{"nothing"})
	unknownOp := onnxtest.BERT().Graph()
	unknownOp.Node("FlashThing", []string{"x"}, []string{"nothing"})

	for _, c := range []struct {
		name   string
		model  []byte
		config string
		code   protocol.Code
		says   []string
	}{
		{"pooled output", encoder(func(e *onnxtest.Encoder) { e.Pooled = true }), "", protocol.CodeArtifactInvalid, []string{"hidden states", "last_hidden_state"}},
		{"fixed batch", encoder(func(e *onnxtest.Encoder) { e.Batch = 4 }), "", protocol.CodeArtifactInvalid, []string{"4 rows"}},
		{"fixed length without a mask", encoder(func(e *onnxtest.Encoder) { e.Mask, e.Width = "", 14 }), "", protocol.CodeArtifactInvalid, []string{"mask"}},
		{"input that is no encoder's", extraInput.Model(), "", protocol.CodeArtifactInvalid, []string{"pixel_values"}},
		{"inputs without a role", unknownInputs.Model(), "", protocol.CodeArtifactInvalid, []string{"the graph's input a (int64"}},
		{"float ids", encoder(func(e *onnxtest.Encoder) { e.IDType = onnxfile.Float }), "", protocol.CodeArtifactInvalid, []string{"input_ids"}},
		{"weights in another file", encoder(func(e *onnxtest.Encoder) { e.Sidecar = "model.onnx_data" }), "", protocol.CodeArtifactInvalid, []string{"model.onnx_data", "directory"}},
		{"a value from nowhere", missingNode.Model(), "", protocol.CodeArtifactInvalid, []string{"nowhere"}},
		{"an operator that is not there", unknownOp.Model(), "", protocol.CodeArtifactInvalid, []string{"FlashThing"}},
		{"no limit", encoder(func(e *onnxtest.Encoder) { e.Positions = onnxtest.NoPositions }), "", protocol.CodeConfigInvalid, []string{"max_tokens"}},
		{"limit over the graph's", onnxtest.BERT().Model(), `{"max_tokens": 17}`, protocol.CodeConfigInvalid, []string{"max_tokens", "16"}},
		{"vocabulary over the graph's", onnxtest.BERT().Model(), `{"vocab_size": 101}`, protocol.CodeConfigInvalid, []string{"vocab_size", "100"}},
		{"no thread", onnxtest.BERT().Model(), `{"threads": 0}`, protocol.CodeConfigInvalid, []string{"threads"}},
		{"an unknown member", onnxtest.BERT().Model(), `{"thread": 2}`, protocol.CodeConfigInvalid, []string{"thread is unknown"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := loadBytes(t, c.model, c.config)
			wantCode(t, err, c.code, c.says...)
		})
	}
	good(t)
}

// The memory is asked for before it is taken: a file larger than the machine is
// refused, and the kernel has nothing to kill.
func TestOutOfMemoryIsSaidBeforeLoading(t *testing.T) {
	const huge = 1 << 50
	model := protowire.AppendTag(onnxtest.BERT().Model(), 1000, protowire.BytesType)
	model = protowire.AppendVarint(model, huge) // of which the file has nothing
	path := filepath.Join(t.TempDir(), "model.onnx")
	if err := os.WriteFile(path, model, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	c, err := workerkit.DecodeConfig(options(), nil)
	if err != nil {
		t.Fatal(err)
	}
	a := workerkit.Artifact{Path: path, File: f, Size: int64(len(model)) + huge, Name: path}
	_, err = open(t).Load(t.Context(), a, c)
	wantCode(t, err, protocol.CodeOOM, "MiB")
}
