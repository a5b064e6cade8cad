package onnx

import (
	"runtime"
	"unsafe"

	ort "github.com/yalue/onnxruntime_go"

	"github.com/synapse-module/workers/engines/onnx/internal/onnxfile"
)

// numbers is the memory of one input, of the type that the graph wants.
type numbers interface {
	// grow makes room for n numbers. The library keeps pointers into it, so it is
	// pinned.
	grow(n int, pins *runtime.Pinner)

	// fill writes a row at place at, and padding up to width.
	fill(r role, at int, row []int32, width int)

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

// fill pads ids with 0: every vocabulary has it, and the mask hides it.
func (b *numbersOf[T]) fill(r role, at int, row []int32, width int) {
	n := len(row)
	dst := b.data[at : at+width]
	clear(dst[n:])
	switch r {
	case roleIDs:
		for i, id := range row {
			dst[i] = T(id)
		}
	case roleMask:
		for i := range n {
			dst[i] = 1
		}
	case roleTypes:
		clear(dst[:n])
	case rolePositions:
		for i := range n {
			dst[i] = T(i)
		}
	}
}

func (b *numbersOf[T]) tensor(s ort.Shape) (ort.Value, error) {
	return ort.NewTensor(s, b.data[:s.FlattenedSize()])
}

// bytesOf is the memory of v.
func bytesOf(v []uint16) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), len(v)*int(unsafe.Sizeof(v[0])))
}
