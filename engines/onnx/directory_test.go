//go:build cgo

package onnx

import (
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/synapse-module/workers/engines/onnx/internal/onnxtest"
	"github.com/synapse-module/workers/protocol"
	"github.com/synapse-module/workers/workerkit"
)

// files are a directory artifact's, by name.
type files map[string]string

// loadDir loads a directory as workerkit does.
func loadDir(tb testing.TB, f files, config string) (workerkit.Model, error) {
	tb.Helper()
	dir := tb.TempDir()
	size := int64(0)
	for name, content := range f {
		at := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			tb.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(content), 0o600); err != nil {
			tb.Fatal(err)
		}
		size += int64(len(content))
	}
	e := open(tb)
	c, err := workerkit.DecodeConfig(e.Info().Options, jsontext.Value(config))
	if err != nil {
		return nil, err
	}
	m, err := e.Load(tb.Context(), workerkit.Artifact{Path: dir, Size: size, Format: "onnx", Name: "the artifact"}, c)
	if err == nil {
		tb.Cleanup(func() {
			if err := m.Close(); err != nil {
				tb.Error(err)
			}
		})
	}
	return m, err
}

func mustLoadDir(tb testing.TB, f files, config string) workerkit.Model {
	tb.Helper()
	m, err := loadDir(tb, f, config)
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

const meanPooling = `{"word_embedding_dimension": 8, "pooling_mode_cls_token": false, "pooling_mode_mean_tokens": true, "pooling_mode_max_tokens": false}`

func TestDirectories(t *testing.T) {
	e := onnxtest.BERT()
	model := string(e.Model())
	for _, c := range []struct {
		name      string
		files     files
		config    string
		maxTokens int
		pooling   workerkit.Pooling
		arch      string
	}{
		{"a graph alone", files{"model.onnx": model}, "", 16, "", "onnx"},
		{"under another name", files{"encoder.onnx": model}, "", 16, "", "onnx"},
		{"in a folder", files{"onnx/model.onnx": model, "onnx/model_other.onnx": "junk"}, "", 16, "", "onnx"},
		{"one of several", files{"a.onnx": "junk", "b/c.onnx": model}, `{"file": "b/c.onnx"}`, 16, "", "onnx"},
		{"config.json", files{"model.onnx": model, "config.json": `{"model_type": "bert", "vocab_size": 100, "max_position_embeddings": 16}`}, "", 16, "", "bert"},
		{"a sentence-transformer", files{
			"onnx/model.onnx": model, "config.json": `{"model_type": "bert"}`, "1_Pooling/config.json": meanPooling,
			"modules.json":              `[{"idx": 0, "path": "", "type": "sentence_transformers.models.Transformer"}, {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}, {"path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}]`,
			"sentence_bert_config.json": `{"max_seq_length": 12, "do_lower_case": false}`, "tokenizer_config.json": `{"model_max_length": 14}`,
		}, "", 12, workerkit.PoolingMean, "bert"},
		{"pooling without modules.json", files{"model.onnx": model, "1_Pooling/config.json": `{"pooling_mode": "lasttoken"}`}, "", 16, workerkit.PoolingLast, "onnx"},
		{"the tokenizer's limit", files{"model.onnx": model, "tokenizer_config.json": `{"model_max_length": 14}`}, "", 14, "", "onnx"},
		{"a tokenizer without limit", files{"model.onnx": model, "tokenizer_config.json": `{"model_max_length": 1000000000000000019884624838656}`}, "", 16, "", "onnx"},
		{"a limit raised by hand", files{"model.onnx": model, "tokenizer_config.json": `{"model_max_length": 14}`}, `{"max_tokens": 16}`, 16, "", "onnx"},
		{"pooling told by hand", files{"model.onnx": model, "1_Pooling/config.json": meanPooling}, `{"pooling": "cls"}`, 16, workerkit.PoolingCLS, "onnx"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := mustLoadDir(t, c.files, c.config)
			if d := m.Describe(); d.MaxTokens != c.maxTokens || d.DefaultPooling != c.pooling || d.Arch != c.arch {
				t.Errorf("described as %+v", d)
			}
			wantVectors(t, m, e, 1e-5)
		})
	}
}

// The library looks for external data beside the graph, wherever this process
// happens to be.
func TestReport28_ExternalDataFromAnotherDirectory(t *testing.T) {
	e := onnxtest.BERT()
	e.Sidecar = "model.onnx_data"
	g := e.Graph()
	f := files{"onnx/model.onnx": string(g.Model()), "onnx/model.onnx_data": string(g.SidecarBytes())}
	t.Chdir(t.TempDir())
	wantVectors(t, mustLoadDir(t, f, ""), e, 1e-5)

	f["onnx/model.onnx_data"] = f["onnx/model.onnx_data"][:100]
	_, err := loadDir(t, f, "")
	wantCode(t, err, protocol.CodeArtifactInvalid)
	delete(f, "onnx/model.onnx_data")
	_, err = loadDir(t, f, "")
	wantCode(t, err, protocol.CodeArtifactInvalid, "onnx/model.onnx_data", "lacks")
	good(t)
}

func TestExternalDataStaysInTheArtifact(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "weights")
	for _, location := range []string{"../weights", outside, "a/../../weights"} {
		e := onnxtest.BERT()
		e.Sidecar = location
		g := e.Graph()
		if err := os.WriteFile(outside, g.SidecarBytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := loadDir(t, files{"model.onnx": string(g.Model())}, "")
		wantCode(t, err, protocol.CodeArtifactInvalid, "leads out")
	}
}

