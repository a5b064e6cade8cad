package llama

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/synapse-module/workers/protocol"
	"github.com/synapse-module/workers/workerkit"
)

// tinyReference is a model of testdata/arch, with what torch computed of it in
// float64 by tools/reference/record_architectures.py.
type tinyReference struct {
	Pooling    string // the model's own, or "rank"
	Activation string // of the feed-forward layers, by transformers' name
	Rows       []struct {
		IDs     []int32
		Vectors map[string][]float64
	}
	Pairs         []scoredPair
	Continuations []continuation // of a generator
}

func tinyReferences(t *testing.T) map[string]tinyReference {
	t.Helper()
	files, err := filepath.Glob("testdata/arch/*.json")
	if err != nil || len(files) == 0 {
		t.Fatal("no reference in testdata/arch:", err)
	}
	references := map[string]tinyReference{}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var r tinyReference
		if err := json.Unmarshal(b, &r); err != nil {
			t.Fatal(err)
		}
		references[strings.TrimSuffix(filepath.Base(file), ".json")] = r
	}
	return references
}

// tinyFile is the GGUF of a reference.
func tinyFile(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata/arch", name+".gguf.zst"))
	if err != nil {
		t.Fatal(err)
	}
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if b, err = d.DecodeAll(b, nil); err != nil {
		t.Fatal(err)
	}
	return b
}

// exactly computes in f32 throughout: what differs then is the model. By default
// attention rounds keys and values to f16.
const exactly = `{"flash_attention": "off", "kv_type": "f32"}`

// How far a vector may be from its reference, by the vector's length.
const (
	exactlyOff = 1e-5
	usuallyOff = 5e-3
	leastCos   = 0.99999
	// llama.cpp looks the tanh form of the GELU up in a table of halves. By the error
	// function, for which it has none, it is 7.9e-4 off, and 2.5e-6 from a reference
	// that has it as well.
	gemmaOff = 8.5e-4
)

