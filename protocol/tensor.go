package protocol

import (
	"encoding/binary"
	"unsafe"
)

// elemBytes is the size of an i32 or f32 on the wire.
const elemBytes = 4

// nativeLittle is true where memory already has the wire's byte order, so that
// tensors are views and never copies.
var nativeLittle = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// Element is a number that raw frames carry.
type Element interface{ int32 | float32 }

// View returns the numbers of a raw frame's payload: a view into b where the
// machine is little-endian and b is aligned, else a copy. A length that is not a
// multiple of 4 is CodeRequestInvalid. The view lives as long as b.
func View[T Element](b []byte) ([]T, error) {
	if len(b)%elemBytes != 0 {
		return nil, Errorf(CodeRequestInvalid, "a raw frame of %d bytes is not a whole number of %d-byte values", len(b), elemBytes)
	}
	if len(b) == 0 {
		return nil, nil
	}
	p := unsafe.Pointer(unsafe.SliceData(b))
	if nativeLittle && uintptr(p)%elemBytes == 0 {
		return unsafe.Slice((*T)(p), len(b)/elemBytes), nil
	}
	out := make([]T, len(b)/elemBytes)
	swapInto(bytesOf(out), b)
	return out, nil
}

// Bytes returns v as a raw frame's payload: the memory of v itself where the
// machine is little-endian, else a converted copy. v must not change before the
// bytes are written.
func Bytes[T Element](v []T) []byte {
	b := bytesOf(v)
	if nativeLittle {
		return b
	}
	out := make([]byte, len(b))
	swapInto(out, b)
	return out
}

func bytesOf[T Element](v []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), len(v)*elemBytes)
}

// swapInto moves 4-byte values between the wire's order and the machine's: a
// plain copy when they agree.
func swapInto(dst, src []byte) {
	for i := 0; i < len(src); i += elemBytes {
		binary.NativeEndian.PutUint32(dst[i:], binary.LittleEndian.Uint32(src[i:]))
	}
}
