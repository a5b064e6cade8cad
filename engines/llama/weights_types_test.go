package llama

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/synapse-module/workers/engines/llama/internal/gguf"
	"github.com/synapse-module/workers/engines/llama/internal/ggufwriter"
	"github.com/synapse-module/workers/protocol"
)

// withType is the model of a file with one tensor in another type, its data zero.
func withType(file []byte, h *gguf.File, which int, typ gguf.Type) []byte {
	own := ggufwriter.Buffer{}
	own.Text(h.Tensors[0].Name) // where the header's list of tensors begins
	start := bytes.LastIndex(file[:h.DataOffset], own.Bytes())
	out := ggufwriter.Buffer{}
	out.Write(file[:start])
	var data bytes.Buffer
	for i, t := range h.Tensors {
		content := file[t.Offset : t.Offset+t.Bytes]
		if i == which {
			elements, size := typ.Block()
			_, was := t.Type.Block() // one element's
			content = make([]byte, t.Bytes/was/elements*size)
			t.Type = typ
		}
		out.Text(t.Name)
		out.Put(uint32(len(t.Dims)))
		for _, d := range t.Dims {
			out.Put(uint64(d))
		}
		out.Put(uint32(t.Type), uint64(data.Len()))
		data.Write(content)
		data.Write(make([]byte, -data.Len()&31))
	}
	out.Write(make([]byte, -out.Len()&31))
	out.Write(data.Bytes())
	return out.Bytes()
}

// TestATensorOfAnyTypeReachesNoAssertion: each tensor of each architecture that is
// held to a reference is computed with or refused, in floats, integers, a type that
// every kernel knows and one that few do. The library alone aborts for a bias, a norm or a table of segments in
// anything but F32, and calls nothing for weights in I32.
func TestATensorOfAnyTypeReachesNoAssertion(t *testing.T) {
	files := map[string][]byte{"tiny bert": tinyBERT().file.Bytes(), "tiny decoder": tinyDecoder().file.Bytes(), "tiny reranker": tinyReranker().file.Bytes()}
	for _, name := range slices.Sorted(maps.Keys(tinyReferences(t))) {
		if differently[name] == nil {
			files[name] = tinyFile(t, name)
		}
	}
	refused, loaded := 0, 0
	for name, file := range files {
		h, err := gguf.Parse(bytes.NewReader(file), int64(len(file)))
		if err != nil {
			t.Fatal(err)
		}
		for i, tensor := range h.Tensors {
			if strings.HasPrefix(tensor.Name, "blk.") && !strings.HasPrefix(tensor.Name, "blk.0.") || tensor.Type != gguf.F32 {
				continue
			}
			for _, typ := range []gguf.Type{gguf.F16, gguf.BF16, gguf.I32, typeQ8_0, typeNVFP4} {
				if elements, _ := typ.Block(); tensor.Dims[0]%elements != 0 {
					continue
				}
				m, err := loadBytes(t, withType(file, h, i, typ), `{"context_length": 8, "weights": "file"}`)
				var refusal *protocol.Error
				switch {
				case err == nil:
					loaded++
					use(t, m)
				case !errors.As(err, &refusal) || refusal.Code != protocol.CodeArtifactInvalid:
					t.Errorf("%s: %s in %s: %v", name, tensor.Name, typ, err)
				default:
					refused++
				}
			}
		}
	}
	t.Logf("%d were refused, %d loaded", refused, loaded)
	if refused == 0 || loaded == 0 {
		t.Error("the files do not test what they should")
	}
}

// TestTypesThatModelsHave: matrices in any float or quantised type, and the table of
// experts' numbers, are not what checkTypes refuses.
func TestTypesThatModelsHave(t *testing.T) {
	for _, c := range []struct {
		tensor gguf.Tensor
		ok     bool
	}{
		{gguf.Tensor{Name: "blk.0.attn_q.weight", Dims: []int64{32, 32}, Type: gguf.F16}, true},
		{gguf.Tensor{Name: "position_embd.weight", Dims: []int64{32, 32}, Type: typeQ8_0}, true},
		{gguf.Tensor{Name: headOutput, Dims: []int64{32, 1}, Type: gguf.F16}, true},
		{gguf.Tensor{Name: "blk.1.ffn_gate_tid2eid.weight", Dims: []int64{6, 32}, Type: gguf.I32}, true},
		{gguf.Tensor{Name: "blk.0.attn_q.weight", Dims: []int64{32, 32}, Type: gguf.I32}, false},
		{gguf.Tensor{Name: "blk.0.attn_norm.weight", Dims: []int64{32, 1}, Type: gguf.F16}, false},
		{gguf.Tensor{Name: "blk.0.attn_q.bias", Dims: []int64{32}, Type: gguf.BF16}, false},
		{gguf.Tensor{Name: "token_types.weight", Dims: []int64{32, 2}, Type: typeQ8_0}, false},
	} {
		if err := checkTypes(&gguf.File{Tensors: []gguf.Tensor{c.tensor}}); (err == nil) != c.ok {
			t.Errorf("%s in %s: %v", c.tensor.Name, c.tensor.Type, err)
		}
	}
}
