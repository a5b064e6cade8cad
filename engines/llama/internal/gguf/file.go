package gguf

import (
	"errors"
	"fmt"
	"io"
	"math"
)

// File is a checked header.
type File struct {
	Tensors    []Tensor
	DataOffset int64 // where the tensors' data begin in the file
	Size       int64 // of the whole file, bytes

	r      io.ReaderAt
	align  int64 // of the tensors' data
	values map[string]value
	byName map[string]int
}

// Tensor is one tensor's place and shape.
type Tensor struct {
	Name   string
	Type   Type
	Dims   []int64 // the row's length first, as ggml has it
	Offset int64   // from the beginning of the file
	Bytes  int64

	typeAt int64 // where the header names the type, and behind it the offset
}

// value is a scalar, or where an array stands.
type value struct {
	kind    Kind
	bits    uint64 // a number's bits, sign-extended; a bool's 0 or 1
	text    string
	element Kind // of an array
	count   int64
	offset  int64 // of an array's first element in the file
}

// Tensor returns the tensor of a name.
func (f *File) Tensor(name string) (Tensor, bool) {
	i, ok := f.byName[name]
	if !ok {
		return Tensor{}, false
	}
	return f.Tensors[i], true
}

// Has says whether a key stands in the metadata.
func (f *File) Has(key string) bool { _, ok := f.values[key]; return ok }

// Text returns a string value; "" where the key is absent or no string.
func (f *File) Text(key string) string { return f.values[key].text }

// Bool returns a bool value, or def where the key is absent. A value of another
// kind is an error.
func (f *File) Bool(key string, def bool) (bool, error) {
	v, ok := f.values[key]
	if !ok {
		return def, nil
	}
	if v.kind != Bool {
		return false, fmt.Errorf("%s is a %s, a bool is due", key, v.kind)
	}
	return v.bits == 1, nil
}

// Int returns an integer value of any width, or def where the key is absent. A
// value of another kind or over 2^63-1 is an error.
func (f *File) Int(key string, def int64) (int64, error) {
	v, ok := f.values[key]
	if !ok {
		return def, nil
	}
	switch v.kind {
	case Uint8, Uint16, Uint32, Int8, Int16, Int32, Int64:
		return int64(v.bits), nil
	case Uint64:
		if v.bits <= math.MaxInt64 {
			return int64(v.bits), nil
		}
	}
	return 0, fmt.Errorf("%s is a %s, an integer up to 2^63-1 is due", key, v.kind)
}

// Float32 returns a value of that kind; false where the key is absent or of another.
func (f *File) Float32(key string) (float32, bool) {
	v, ok := f.values[key]
	return math.Float32frombits(uint32(v.bits)), ok && v.kind == Float32
}

// Count returns the number of elements of an array; 0 where the key is absent or
// no array.
func (f *File) Count(key string) int64 { return f.values[key].count }

// Float32s reads n values of an F32 tensor's row, in elements from its start.
func (f *File) Float32s(t Tensor, first, n int64) ([]float32, error) {
	if t.Type != F32 {
		return nil, fmt.Errorf("tensor %s is %s, F32 is due", t.Name, t.Type)
	}
	if first < 0 || n < 0 || n > t.Bytes/4 || first > t.Bytes/4-n {
		return nil, fmt.Errorf("tensor %s has no elements %d..%d", t.Name, first, first+n)
	}
	raw := make([]byte, 4*n)
	if _, err := f.r.ReadAt(raw, t.Offset+4*first); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read tensor %s: %w", t.Name, err)
	}
	out := make([]float32, n)
	for i := range out {
		out[i] = math.Float32frombits(le.Uint32(raw[4*i:]))
	}
	return out, nil
}

// Ints reads an array of integers, or the one integer where the key holds a
// scalar: per-layer values are written either way. It is nil where the key is
// absent; more than limit elements are an error.
func (f *File) Ints(key string, limit int64) ([]int64, error) {
	v, ok := f.values[key]
	if !ok {
		return nil, nil
	}
	if v.kind != Array {
		n, err := f.Int(key, 0)
		return []int64{n}, err
	}
	width := v.element.width()
	if width == 0 || v.element == Float32 || v.element == Float64 {
		return nil, fmt.Errorf("%s is an array of %s, integers are due", key, v.element)
	}
	if v.count > limit {
		return nil, fmt.Errorf("%s has %d elements, at most %d are taken", key, v.count, limit)
	}
	raw := make([]byte, width*v.count)
	if _, err := f.r.ReadAt(raw, v.offset); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read %s: %w", key, err)
	}
	out := make([]int64, v.count)
	for i := range out {
		out[i] = int64(scalarBits(v.element, raw[int64(i)*width:]))
	}
	return out, nil
}

// Strings reads an array of strings of at most limit elements. It is nil where
// the key is absent.
func (f *File) Strings(key string, limit int64) ([]string, error) {
	v, ok := f.values[key]
	if !ok {
		return nil, nil
	}
	if v.kind != Array || v.element != String || v.count > limit {
		return nil, fmt.Errorf("%s is not an array of at most %d strings", key, limit)
	}
	d := newDecoder(f.r, v.offset, f.Size)
	out := make([]string, v.count)
	for i := range out {
		var err error
		if out[i], err = d.text(key, maxElement); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// ElementKind returns the kind of an array's elements; false where the key is
// absent or no array.
func (f *File) ElementKind(key string) (Kind, bool) {
	v, ok := f.values[key]
	return v.element, ok && v.kind == Array
}
