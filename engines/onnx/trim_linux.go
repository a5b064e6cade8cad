//go:build cgo

package onnx

// #include <malloc.h>
import "C"

// trim gives freed memory back to the system. The library frees a model in
// pieces of all sizes and from several threads, which the C library's allocator
// keeps: without this, loads and unloads hold a few models' memory for nothing.
func trim() { C.malloc_trim(0) }
