package gguf

import (
	"bytes"
	"errors"
	"io"
	"math"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/synapse-module/workers/engines/llama/internal/ggufwriter"
	"github.com/synapse-module/workers/internal/assetstest"
)

type (
	pair   = ggufwriter.Pair
	raw    = ggufwriter.Raw
	tensor = ggufwriter.Tensor
)

// small is a file of every kind of value and two tensors.
func small() ggufwriter.File {
	return ggufwriter.File{
		Pairs: []pair{
			{Key: "general.architecture", Value: "bert"},
			{Key: "count", Value: uint32(7)},
			{Key: "below", Value: int32(-7)},
			{Key: "long", Value: uint64(math.MaxUint64)},
			{Key: "causal", Value: false},
			{Key: "eps", Value: float32(1e-12)},
			{Key: "tokens", Value: []string{"a", "", "c"}},
			{Key: "layers", Value: []int32{1, -2, 3}},
		},
		Tensors: []tensor{
			{Name: "a", Dims: []uint64{3}, Type: 0, Data: ggufwriter.Floats([]float32{1, 2, 3})},
			{Name: "b", Dims: []uint64{32, 2}, Type: 8, Data: make([]byte, 68)},
		},
	}
}

func parse(b []byte) (*File, error) { return Parse(bytes.NewReader(b), int64(len(b))) }

func TestAFileIsReadAsItWasWritten(t *testing.T) {
	b := small().Bytes()
	f, err := parse(b)
	if err != nil {
		t.Fatal(err)
	}
	if got := f.Text("general.architecture"); got != "bert" {
		t.Errorf("architecture %q", got)
	}
	for key, want := range map[string]int64{"count": 7, "below": -7, "absent": 5} {
		if got, err := f.Int(key, 5); got != want || err != nil {
			t.Errorf("%s: %d, %v", key, got, err)
		}
	}
	for _, key := range []string{"long", "causal", "general.architecture", "tokens", "eps"} {
		if _, err := f.Int(key, 0); err == nil {
			t.Errorf("%s is taken for an integer", key)
		}
	}
	if got, err := f.Bool("causal", true); got || err != nil {
		t.Errorf("causal: %v, %v", got, err)
	}
	if _, err := f.Bool("count", true); err == nil {
		t.Error("count is taken for a bool")
	}
	if got, err := f.Strings("tokens", 3); err != nil || strings.Join(got, "|") != "a||c" {
		t.Errorf("tokens: %q, %v", got, err)
	}
	if _, err := f.Strings("tokens", 2); err == nil {
		t.Error("more strings than asked for")
	}
	if got, err := f.Ints("layers", 3); err != nil || len(got) != 3 || got[1] != -2 {
		t.Errorf("layers: %v, %v", got, err)
	}
	if got, err := f.Ints("count", 3); err != nil || len(got) != 1 || got[0] != 7 {
		t.Errorf("count: %v, %v", got, err)
	}
	a, _ := f.Tensor("a")
	if got, err := f.Float32s(a, 1, 2); err != nil || got[0] != 2 || got[1] != 3 {
		t.Errorf("a: %v, %v", got, err)
	}
	if _, err := f.Float32s(a, 2, 2); err == nil {
		t.Error("elements behind the end of a")
	}
	q, ok := f.Tensor("b")
	if !ok || q.Type.String() != "Q8_0" || q.Bytes != 68 || q.Offset%32 != 0 || q.Offset+q.Bytes > int64(len(b)) {
		t.Errorf("b: %+v", q)
	}
}

func TestEveryTruncationIsAnError(t *testing.T) {
	b := small().Bytes()
	whole := len(b) - 28 // the padding behind the last tensor is not needed
	for n := range whole {
		if _, err := parse(b[:n]); err == nil {
			t.Fatalf("cut to %d of %d bytes: no error", n, len(b))
		}
	}
	if _, err := parse(b[:whole]); err != nil {
		t.Errorf("cut to %d bytes, which hold all: %v", whole, err)
	}
}

