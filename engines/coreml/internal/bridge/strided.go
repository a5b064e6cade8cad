package bridge

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/x448/float16"
)

// DataType is an MLMultiArrayDataType.
type DataType int64

// The data types that are read or written here.
const (
	Float64 DataType = 0x10000 | 64
	Float32 DataType = 0x10000 | 32
	Float16 DataType = 0x10000 | 16
	Int32   DataType = 0x20000 | 32
)

func (t DataType) String() string {
	switch t {
	case Float64:
		return "float64"
	case Float32:
		return "float32"
	case Float16:
		return "float16"
	case Int32:
		return "int32"
	}
	return fmt.Sprintf("data type %#x", int64(t))
}

// size is in bytes. The lower half of a data type is its width in bits.
func (t DataType) size() int { return int(t&0xffff) / 8 }

// gather appends an array's elements in C order to dst. The array's memory is
// little-endian and laid out by strides, which are in elements; nothing outside
// of bytes is read.
func gather(dst []float32, bytes []byte, t DataType, shape, strides []int) ([]float32, error) {
	var read func(p []byte) float32
	switch t {
	case Float16:
		read = func(p []byte) float32 { return float16.Frombits(binary.LittleEndian.Uint16(p)).Float32() }
	case Float32:
		read = func(p []byte) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(p)) }
	case Float64:
		read = func(p []byte) float32 { return float32(math.Float64frombits(binary.LittleEndian.Uint64(p))) }
	default:
		return dst, fmt.Errorf("an array of %v is none of floats", t)
	}
	size := t.size()
	err := walk(len(bytes)/size, shape, strides, func(element int) {
		dst = append(dst, read(bytes[element*size:]))
	})
	return dst, err
}

// scatter writes values in C order into an int32 array's memory.
func scatter(bytes []byte, shape, strides []int, values []int32) error {
	size := Int32.size()
	next := 0
	return walk(len(bytes)/size, shape, strides, func(element int) {
		binary.LittleEndian.PutUint32(bytes[element*size:], uint32(values[next]))
		next++
	})
}

// walk calls visit with each element's place in C order of its index, once it is
// sure that all of them lie within the elements that there are.
func walk(elements int, shape, strides []int, visit func(element int)) error {
	if len(shape) != len(strides) {
		return fmt.Errorf("an array of %d dimensions has %d strides", len(shape), len(strides))
	}
	last, total := 0, 1
	for i, n := range shape {
		// A stride over the end is refused before it is multiplied, so that nothing overflows.
		if n <= 0 || strides[i] < 0 || n > elements || (n > 1 && strides[i] > elements) {
			return outOfBounds(elements, shape, strides)
		}
		last += (n - 1) * strides[i]
		total *= n
		if last >= elements || total > math.MaxInt32 {
			return outOfBounds(elements, shape, strides)
		}
	}
	if elements == 0 {
		return outOfBounds(elements, shape, strides)
	}
	if len(shape) == 0 {
		visit(0)
		return nil
	}
	inner := len(shape) - 1
	index := make([]int, inner)
	for base := 0; ; {
		for i := range shape[inner] {
			visit(base + i*strides[inner])
		}
		d := inner - 1
		for ; d >= 0; d-- {
			index[d]++
			base += strides[d]
			if index[d] < shape[d] {
				break
			}
			base -= index[d] * strides[d]
			index[d] = 0
		}
		if d < 0 {
			return nil
		}
	}
}

func outOfBounds(elements int, shape, strides []int) error {
	return fmt.Errorf("an array of shape %v and strides %v does not fit its memory of %d elements", shape, strides, elements)
}
