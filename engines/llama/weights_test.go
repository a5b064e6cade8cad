package llama

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/synapse-module/workers/engines/llama/internal/gguf"
	"github.com/synapse-module/workers/engines/llama/internal/ggufwriter"
	"github.com/synapse-module/workers/protocol"
	"github.com/synapse-module/workers/workerkit"
)

// Types of ggml.
const (
	typeF32   = 0
	typeQ8_0  = 8
	typeNVFP4 = 40
)

// quantize rounds the model's matrices to Q8_0 as ggml does, but for the tables,
// and returns the same model with the rounded values in F32. Both say what the
// other says if the inputs of a product are not rounded.
func quantize(m *tinyModel) (expanded *tinyModel) {
	expanded = &tinyModel{}
	expanded.file.Pairs = m.file.Pairs
	for i, t := range m.file.Tensors {
		if len(t.Dims) == 2 && strings.HasPrefix(t.Name, "blk.") {
			var values []float32
			t.Type = typeQ8_0
			t.Data, values = q8(t.Data)
			m.file.Tensors[i] = t
			t.Type, t.Data = typeF32, ggufwriter.Floats(values)
		}
		expanded.file.Tensors = append(expanded.file.Tensors, t)
	}
	return expanded
}

// q8 makes blocks of 32 values with the scale 2^-9, whose multiples up to 127 f16
// holds exactly.
func q8(floats []byte) (blocks []byte, values []float32) {
	const scale = 1.0 / 512
	for i := 0; i < len(floats); i += 4 {
		if i%(4*32) == 0 {
			blocks = binary.LittleEndian.AppendUint16(blocks, 0x1800) // 2^-9
		}
		v := math.Float32frombits(binary.LittleEndian.Uint32(floats[i:]))
		q := min(math.Round(float64(v)/scale), 127)
		blocks = append(blocks, byte(int8(q)))
		values = append(values, float32(q*scale))
	}
	return blocks, values
}

// TestQuantisedWeightsAreMultipliedAsTheyAre: an expanded file gives the vectors of
// the one that held the same values unrounded in f32 from the start, to the bit; and
// the file as it is does not.
func TestQuantisedWeightsAreMultipliedAsTheyAre(t *testing.T) {
	file := tinyBERT()
	expanded := quantize(file)
	rows := [][]int32{{1, 5, 39, 2}, {1, 2}, {1, 7, 8, 9, 10, 11, 12, 2}}
	vectors := func(m *tinyModel, config string) [][]float32 {
		t.Helper()
		loaded, err := loadBytes(t, m.file.Bytes(), config)
		if err != nil {
			t.Fatal(err)
		}
		return embed(t, loaded, workerkit.PoolingMean, rows...)
	}
	want := vectors(expanded, "")
	for _, config := range []string{`{"weights": "f32"}`, `{"weights": "f32", "mmap": false}`} {
		for i, got := range vectors(file, config) {
			if !slices.Equal(got, want[i]) {
				t.Errorf("%s: row %d differs by %v", config, i, maxDiff(got, want[i]))
			}
		}
	}
	auto := vectors(file, "")
	for i, got := range vectors(file, `{"weights": "f16"}`) {
		if !slices.Equal(got, auto[i]) {
			t.Errorf("an encoder's default is not f16: row %d differs by %v", i, maxDiff(got, auto[i]))
		}
	}
	rounded := vectors(file, `{"weights": "file"}`)
	for i := range rows {
		// Every weight here is a half exactly; f16's products round their inputs to 11 bits.
		half, eight := maxDiff(auto[i], want[i]), maxDiff(rounded[i], want[i])
		if half > eight/3 || eight == 0 {
			t.Errorf("row %d: f16 is %v away, the file as it is %v", i, half, eight)
		}
	}
}

// TestADecoderIsComputedAsItIs unless the module says otherwise: it may be of
// gigabytes.
func TestADecoderIsComputedAsItIs(t *testing.T) {
	file := tinyDecoder()
	quantize(file)
	for config, want := range map[string]int{`{}`: 0, `{"weights": "file"}`: 0, `{"weights": "f16"}`: 7, `{"weights": "f32"}`: 7} {
		if _, err := loadBytes(t, file.file.Bytes(), config); err != nil {
			t.Fatal(err)
		}
		if got := retyped(t, file, config); got != want {
			t.Errorf("%s: %d tensors are expanded, want %d", config, got, want)
		}
	}
}