func TestDirectoryRefuses(t *testing.T) {
	model := string(onnxtest.BERT().Model())
	for _, c := range []struct {
		name   string
		files  files
		config string
		code   protocol.Code
		says   []string
	}{
		{"no graph", files{"README.md": "hello"}, "", protocol.CodeArtifactInvalid, []string{"no .onnx file"}},
		{"several graphs", files{"a.onnx": model, "b.onnx": model}, "", protocol.CodeConfigInvalid, []string{"2 .onnx files", "file", "a.onnx"}},
		{"a file that is not there", files{"a.onnx": model}, `{"file": "b.onnx"}`, protocol.CodeConfigInvalid, []string{"b.onnx"}},
		{"a file outside", files{"a.onnx": model}, `{"file": "../a.onnx"}`, protocol.CodeConfigInvalid, []string{"inside"}},
		{"a broken sidecar", files{"model.onnx": model, "config.json": `{"model_type": `}, "", protocol.CodeArtifactInvalid, []string{"config.json"}},
		{"max pooling", files{"model.onnx": model, "1_Pooling/config.json": `{"pooling_mode_max_tokens": true}`}, "", protocol.CodeArtifactInvalid, []string{"max"}},
		{"two poolings", files{"model.onnx": model, "1_Pooling/config.json": `{"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": true}`}, "", protocol.CodeArtifactInvalid, []string{"cls", "mean"}},
		{"an unknown module", files{"model.onnx": model, "modules.json": `[{"path": "", "type": "x.Transformer"}, {"path": "1_Odd", "type": "x.WeightedLayerPooling"}]`}, "", protocol.CodeArtifactInvalid, []string{"WeightedLayerPooling"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := loadDir(t, c.files, c.config)
			wantCode(t, err, c.code, c.says...)
		})
	}
	_, err := loadBytes(t, []byte(model), `{"file": "model.onnx"}`)
	wantCode(t, err, protocol.CodeConfigInvalid, "file")
}

// A graph that pools itself gives one pooling, the one that is known to be its
// own.
func TestGraphThatPoolsItself(t *testing.T) {
	e := onnxtest.BERT()
	e.Pooled, e.Output = true, "sentence_embedding"
	model := string(e.Model())
	_, err := loadDir(t, files{"model.onnx": model}, "")
	wantCode(t, err, protocol.CodeConfigInvalid, "pooling")
	for _, m := range []workerkit.Model{
		mustLoadDir(t, files{"model.onnx": model, "1_Pooling/config.json": meanPooling}, ""),
		mustLoadDir(t, files{"model.onnx": model}, `{"pooling": "mean"}`),
	} {
		d := m.Describe()
		if len(d.Poolings) != 1 || d.Poolings[0] != workerkit.PoolingMean || d.DefaultPooling != workerkit.PoolingMean || d.Dims != e.Hidden {
			t.Errorf("described as %+v", d)
		}
		// The test graph's mean counts padding, so rows of one length only.
		rows := [][]int32{{1, 2, 3}, {4, 5, 6}}
		for i, got := range embed(t, m, workerkit.PoolingMean, rows...) {
			for col := range got {
				want := 0.0
				for _, s := range e.States(rows[i], nil) {
					want += s[col] / 3
				}
				if math.Abs(float64(got[col])-want) > 1e-5 {
					t.Fatalf("row %d: %v", i, got)
				}
			}
		}
	}
}

// What follows pooling is applied: a layer of 2×8 here, against its arithmetic.
func TestReport14_DenseLayerAfterPooling(t *testing.T) {
	const header = `{"linear.weight": {"dtype": "F32", "shape": [2, 8], "data_offsets": [0, 64]}, "linear.bias": {"dtype": "F32", "shape": [2], "data_offsets": [64, 72]}}`
	file := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	file = append(file, header...)
	for i := range 18 {
		file = binary.LittleEndian.AppendUint32(file, math.Float32bits(float32(i%5)/8-0.25))
	}
	e := onnxtest.BERT()
	m := mustLoadDir(t, files{
		"model.onnx":                string(e.Model()),
		"modules.json":              `[{"path": "", "type": "x.Transformer"}, {"path": "1_Pooling", "type": "x.Pooling"}, {"path": "2_Dense", "type": "x.Dense"}]`,
		"1_Pooling/config.json":     meanPooling,
		"2_Dense/config.json":       `{"in_features": 8, "out_features": 2, "bias": true, "activation_function": "torch.nn.modules.activation.Tanh"}`,
		"2_Dense/model.safetensors": string(file),
	}, "")
	if d := m.Describe(); d.Dims != 2 || len(d.Poolings) != 1 || d.DefaultPooling != workerkit.PoolingMean {
		t.Fatalf("described as %+v", d)
	}
	row := []int32{3, 60, 7}
	got := embed(t, m, workerkit.PoolingMean, row, []int32{1})[0]
	for i := range got {
		sum := float64((16+i)%5)/8 - 0.25
		for _, s := range e.States(row, nil) {
			for col, x := range s {
				sum += x / 3 * (float64((i*8+col)%5)/8 - 0.25)
			}
		}
		if math.Abs(math.Tanh(sum)-float64(got[i])) > 1e-5 {
			t.Errorf("value %d is %g, want %g", i, got[i], math.Tanh(sum))
		}
	}
}
