package onnx

import (
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// apiBase is the head of the library's OrtApiBase, which is fixed for all
// releases.
type apiBase struct{ getAPI, getVersionString uintptr }

// versionOf loads the library at path and asks for its version. The library
// stays loaded: unloading runs code of its own, and who refuses it exits.
func versionOf(path string) (string, error) {
	dll, err := windows.LoadDLL(path)
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	get, err := dll.FindProc("OrtGetApiBase")
	if err != nil {
		return "", fmt.Errorf("%s is no ONNX Runtime: %w", path, err)
	}
	base, _, _ := get.Call()
	text, _, _ := syscall.SyscallN((*apiBase)(unsafe.Pointer(base)).getVersionString)
	return windows.BytePtrToString((*byte)(unsafe.Pointer(text))), nil
}
