//go:build cgo

package onnx

import (
	"runtime"

	"golang.org/x/sys/cpu"
)

// cpuClass names the instructions that decide which integer kernels the library
// picks, and so the vectors of a quantised model.
func cpuClass() string {
	switch {
	case runtime.GOARCH == "arm64" && cpu.ARM64.HasI8MM:
		return "arm64_i8mm"
	case runtime.GOARCH == "arm64" && cpu.ARM64.HasASIMDDP:
		return "arm64_dotprod"
	case runtime.GOARCH != "amd64":
		return runtime.GOARCH
	case cpu.X86.HasAMXInt8:
		return "amx_int8"
	case cpu.X86.HasAVX512VNNI:
		return "avx512_vnni"
	case cpu.X86.HasAVXVNNI:
		return "avx_vnni"
	case cpu.X86.HasAVX512F:
		return "avx512"
	case cpu.X86.HasAVX2:
		return "avx2"
	}
	return "sse"
}

// saturates says that the CPU's products of unsigned and signed bytes are summed
// in 16 bits and clamp: on x86-64 without VNNI an int8 model is then not slightly
// but plainly wrong.
func saturates() bool {
	return runtime.GOARCH == "amd64" && !cpu.X86.HasAVX512VNNI && !cpu.X86.HasAVXVNNI
}