// TestTablesStayAsTheyAre: a row of a table is looked up, not multiplied. The
// vocabulary's is also the output's where the model has no other.
func TestTablesStayAsTheyAre(t *testing.T) {
	of := func(m *tinyModel) *tinyModel {
		for i, tensor := range m.file.Tensors {
			if tensor.Name == "token_embd.weight" {
				tensor.Type = typeQ8_0
				tensor.Data, _ = q8(tensor.Data)
				m.file.Tensors[i] = tensor
			}
		}
		return m
	}
	tied := tinyDecoder()
	tied.drop("output.weight")
	for name, c := range map[string]struct {
		model *tinyModel
		want  int
	}{"an encoder's": {tinyBERT(), 0}, "a decoder's": {tinyDecoder(), 0}, "a decoder's, tied": {tied, 1}} {
		if got := retyped(t, of(c.model), `{"weights": "f16"}`); got != c.want {
			t.Errorf("%s: %d tensors are expanded, want %d", name, got, c.want)
		}
		if _, err := loadBytes(t, c.model.file.Bytes(), `{"weights": "f16"}`); err != nil {
			t.Error(err)
		}
	}
}

func TestAWeightThatAHalfCannotHoldIsRefused(t *testing.T) {
	m := tinyBERT()
	quantize(m)
	for i, tensor := range m.file.Tensors {
		if tensor.Name == "blk.0.ffn_up.weight" {
			binary.LittleEndian.PutUint16(tensor.Data, 0x7800) // 2^15, times up to 127
			m.file.Tensors[i] = tensor
		}
	}
	_, err := loadBytes(t, m.file.Bytes(), "")
	wantCode(t, err, protocol.CodeArtifactInvalid, "blk.0.ffn_up.weight", "f16", "f32", "file")
	for _, config := range []string{`{"weights": "f32"}`, `{"weights": "file"}`} {
		if _, err := loadBytes(t, m.file.Bytes(), config); err != nil {
			t.Errorf("%s: %v", config, err)
		}
	}
}

// TestEveryQuantisedTypeCanBeExpanded: the library's blocks are those of our table,
// and it has a function for each.
func TestEveryQuantisedTypeCanBeExpanded(t *testing.T) {
	lib, n := open(t).(*engine).lib, 0
	for typ := range gguf.Type(64) {
		if !typ.Quantized() {
			continue
		}
		n++
		elements, bytes := typ.Block()
		dequantize, err := lib.Dequantize(uint32(typ), elements, bytes)
		if err != nil {
			t.Error(err)
			continue
		}
		values := slices.Repeat([]float32{1}, int(2*elements)+1)
		dequantize(values[:2*elements], make([]byte, 2*bytes))
		if end := values[2*elements]; end != 1 {
			t.Errorf("%s: a value behind two blocks was written", typ)
		}
		if _, err := lib.Dequantize(uint32(typ), elements, bytes+1); err == nil {
			t.Errorf("%s: blocks of another size pass", typ)
		}
	}
	if n < 20 {
		t.Errorf("%d quantised types", n)
	}
}

// TestTheEndOfTheModuleEndsAnExpansion, which can take seconds.
func TestTheEndOfTheModuleEndsAnExpansion(t *testing.T) {
	a := artifactOf(t, asset(t, "minilm-gguf-q8_0"))
	defer a.File.Close()
	e := open(t)
	c, err := workerkit.DecodeConfig(e.Info().Options, quiet(""))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := e.Load(ctx, a, c); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// TestExpandedRealModel: the file's own rounding of its weights is what is left of
// the distance to f32.
func TestExpandedRealModel(t *testing.T) {
	f32 := loadAsset(t, "minilm-gguf-f32", "")
	q8, file := loadAsset(t, "minilm-gguf-q8_0", ""), loadAsset(t, "minilm-gguf-q8_0", `{"weights": "file"}`)
	for _, rows := range []int{2, 3, 5, 12, 100} {
		r := row(rows, 1)
		want := embed(t, f32, workerkit.PoolingMean, r)[0]
		auto, plain := cosine(embed(t, q8, workerkit.PoolingMean, r)[0], want), cosine(embed(t, file, workerkit.PoolingMean, r)[0], want)
		t.Logf("%d ids: cosine %.6f expanded, %.6f as the file is", rows, auto, plain)
		if auto < 0.9994 || auto < plain {
			t.Errorf("%d ids: cosine %v expanded, %v as the file is", rows, auto, plain)
		}
	}
}

// retyped is how many tensors of a model are expanded at LOAD.
func retyped(t *testing.T, m *tinyModel, config string) int {
	t.Helper()
	b := m.file.Bytes()
	f, err := gguf.Parse(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	c, err := workerkit.DecodeConfig(options(), quiet(config))
	if err != nil {
		t.Fatal(err)
	}
	s, err := newSettings(c)
	if err != nil {
		t.Fatal(err)
	}
	p, err := newPlan(f, s)
	if err != nil {
		t.Fatal(err)
	}
	r, err := p.retype(f, s)
	if err != nil {
		t.Fatal(err)
	}
	return r.Changed
}
