// Package ggufwriter writes GGUF files for tests: small models, and headers that
// no converter would write.
package ggufwriter

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// alignment is the format's default.
const alignment = 32

// Pair is one metadata pair. Value is an int32, uint32, uint64, float32, bool,
// string, []string, []int32 or Raw.
type Pair struct {
	Key   string
	Value any
}

// Raw is a value as it stands in the file, its kind included.
type Raw []byte

// Tensor is one tensor. Data decides nothing: Dims and Type are written as they
// are, and the next tensor is placed behind Data.
type Tensor struct {
	Name string
	Dims []uint64
	Type uint32
	Data []byte
}

// File is a file to be written.
type File struct {
	Pairs   []Pair
	Tensors []Tensor
}

// Bytes is the file.
func (f File) Bytes() []byte {
	var b Buffer
	b.WriteString("GGUF")
	b.Put(uint32(3), uint64(len(f.Tensors)), uint64(len(f.Pairs)))
	for _, p := range f.Pairs {
		b.Put(p.Key, p.Value)
	}
	var data bytes.Buffer
	for _, t := range f.Tensors {
		b.Text(t.Name)
		b.Put(uint32(len(t.Dims)))
		for _, d := range t.Dims {
			b.Put(d)
		}
		b.Put(t.Type, uint64(data.Len()))
		data.Write(t.Data)
		data.Write(make([]byte, -data.Len()&(alignment-1)))
	}
	b.Write(make([]byte, -b.Len()&(alignment-1)))
	b.Write(data.Bytes())
	return b.Bytes()
}

// Buffer puts a file together piece by piece.
type Buffer struct{ bytes.Buffer }

// Text writes a string with its length.
func (b *Buffer) Text(s string) {
	b.Put(uint64(len(s)))
	b.WriteString(s)
}

// Put writes numbers as they are. A string, followed by a value, is a pair.
func (b *Buffer) Put(values ...any) {
	for i := 0; i < len(values); i++ {
		if key, ok := values[i].(string); ok {
			b.Text(key)
			i++
			b.value(values[i])
			continue
		}
		if err := binary.Write(b, binary.LittleEndian, values[i]); err != nil {
			panic(err)
		}
	}
}

// value writes a value after its kind.
func (b *Buffer) value(v any) {
	switch v := v.(type) {
	case Raw:
		b.Write(v)
	case uint32:
		b.Put(uint32(4), v)
	case int32:
		b.Put(uint32(5), v)
	case float32:
		b.Put(uint32(6), v)
	case bool:
		b.Put(uint32(7), v)
	case string:
		b.Put(uint32(8))
		b.Text(v)
	case uint64:
		b.Put(uint32(10), v)
	case []int32:
		b.Put(uint32(9), uint32(5), uint64(len(v)), v)
	case []string:
		b.Put(uint32(9), uint32(8), uint64(len(v)))
		for _, s := range v {
			b.Text(s)
		}
	default:
		panic(fmt.Sprintf("ggufwriter: a value of type %T", v))
	}
}

// Floats is the data of an F32 tensor.
func Floats(v []float32) []byte {
	var b Buffer
	b.Put(v)
	return b.Bytes()
}
