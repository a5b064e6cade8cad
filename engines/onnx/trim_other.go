//go:build cgo && !linux

package onnx

// trim: these systems' allocators give freed memory back by themselves.
func trim() {}
