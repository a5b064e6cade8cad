//go:build cgo

package onnx

import (
	"errors"
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
	// What it needs is looked for beside it and in the system directory, nowhere else.
	dll, err := windows.LoadLibraryEx(path, 0, windows.LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR|windows.LOAD_LIBRARY_SEARCH_SYSTEM32)
	if errors.Is(err, windows.ERROR_MOD_NOT_FOUND) {
		return "", fmt.Errorf("%s, or a library that it needs, is not there: %w; unpack the release whole, and install Microsoft's Visual C++ runtime 2015-2022 (x64)", path, err)
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	get, err := windows.GetProcAddress(dll, "OrtGetApiBase")
	if err != nil {
		return "", fmt.Errorf("%s is no ONNX Runtime: %w", path, err)
	}
	base, _, _ := syscall.SyscallN(get)
	text, _, _ := syscall.SyscallN((*apiBase)(unsafe.Pointer(base)).getVersionString)
	return windows.BytePtrToString((*byte)(unsafe.Pointer(text))), nil
}