// hostile builds a header by hand.
func hostile(nTensors, nPairs uint64, rest ...any) []byte {
	var b ggufwriter.Buffer
	b.WriteString("GGUF")
	b.Put(uint32(3), nTensors, nPairs)
	for _, r := range rest {
		if s, ok := r.(string); ok {
			b.Text(s)
		} else {
			b.Put(r)
		}
	}
	return b.Bytes()
}

func TestHostileHeadersAreErrors(t *testing.T) {
	u32, u64 := func(n uint32) uint32 { return n }, func(n uint64) uint64 { return n }
	nested := hostile(1, 1, "k", u32(9))
	for range 100000 {
		nested = append(nested, hostile(0, 0, u32(9), u64(1))[24:]...)
	}
	for name, c := range map[string]struct {
		file []byte
		want string
	}{
		"empty":                      {nil, "the file ends at byte 0"},
		"junk":                       {[]byte("not a model, but long enough"), "no GGUF file"},
		"big-endian":                 {[]byte("GGUF\x00\x00\x00\x03" + strings.Repeat("\x00", 16)), "big-endian"},
		"version 1":                  {[]byte("GGUF\x01\x00\x00\x00" + strings.Repeat("\x00", 16)), "version 1"},
		"no tensors":                 {hostile(0, 0), "0 tensors"},
		"2^62 tensors":               {hostile(1<<62, 0), "tensors"},
		"2^62 pairs":                 {hostile(1, 1<<62), "pairs"},
		"key of 2^62 bytes":          {hostile(1, 1, u64(1<<62)), "a key is"},
		"key of 2^64-1 bytes":        {hostile(1, 1, u64(math.MaxUint64)), "a key is"},
		"empty key":                  {hostile(1, 1, "", u32(4), u32(1)), "empty"},
		"key with a NUL":             {hostile(1, 1, "a\x00b", u32(4), u32(1)), "control"},
		"key twice":                  {hostile(1, 2, "k", u32(4), u32(1), "k", u32(4), u32(1)), "twice"},
		"unknown kind":               {hostile(1, 1, "k", u32(99)), "unknown kind"},
		"bool of 2":                  {hostile(1, 1, "k", u32(7), uint8(2)), "bool of value 2"},
		"string of 2^40 bytes":       {hostile(1, 1, "k", u32(8), u64(1<<40)), "bytes long"},
		"string past the end":        {hostile(1, 1, "k", u32(8), u64(1000)), "only 0 follow"},
		"array of 2^61":              {hostile(1, 1, "k", u32(9), u32(4), u64(1<<61)), "elements"},
		"array past the end":         {hostile(1, 1, "k", u32(9), u32(4), u64(1000)), "inside k"},
		"array of unknown":           {hostile(1, 1, "k", u32(9), u32(99), u64(1)), "not taken"},
		"array of arrays, deep":      {nested, "array of array"},
		"strings that overflow":      {hostile(1, 1, "k", u32(9), u32(8), u64(2), u64(math.MaxUint64), u64(1)), "bytes long"},
		"alignment 0":                {hostile(1, 1, "general.alignment", u32(4), u32(0)), "alignment"},
		"alignment 3":                {hostile(1, 1, "general.alignment", u32(4), u32(3)), "alignment"},
		"alignment of text":          {hostile(1, 1, "general.alignment", u32(8), "32"), "alignment"},
		"name of 64 bytes":           {hostile(1, 0, strings.Repeat("n", 64)), "64 bytes long"},
		"0 dimensions":               {hostile(1, 0, "t", u32(0)), "0 dimensions"},
		"2^31 dimensions":            {hostile(1, 0, "t", u32(1<<31)), "dimensions"},
		"dimension 0":                {hostile(1, 0, "t", u32(1), u64(0)), "dimension of 0"},
		"dimension 2^63":             {hostile(1, 0, "t", u32(1), u64(1<<63)), "dimension of"},
		"product over 2^64":          {hostile(1, 0, "t", u32(4), u64(1<<39), u64(1<<39), u64(1<<39), u64(1<<39), u32(0), u64(0)), "larger than the file"},
		"product of 2^64 exactly":    {hostile(1, 0, "t", u32(4), u64(1<<16), u64(1<<16), u64(1<<16), u64(1<<16), u32(0), u64(0)), "larger than the file"},
		"unknown type":               {hostile(1, 0, "t", u32(1), u64(4), u32(9999), u64(0)), "type 9999"},
		"type of no weights":         {hostile(1, 0, "t", u32(1), u64(256), u32(15), u64(0)), "weights are not stored"},
		"row of half a block":        {hostile(1, 0, "t", u32(1), u64(16), u32(8), u64(0)), "blocks of 32"},
		"offset 2^63":                {hostile(1, 0, "t", u32(1), u64(4), u32(0), u64(1<<63)), "into the data"},
		"offset not the due one":     {hostile(1, 0, "t", u32(1), u64(1), u32(0), u64(32)), "due"},
		"data missing":               {hostile(1, 0, "t", u32(1), u64(8), u32(0), u64(0)), "cut off"},
		"tensor twice":               {hostile(2, 0, "t", u32(1), u64(1), u32(0), u64(0), "t", u32(1), u64(1), u32(0), u64(32)), "twice"},
		"two tensors in one place":   {hostile(2, 0, "t", u32(1), u64(1), u32(0), u64(0), "u", u32(1), u64(1), u32(0), u64(0), u64(0), u64(0), u64(0), u64(0)), "due"},
		"name that is no UTF-8":      {hostile(1, 0, "\xff"), "no UTF-8"},
		"pairs promised, none there": {hostile(1, 1), "inside a key"},
	} {
		if _, err := parse(c.file); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

func TestAnArrayCostsNoMemory(t *testing.T) {
	const n = 8 << 20
	f := small()
	f.Pairs = append(f.Pairs, pair{Key: "big", Value: raw(append(hostile(0, 0, uint32(9), uint32(0), uint64(n))[24:], make([]byte, n)...))})
	b := f.Bytes()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := parse(b); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 1<<20 {
		t.Errorf("%d bytes were allocated for an array of %d", grown, n)
	}
}

// shrinking is a file that loses its end while it is read.
type shrinking struct{ b []byte }

func (s shrinking) ReadAt(p []byte, off int64) (int, error) {
	if off >= int64(len(s.b)) {
		return 0, io.EOF
	}
	n := copy(p, s.b[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func TestAFileThatShrinksIsAnError(t *testing.T) {
	b := small().Bytes()
	if _, err := Parse(shrinking{b[:100]}, int64(len(b))); err == nil || errors.Is(err, io.ErrUnexpectedEOF) || !strings.Contains(err.Error(), "shorter") {
		t.Errorf("got %v", err)
	}
}

func TestRealModelsPass(t *testing.T) {
	for _, name := range []string{"minilm-gguf-f32", "minilm-gguf-f16", "minilm-gguf-q8_0", "smollm2-gguf"} {
		r, err := os.Open(assetstest.Path(t, name))
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		info, err := r.Stat()
		if err != nil {
			t.Fatal(err)
		}
		f, err := Parse(r, info.Size())
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if n := f.Count("tokenizer.ggml.tokens"); n < 30000 {
			t.Errorf("%s: %d tokens", name, n)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(small().Bytes())
	f.Add(hostile(1, 1, "k", uint32(9), uint32(8), uint64(2), "a", "b"))
	f.Add(hostile(2, 0, "t", uint32(1), uint64(1), uint32(0), uint64(0), "u", uint32(2), uint64(32), uint64(2), uint32(8), uint64(32)))
	f.Fuzz(func(t *testing.T, b []byte) {
		file, err := parse(b)
		if err != nil {
			return
		}
		// What passes is inside the file and does not overlap.
		end := file.DataOffset
		for _, tensor := range file.Tensors {
			if tensor.Offset < end || tensor.Bytes <= 0 || tensor.Offset+tensor.Bytes > int64(len(b)) {
				t.Fatalf("%+v in a file of %d bytes", tensor, len(b))
			}
			end = tensor.Offset + tensor.Bytes
		}
		for key := range file.values {
			if _, err := file.Strings(key, 1<<20); err != nil {
				_, _ = file.Ints(key, 1<<20)
			}
		}
	})
}
