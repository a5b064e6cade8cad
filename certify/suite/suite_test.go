package suite

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"math"
	"os"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/synapse-module/workers/protocol"
)

// tinySuite is testdata/suite.yaml with data that fits it.
func tinySuite(t *testing.T) fstest.MapFS {
	t.Helper()
	src, err := os.ReadFile("testdata/suite.yaml")
	if err != nil {
		t.Fatal(err)
	}
	fsys := fstest.MapFS{File: {Data: src}}
	putData(t, fsys, `{"id":"a","text":"hello","ids":[1,2],"tags":["len"]}`+"\n"+`{"id":"b","text":null,"ids":[1,3,2],"tags":[]}`+"\n", []float32{0.6, 0.8, 1, 0})
	return fsys
}

// putData writes inputs, vectors and a provenance whose digests are theirs.
func putData(t *testing.T, fsys fstest.MapFS, lines string, flat []float32) {
	t.Helper()
	raw := bytes.Clone(protocol.Bytes(flat))
	fsys["inputs.jsonl.zst"] = &fstest.MapFile{Data: pack(t, []byte(lines))}
	fsys["reference.f32.zst"] = &fstest.MapFile{Data: pack(t, raw)}
	p := map[string]any{
		"schema":   1,
		"model":    map[string]any{"name": "tiny", "licence": "none"},
		"encoding": map[string]any{"dims": 2, "pooling": "mean", "normalized": true, "max_tokens": 3, "dtype": "float32"},
		"inputs":   map[string]any{"count": 2, "sha256": digest([]byte(lines))},
		"vectors":  map[string]any{"sha256": digest(raw)},
	}
	b, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	fsys["reference.json"] = &fstest.MapFile{Data: b}
}

func pack(t *testing.T, b []byte) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	return w.EncodeAll(b, nil)
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func TestLoadReadsTheWholeSuite(t *testing.T) {
	fsys := tinySuite(t)
	s, err := Load(fsys, "tiny")
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Inputs) != 2 || s.Inputs[0].Text == nil || *s.Inputs[0].Text != "hello" || s.Inputs[1].Text != nil {
		t.Errorf("inputs %+v", s.Inputs)
	}
	if want := [][]float32{{0.6, 0.8}, {1, 0}}; !reflect.DeepEqual(s.Reference, want) {
		t.Errorf("reference %v, want %v", s.Reference, want)
	}
	if got := s.Artifacts[0].LoadTimeout; got != 90*time.Second {
		t.Errorf("load_timeout %v", got)
	}
	if want, err := protocol.TreeDigest(fsys, nil); err != nil || s.Digest != want {
		t.Errorf("digest %v, want %v, %v", s.Digest, want, err)
	}
}

func TestGatesOfAnArtifactReplaceTheSuites(t *testing.T) {
	s, err := Load(tinySuite(t), "tiny")
	if err != nil {
		t.Fatal(err)
	}
	f32, int8 := s.GatesFor(s.Artifacts[0]), s.GatesFor(s.Artifacts[1])
	if f32.Cosine.Min != 0.9999 || int8.Cosine.Min != 0.97 {
		t.Errorf("cosine min %v and %v, want 0.9999 and 0.97", f32.Cosine.Min, int8.Cosine.Min)
	}
	if int8.Norm != s.Gates.Norm || int8.Invariance != s.Gates.Invariance {
		t.Error("a gate that the artifact does not name is not the suite's")
	}
}

func TestDecodeNamesFileLineAndField(t *testing.T) {
	for _, c := range []struct{ name, old, new, want string }{
		{"unknown field", "tolerance: 1.0e-5", "toleranz: 1.0e-5", "s.yaml:22:20: gates.norm.toleranz: no such field"},
		{"missing field", "  max_tokens: {min: 3}\n", "", "gates.max_tokens: the field is missing"},
		{"wrong kind", "dims: 2,", "dims: two,", "s.yaml:5:29: model.dims: got string, want integer"},
		{"out of range", "min: 0.97,", "min: 1.5,", "s.yaml:19:21: artifacts[1].gates.cosine.min: maximum: got 1.5, want 1"},
		{"other version", "version: 1", "version: 2", "s.yaml:1:10: version: value must be 1"},
		{"bad digest", "sha256:0000", "sha256:00", "s.yaml:11:13: artifacts[0].digest: 'sha256:00"},
		{"file outside the folder", "inputs: inputs.jsonl.zst", "inputs: ../inputs", "s.yaml:6:16: data.inputs: "},
		{"doubled field", "title: Two", "name: Two", "s.yaml:3:1: "},
		{"no YAML", "artifacts:\n", "artifacts: [\n", "s.yaml:"},
		{"second artifact of one name", "name: tiny-int8", "name: tiny-f32", `s.yaml:14:11: artifacts[1].name: a second artifact "tiny-f32"`},
		{"a control that is no control", "pooling: cls", "pooling: mean", "controls.swapped_pooling.pooling: \"mean\" is the model's own pooling"},
		{"a byte of a file's file", "name: tiny-int8", "name: tiny-int8\n    flipped_byte: {file: x, offset: 1, mask: 1}", "artifacts[1].flipped_byte: a directory's is in a file"},
		{"a number that JSON has not", "name: tiny-int8", "name: tiny-int8\n    runtime_config: {a: .inf}", "artifacts[1].runtime_config: cannot be sent as JSON"},
		{"no controls", "controls:\n  swapped_pooling: {pooling: cls}", "controls: {}", "s.yaml:28:11: controls: minProperties"},
	} {
		t.Run(c.name, func(t *testing.T) {
			src := string(tinySuite(t)[File].Data)
			if !strings.Contains(src, c.old) {
				t.Fatalf("the suite does not hold %q", c.old)
			}
			_, err := Decode("s.yaml", []byte(strings.Replace(src, c.old, c.new, 1)))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
			var e *Error
			if !errors.As(err, &e) || e.File != "s.yaml" || e.Line == 0 {
				t.Errorf("%#v is no Error with file and line", err)
			}
		})
	}
}

