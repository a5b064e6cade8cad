package onnxfile_test

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/synapse-module/workers/engines/onnx/internal/onnxfile"
	"github.com/synapse-module/workers/engines/onnx/internal/onnxtest"
)

func read(b []byte) (*onnxfile.Model, error) {
	return onnxfile.Read(bytes.NewReader(b), int64(len(b)))
}

func mustRead(t *testing.T, g *onnxtest.Graph) *onnxfile.Model {
	t.Helper()
	m, err := read(g.Model())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestReadGraph(t *testing.T) {
	g := &onnxtest.Graph{}
	g.Input("ids", onnxfile.Int64, -1, 128)
	g.Input("weight", onnxfile.Float, 2, 3) // older files list weights among the inputs
	g.Floats("weight", onnxfile.Float, make([]float32, 6), 2, 3)
	g.Bytes("bytes", onnxfile.Int8, []byte{1, 2}, 2)
	g.Int64s("numbers", []int64{-1, 7}, 2)
	g.Output("out", onnxfile.Float16, -1, -1, 3)
	inner := &onnxtest.Graph{}
	inner.Node("DynamicQuantizeLinear", []string{"a"}, []string{"b"})
	g.Node("If", []string{"c"}, []string{"out"}, onnxtest.Subgraph("then_branch", inner), onnxtest.Int("k", 5))
	g.Metadata("made by", "hand")
	m := mustRead(t, g)

	if len(m.Inputs) != 1 || m.Inputs[0].String() != "ids (int64 [-1 128])" {
		t.Errorf("inputs %v", m.Inputs)
	}
	if len(m.Outputs) != 1 || m.Outputs[0].String() != "out (float16 [-1 -1 3])" {
		t.Errorf("outputs %v", m.Outputs)
	}
	if n := m.Tensors["numbers"].Ints; len(n) != 2 || n[0] != -1 || n[1] != 7 {
		t.Errorf("numbers %v", n)
	}
	if d := m.Tensors["weight"].Dims; len(d) != 2 || d[0] != 2 || d[1] != 3 {
		t.Errorf("weight has the shape %v", d)
	}
	if m.Ops["If"] != 1 || m.Ops["DynamicQuantizeLinear"] != 1 || len(m.Nodes) != 1 || m.Nodes[0].Ints["k"] != 5 {
		t.Errorf("nodes %v, operators %v", m.Nodes, m.Ops)
	}
	if m.Producer != "onnxtest" || m.Metadata["made by"] != "hand" {
		t.Errorf("producer %q, metadata %v", m.Producer, m.Metadata)
	}
}

func TestReadNamesExternalFiles(t *testing.T) {
	g := &onnxtest.Graph{Sidecar: "model.onnx_data"}
	g.Floats("weight", onnxfile.Float, make([]float32, 24), 8, 3)
	numbers := []int64{-1, 7, 1 << 40, 3, 4, 5, 6, 7}
	g.Int64s("numbers", numbers, 8)
	g.Output("weight", onnxfile.Float, 8, 3)
	m := mustRead(t, g)
	if names := slices.Collect(m.ExternalNames()); !slices.Equal(names, []string{"model.onnx_data"}) {
		t.Errorf("external files %v", names)
	}
	open := func(string) (io.ReaderAt, error) { return bytes.NewReader(g.SidecarBytes()), nil }
	if err := m.ReadExternal(open); err != nil {
		t.Fatal(err)
	}
	if got := m.Tensors["numbers"].Ints; !slices.Equal(got, numbers) {
		t.Errorf("numbers %v", got)
	}
	m = mustRead(t, g)
	open = func(string) (io.ReaderAt, error) { return bytes.NewReader(g.SidecarBytes()[:100]), nil }
	if err := m.ReadExternal(open); err == nil {
		t.Error("a cut file of weights is read")
	}
}

// A look-up that counts is one with the input's own values, in a table that may
// be stored quantised.
func TestRowsOfQuantisedTable(t *testing.T) {
	g := &onnxtest.Graph{}
	g.Input("ids", onnxfile.Int32, -1, -1)
	g.Bytes("table", onnxfile.Int8, make([]byte, 40), 10, 4)
	g.Floats("scale", onnxfile.Float, []float32{1})
	g.Node("DequantizeLinear", []string{"table", "scale"}, []string{"words"})
	g.Node("Cast", []string{"ids"}, []string{"wide"}, onnxtest.Int("to", int64(onnxfile.Int64)))
	g.Node("Gather", []string{"words", "wide"}, []string{"out"}, onnxtest.Int("axis", 0))
	g.Node("Gather", []string{"out", "wide"}, []string{"other"}, onnxtest.Int("axis", 1))
	g.Output("out", onnxfile.Float, -1, -1, 4)
	if m := mustRead(t, g); m.Rows("ids") != 10 || m.Width("ids") != 4 {
		t.Errorf("%d rows of %d", m.Rows("ids"), m.Width("ids"))
	}
}

func TestFusedEmbedding(t *testing.T) {
	g := &onnxtest.Graph{}
	g.Input("ids", onnxfile.Int32, -1, -1)
	g.Input("types", onnxfile.Int32, -1, -1)
	g.Floats("words", onnxfile.Float, make([]float32, 40), 10, 4)
	g.Floats("places", onnxfile.Float, make([]float32, 24), 6, 4)
	g.Floats("segments", onnxfile.Float, make([]float32, 8), 2, 4)
	g.DomainNode("com.microsoft", "EmbedLayerNormalization", []string{"ids", "types", "words", "places", "segments"}, []string{"out"})
	g.Output("out", onnxfile.Float, -1, -1, 4)
	if m := mustRead(t, g); m.Rows("ids") != 10 || m.Rows("types") != 2 || m.MaxPositions("ids", "") != 6 {
		t.Errorf("%d words, %d types, %d positions", m.Rows("ids"), m.Rows("types"), m.MaxPositions("ids", ""))
	}
}

// A table of relative positions is indexed with buckets of distances, and
// bounds nothing.
func TestRelativePositionsBoundNothing(t *testing.T) {
	g := &onnxtest.Graph{}
	g.Input("ids", onnxfile.Int64, -1, -1)
	g.Floats("words", onnxfile.Float, make([]float32, 40), 10, 4)
	g.Floats("bias", onnxfile.Float, make([]float32, 32*2), 32, 2)
	g.Int64s("zero", []int64{0})
	g.Int64s("sixteen", []int64{16})
	g.Node("Gather", []string{"words", "ids"}, []string{"x"})
	g.Node("Range", []string{"zero", "n", "one"}, []string{"at"})
	g.Node("Sub", []string{"at", "turned"}, []string{"distance"})
	g.Node("Abs", []string{"distance"}, []string{"absolute"})
	g.Node("Less", []string{"absolute", "sixteen"}, []string{"near"})
	g.Node("Where", []string{"near", "absolute", "far"}, []string{"bucket"})
	g.Node("Add", []string{"bucket", "sixteen"}, []string{"index"})
	g.Node("Gather", []string{"bias", "index"}, []string{"biases"})
	g.Output("x", onnxfile.Float, -1, -1, 4)
	if got := mustRead(t, g).MaxPositions("ids", ""); got != 0 {
		t.Errorf("room for %d tokens, want no limit", got)
	}
}

func TestReadRefuses(t *testing.T) {
	bytesField := func(num protowire.Number, b []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, num, protowire.BytesType), b)
	}
	nested := []byte{}
	for range 200 { // graph in attribute in node in graph …
		nested = bytesField(1, bytesField(5, bytesField(6, nested)))
	}
	dims := []byte{}
	for range 100 {
		dims = protowire.AppendVarint(protowire.AppendTag(dims, 1, protowire.VarintType), 1)
	}
	for _, c := range []struct {
		name  string
		bytes []byte
		says  string
	}{
		{"nothing", nil, "empty"},
		{"no graph", bytesField(2, []byte("producer")), "no graph"},
		{"a length over the end", append(protowire.AppendTag(nil, 7, protowire.BytesType), 100), "cut or corrupt"},
		{"the largest length", protowire.AppendVarint(protowire.AppendTag(nil, 7, protowire.BytesType), 1<<63), "cut or corrupt"},
		{"a group", protowire.AppendTag(nil, 7, protowire.StartGroupType), "no protobuf field"},
		{"field number 0", []byte{0x02, 0x00}, "no protobuf field"},
		{"a number for a graph", protowire.AppendVarint(protowire.AppendTag(nil, 7, protowire.VarintType), 1), "message is due"},
		{"a number for a name", bytesField(7, protowire.AppendVarint(protowire.AppendTag(nil, 5, protowire.VarintType), 1)), "message is due"},
		{"graphs nested without end", bytesField(7, nested), "nested"},
		{"a tensor of a hundred dimensions", bytesField(7, bytesField(5, dims)), "more than 32 numbers"},
		{"a name without end", bytesField(2, make([]byte, 1<<17)), "over the limit"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := read(c.bytes)
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %q", err, c.says)
			}
		})
	}
	if _, err := read([]byte("\x18\x00\x00\x00ORTM....")); !errors.Is(err, onnxfile.ErrORTFormat) {
		t.Errorf("a model of the library's own format gives %v", err)
	}
}

// FuzzRead: any bytes give a model or an error, and asking a model is safe.
func FuzzRead(f *testing.F) {
	for _, p := range []onnxtest.Positions{onnxtest.NoPositions, onnxtest.SlicedNumbers, onnxtest.SlicedTable, onnxtest.RangeNumbers, onnxtest.PositionInput, onnxtest.CountedFromMask} {
		e := onnxtest.BERT()
		e.Positions, e.Vocab, e.Rows, e.Hidden = p, 4, 4, 2
		f.Add(e.Model())
	}
	f.Add([]byte("\x18\x00\x00\x00ORTM"))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := read(b)
		if err != nil {
			return
		}
		for _, v := range m.Inputs {
			if m.Rows(v.Name) < 0 || m.MaxPositions(v.Name, "position_ids") < 0 || m.Width(v.Name) < 0 {
				t.Errorf("%s: negative sizes", v.Name)
			}
		}
	})
}
