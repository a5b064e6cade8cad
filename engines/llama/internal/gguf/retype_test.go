package gguf

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/synapse-module/workers/engines/llama/internal/ggufwriter"
)

// quantized is a file with a tensor to be retyped between two that are not, long
// enough for several chunks, and an alignment that is not the default.
func quantized() ggufwriter.File {
	blocks := make([]byte, 34*3*chunk/32)
	for i := range blocks {
		blocks[i] = byte(i % 251)
	}
	f := small()
	f.Tensors = []tensor{
		{Name: "a", Dims: []uint64{3}, Type: uint32(F32), Data: ggufwriter.Floats([]float32{1, 2, 3})},
		{Name: "b", Dims: []uint64{96, chunk / 32}, Type: 8, Data: blocks},
		{Name: "c", Dims: []uint64{5}, Type: uint32(F32), Data: ggufwriter.Floats([]float32{1, 2, 3, 4, 5})},
	}
	return f
}

// retyped lays out that file.
func retyped(t *testing.T, to func(Tensor) Type) (whole []byte, f *File, r *Retyped) {
	t.Helper()
	whole = quantized().Bytes()
	f, err := parse(whole)
	if err != nil {
		t.Fatal(err)
	}
	if r, err = f.Retype(to); err != nil {
		t.Fatal(err)
	}
	return whole, f, r
}

func halfAllQuantized(t Tensor) Type {
	if t.Type.Quantized() {
		return F16
	}
	return t.Type
}

// firstBytes is a conversion that can be followed by eye: a half's bytes are its
// block's first two.
func firstBytes(dst, src []byte, from, _ Type) error {
	elements, size := from.Block()
	for i := range dst {
		dst[i] = src[int64(i)/2/elements*size+int64(i)%2]
	}
	return nil
}

func TestARetypedFileIsTheSameButForTheTypes(t *testing.T) {
	whole, f, r := retyped(t, halfAllQuantized)
	if r.Changed != 1 {
		t.Errorf("%d tensors changed", r.Changed)
	}
	var out bytes.Buffer
	if err := r.Write(t.Context(), &out, firstBytes); err != nil {
		t.Fatal(err)
	}
	g, err := parse(out.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	for i, tensor := range g.Tensors {
		if want := r.Tensors[i]; fmt.Sprint(tensor) != fmt.Sprint(want) {
			t.Errorf("read back as %+v, laid out as %+v", tensor, want)
		}
	}
	for key, v := range f.values {
		if g.values[key] != v {
			t.Errorf("%s is %+v, was %+v", key, g.values[key], v)
		}
	}
	for _, name := range []string{"a", "c"} {
		before, _ := f.Tensor(name)
		after, _ := g.Tensor(name)
		if got := out.Bytes()[after.Offset:][:after.Bytes]; after.Type != F32 || !bytes.Equal(got, whole[before.Offset:][:before.Bytes]) {
			t.Errorf("%s is %+v: % x", name, after, got)
		}
	}
	before, _ := f.Tensor("b")
	after, _ := g.Tensor("b")
	if after.Type != F16 || after.Bytes != 3*chunk*2 {
		t.Fatalf("b is %+v", after)
	}
	for i := range after.Bytes {
		if got, want := out.Bytes()[after.Offset+i], whole[before.Offset+i/64*34+i%2]; got != want {
			t.Fatalf("byte %d of b is %d, want %d", i, got, want)
		}
	}
}

func TestUnchangedTypesWriteTheFileItself(t *testing.T) {
	whole, _, r := retyped(t, func(t Tensor) Type { return t.Type })
	var out bytes.Buffer
	if err := r.Write(t.Context(), &out, nil); err != nil {
		t.Fatal(err)
	}
	if r.Changed != 0 || !bytes.Equal(out.Bytes(), whole) {
		t.Errorf("%d changed, %d bytes from %d", r.Changed, out.Len(), len(whole))
	}
}

func TestWhatFailsWhileAFileIsRetyped(t *testing.T) {
	whole, f, r := retyped(t, halfAllQuantized)
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		ctx     context.Context
		convert Convert
		size    int
		want    string
	}{
		"cancelled":              {canceled, firstBytes, len(whole), "context canceled"},
		"a conversion that ends": {t.Context(), func(_, _ []byte, _, _ Type) error { return broken }, len(whole), "tensor b: broken"},
		"cut in the header":      {t.Context(), firstBytes, 100, "cut"},
		"cut in a tensor":        {t.Context(), firstBytes, len(whole) - 200, "tensor b: read the file: unexpected EOF: it was cut"},
		"cut at the end":         {t.Context(), firstBytes, len(whole) - 30, "cut"},
	} {
		f.r = shrinking{whole[:c.size]}
		if err := r.Write(c.ctx, &bytes.Buffer{}, c.convert); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

// FuzzRetype: what is written of a file that passed passes, and has its tensors
// where they were laid out.
func FuzzRetype(f *testing.F) {
	f.Add(small().Bytes(), uint8(1))
	f.Add(hostile(2, 0, "t", uint32(1), uint64(1), uint32(0), uint64(0), "u", uint32(2), uint64(32), uint64(2), uint32(8), uint64(32)), uint8(0))
	f.Fuzz(func(t *testing.T, b []byte, to uint8) {
		file, err := parse(b)
		if err != nil {
			return
		}
		r, err := file.Retype(func(t Tensor) Type {
			if t.Type.Quantized() {
				return Type(to % 2) // F32 or F16
			}
			return t.Type
		})
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := r.Write(t.Context(), &out, func(_, _ []byte, _, _ Type) error { return nil }); err != nil {
			t.Fatal(err)
		}
		again, err := parse(out.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		if !slices.EqualFunc(again.Tensors, r.Tensors, func(a, b Tensor) bool { return fmt.Sprint(a) == fmt.Sprint(b) }) {
			t.Fatalf("%+v, laid out were %+v", again.Tensors, r.Tensors)
		}
	})
}