func TestDecodeTellsAllFaultsAtOnce(t *testing.T) {
	src := strings.NewReplacer("dims: 2", "dims: 0", "count: 20", "count: 1").Replace(string(tinySuite(t)[File].Data))
	_, err := Decode("s.yaml", []byte(src))
	for _, want := range []string{"model.dims", "gates.repeats.count"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not name %s", err, want)
		}
	}
}

func TestLoadRefusesDataThatDoesNotFit(t *testing.T) {
	two := `{"id":"a","text":"x","ids":[1],"tags":[]}` + "\n" + `{"id":"b","text":"y","ids":[2],"tags":[]}` + "\n"
	flat := []float32{0.6, 0.8, 1, 0}
	for _, c := range []struct {
		name string
		edit func(t *testing.T, fsys fstest.MapFS)
		want string
	}{
		{"no suite.yaml", func(_ *testing.T, f fstest.MapFS) { delete(f, File) }, "tiny/suite.yaml: no such file"},
		{"no vectors", func(_ *testing.T, f fstest.MapFS) { delete(f, "reference.f32.zst") }, "tiny/reference.f32.zst: no such file"},
		{"vectors cut", func(t *testing.T, f fstest.MapFS) { putData(t, f, two, flat[:3]) }, "tiny/reference.f32.zst: holds 12 bytes, 2 inputs of 2 f32 are 16"},
		{"vectors changed", func(t *testing.T, f fstest.MapFS) {
			f["reference.f32.zst"].Data = pack(t, make([]byte, 16))
		}, "tiny/reference.f32.zst: has SHA-256 "},
		{"vectors not zstd", func(_ *testing.T, f fstest.MapFS) { f["reference.f32.zst"].Data = []byte("plain") }, "tiny/reference.f32.zst: cannot be decompressed"},
		{"vectors not finite", func(t *testing.T, f fstest.MapFS) {
			putData(t, f, two, []float32{0.6, 0.8, 1, float32(math.NaN())})
		}, "tiny/reference.f32.zst: row 1 holds NaN"},
		{"one input too few", func(t *testing.T, f fstest.MapFS) {
			putData(t, f, two[:strings.Index(two, "\n")+1], flat)
		}, "tiny/inputs.jsonl.zst: holds 1 inputs, its provenance says 2"},
		{"an id twice", func(t *testing.T, f fstest.MapFS) {
			putData(t, f, strings.Replace(two, `"b"`, `"a"`, 1), flat)
		}, `tiny/inputs.jsonl.zst:2: a second input "a"`},
		{"a row without ids", func(t *testing.T, f fstest.MapFS) {
			putData(t, f, strings.Replace(two, `[1]`, `[]`, 1), flat)
		}, `tiny/inputs.jsonl.zst:1: "a" has no token ids`},
		{"an unknown member", func(t *testing.T, f fstest.MapFS) {
			putData(t, f, strings.Replace(two, `"tags"`, `"tag"`, 1), flat)
		}, `tiny/inputs.jsonl.zst:1: `},
		{"other dims", func(_ *testing.T, f fstest.MapFS) {
			f[File].Data = bytes.Replace(f[File].Data, []byte("dims: 2"), []byte("dims: 3"), 1)
		}, "tiny/reference.json: vectors of 2 dims, suite.yaml says 3"},
		{"other pooling", func(_ *testing.T, f fstest.MapFS) {
			f[File].Data = bytes.Replace(f[File].Data, []byte("pooling: mean"), []byte("pooling: last"), 1)
		}, "tiny/reference.json: vectors pooled by mean, suite.yaml says last"},
		{"other schema", func(_ *testing.T, f fstest.MapFS) {
			f["reference.json"].Data = []byte(`{"schema":2}`)
		}, "tiny/reference.json: schema: is 2"},
		{"an input over the limit", func(t *testing.T, f fstest.MapFS) {
			putData(t, f, strings.Replace(two, `[1]`, `[1,2,3,4]`, 1), flat)
		}, "gates.max_tokens.min: 3 is less than the longest input, which has 4 tokens"},
		{"published for no input", func(_ *testing.T, f fstest.MapFS) {
			f[File].Data = bytes.Replace(f[File].Data, []byte("{id: a,"), []byte("{id: z,"), 1)
		}, `no input has the id "z"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			fsys := tinySuite(t)
			c.edit(t, fsys)
			_, err := Load(fsys, "tiny")
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}
