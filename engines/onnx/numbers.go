//go:build cgo

package onnx

import (
	"runtime"
	"unsafe"

	ort "github.com/yalue/onnxruntime_go"

	"github.com/synapse-module/workers/engines/onnx/internal/onnxfile"
)

// numbers is the memory of one input, of the type that the graph wants. Each
// method that writes fills places at to at+width: a row on the left, zeros as
// padding on the right.
type numbers interface {
	// grow makes room for n numbers. The library keeps pointers into it, so it is
	// pinned.
	grow(n int, pins *runtime.Pinner)

	// copy writes the row itself.
	copy(at, width int, row []int32)

	// count writes n numbers, from first on in steps.
	count(at, width, n, first, step int)

	// tensor is a view of the first numbers, as many as the shape has.
	tensor(s ort.Shape) (ort.Value, error)
}

func newNumbers(t onnxfile.Type) numbers {
	if t == onnxfile.Int32 {
		return new(numbersOf[int32])
	}
	return new(numbersOf[int64])
}

type numbersOf[T int32 | int64] struct{ data []T }

func (b *numbersOf[T]) grow(n int, pins *runtime.Pinner) {
	b.data = make([]T, n)
	pins.Pin(&b.data[0])
}

func (b *numbersOf[T]) copy(at, width int, row []int32) {
	dst := b.data[at : at+width]
	for i, v := range row {
		dst[i] = T(v)
	}
	clear(dst[len(row):])
}

func (b *numbersOf[T]) count(at, width, n, first, step int) {
	dst := b.data[at : at+width]
	for i := range n {
		dst[i] = T(first + i*step)
	}
	clear(dst[n:])
}

func (b *numbersOf[T]) tensor(s ort.Shape) (ort.Value, error) {
	return ort.NewTensor(s, b.data[:s.FlattenedSize()])
}

// bytesOf is the memory of v.
func bytesOf(v []uint16) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), len(v)*int(unsafe.Sizeof(v[0])))
}

// valuesOf is b's memory as numbers in the machine's order.
func valuesOf[T uint16 | float32](b []byte) []T {
	var v T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(v)))
}
