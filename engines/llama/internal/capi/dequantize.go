package capi

import (
	"fmt"
	"unsafe"

	"github.com/ebitengine/purego"
)

// TypeTraits is struct ggml_type_traits.
type TypeTraits struct {
	TypeName           *byte
	BlckSize           int64 // elements of a block
	BlckSizeInterleave int64
	TypeSize           uint64 // bytes of a block
	IsQuantized        bool
	_                  [7]byte
	ToFloat            uintptr // void (*)(const void *, float *, int64_t)
	FromFloatRef       uintptr
}

// Dequantize returns the library's own function that computes the values of whole
// blocks of a type, whose block has the given elements and bytes. src holds
// len(dst)/elements blocks.
func (l *Library) Dequantize(typ uint32, elements, bytes int64) (func(dst []float32, src []byte), error) {
	t := l.GetTypeTraits(typ)
	if t == nil || t.BlckSize != elements || t.TypeSize != uint64(bytes) || t.IsQuantized != (elements > 1) || t.ToFloat == 0 {
		return nil, fmt.Errorf("the library in %s has no type %d with blocks of %d elements in %d bytes", l.Dir, typ, elements, bytes)
	}
	return func(dst []float32, src []byte) {
		if int64(len(src)) != int64(len(dst))/elements*bytes || len(dst) == 0 {
			panic(fmt.Sprintf("capi: %d elements of type %d from %d bytes", len(dst), typ, len(src)))
		}
		purego.SyscallN(t.ToFloat, uintptr(unsafe.Pointer(&src[0])), uintptr(unsafe.Pointer(&dst[0])), uintptr(len(dst)))
	}, nil
}

// Halves writes values as IEEE 754 halves, rounded to nearest. dst holds two bytes
// a value; values over 65504 become infinite.
func (l *Library) Halves(dst []byte, src []float32) {
	if len(dst) != 2*len(src) || len(src) == 0 {
		panic(fmt.Sprintf("capi: %d halves into %d bytes", len(src), len(dst)))
	}
	l.FP32ToFP16Row(&src[0], &dst[0], int64(len(src)))
}