// TestArchitectures holds each architecture to its own reference implementation:
// activation, positions, windows, norms, heads and pooling.
func TestArchitectures(t *testing.T) {
	for name, reference := range tinyReferences(t) {
		if differently[name] != nil || reference.Continuations != nil {
			continue
		}
		t.Run(name, func(t *testing.T) {
			for config, most := range map[string]float64{exactly: exactlyOff, "": usuallyOff} {
				if name == "gemma-embedding" {
					most = max(most, gemmaOff)
				}
				m, err := loadBytes(t, tinyFile(t, name), config)
				if name == "modern-bert-reranker-cls" && !open(t).(*engine).lib.ReadsHeadPooling() {
					wantCode(t, err, protocol.CodeArtifactInvalid, "first token", "the mean of all")
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				d := m.Describe()
				if reference.Pooling != "rank" && string(d.DefaultPooling) != reference.Pooling {
					t.Errorf("pooled by %q, want %q", d.DefaultPooling, reference.Pooling)
				}
				if exact := reference.Activation == "gelu"; exact != erfGELU[d.Arch] && reference.Activation != "silu" {
					t.Errorf("the GELU by the error function: %v; it was trained with %s", erfGELU[d.Arch], reference.Activation)
				}
				off, cos := reference.compare(t, m)
				t.Logf("%s %s: %.1e off, least cosine %.9f", name, config, off, cos)
				if off > most || cos < leastCos {
					t.Errorf("%s: %.1e from the reference, want %.1e; cosine %.7f", config, off, most, cos)
				}
			}
		})
	}
}

// differently are what llama.cpp computes as another model than the reference's,
// with what would have to be changed here to run it.
var differently = map[string]func(arch string){
	"nomic-bert-moe": func(arch string) { encoders[arch], erfGELU[arch] = true, true },
	"neo-bert":       func(arch string) { encoders[arch] = true },
}

// TestRefusedArchitectures: they are refused, and as long as llama.cpp computes
// something else.
func TestRefusedArchitectures(t *testing.T) {
	references := tinyReferences(t)
	for arch, allow := range differently {
		_, err := loadBytes(t, tinyFile(t, arch), exactly)
		wantCode(t, err, protocol.CodeArtifactInvalid, arch, "use an ONNX export")

		why := refused[arch]
		delete(refused, arch)
		allow(arch)
		defer func() {
			refused[arch] = why
			delete(encoders, arch)
			delete(erfGELU, arch)
		}()
		m, err := loadBytes(t, tinyFile(t, arch), exactly)
		if err != nil {
			t.Fatal(err)
		}
		off, cos := references[arch].compare(t, m)
		t.Logf("%s: %.1e off, least cosine %.3f", arch, off, cos)
		if off < 0.01 {
			t.Errorf("%s is %.1e from its reference now: it can be run", arch, off)
		}
	}
}

// TestWhatAFileMustSay: for each of these llama.cpp computes another model than the
// file's.
func TestWhatAFileMustSay(t *testing.T) {
	full := func(arch string) *tinyModel {
		m := tinyBERT()
		rename(m, arch)
		for _, name := range needed[arch] {
			m.set(arch+"."+name, uint32(16))
		}
		for _, name := range denseAfterPooling[arch] {
			m.tensor(name, tinyEmbd, tinyEmbd)
		}
		return m
	}
	for arch, names := range needed {
		for _, name := range names {
			m := full(arch)
			m.unset(arch + "." + name)
			_, err := loadBytes(t, m.file.Bytes(), "")
			wantCode(t, err, protocol.CodeArtifactInvalid, arch+"."+name+" is missing")
		}
	}
	modern := full("modern-bert")
	modern.set("modern-bert.hidden_activation", "gelu_pytorch_tanh")
	_, err := loadBytes(t, modern.file.Bytes(), "")
	wantCode(t, err, protocol.CodeArtifactInvalid, "gelu_pytorch_tanh")

	code := full("jina-bert-v2")
	code.tensor("blk.0.attn_q_norm.weight", tinyEmbd)
	_, err = loadBytes(t, code.file.Bytes(), "")
	wantCode(t, err, protocol.CodeArtifactInvalid, "base-code")
}

// TestADecoderOfTheWholeRowEmbeds: it cannot continue a text, whatever its file
// declares or leaves out.
func TestADecoderOfTheWholeRowEmbeds(t *testing.T) {
	m := tinyDecoder()
	m.set("llama.attention.causal", false)
	model, err := loadBytes(t, m.file.Bytes(), "")
	if err != nil {
		t.Fatal(err)
	}
	if d := model.Describe(); d.Dims != tinyEmbd || d.Grammar || !slices.Equal(d.Poolings, poolings) {
		t.Errorf("%+v", d)
	}
}

// compare embeds the rows, all in one call by every pooling and each alone by the
// model's own, or scores the pairs. It returns the largest difference, by a vector's length, and
// the least cosine.
func (r tinyReference) compare(t *testing.T, m workerkit.Model) (off, cos float64) {
	t.Helper()
	cos = 1
	for _, pair := range r.Pairs {
		got := float64(rerank(t, m, pair.Query, pair.Document)[0])
		off = max(off, math.Abs(got-pair.Score))
		if row := m.(*reranker).rows[0]; pair.Row != nil && !slices.Equal(row, pair.Row) {
			t.Errorf("the row is %v, want %v", row, pair.Row)
		}
	}
	all := make([][]int32, len(r.Rows))
	for i, row := range r.Rows {
		all[i] = row.IDs
	}
	held := func(got []float32, want []float64) {
		o, c := apart(t, got, want)
		off, cos = max(off, o), min(cos, c)
	}
	d := m.Describe()
	for _, p := range d.Poolings {
		packed := embed(t, m, p, all...)
		for i, row := range r.Rows {
			held(packed[i], row.Vectors[string(p)])
			if p == d.DefaultPooling {
				held(embed(t, m, p, row.IDs)[0], row.Vectors[string(p)])
			}
		}
	}
	return off, cos
}

// apart is the length of the difference by the length of want, and the cosine.
func apart(t *testing.T, got []float32, want []float64) (off, cos float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d values, want %d", len(got), len(want))
	}
	var gw, gg, ww, dd float64
	for i, w := range want {
		g := float64(got[i])
		gw, gg, ww, dd = gw+g*w, gg+g*g, ww+w*w, dd+(g-w)*(g-w)
	}
	return math.Sqrt(dd / ww), gw / math.Sqrt(gg*ww)
}
