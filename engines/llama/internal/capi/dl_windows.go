package capi

import (
	"errors"
	"fmt"

	"golang.org/x/sys/windows"
)

var names = fileNames{suffix: ".dll", module: ".dll"}

// open loads the library at an absolute path and looks for what it needs beside
// it and in the system directory, nowhere else.
func open(path string) (uintptr, error) {
	h, err := windows.LoadLibraryEx(path, 0,
		windows.LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR|windows.LOAD_LIBRARY_SEARCH_SYSTEM32)
	if errors.Is(err, windows.ERROR_MOD_NOT_FOUND) {
		err = fmt.Errorf("it, or a library that it needs, is not there: %w; unpack the release whole, and install Microsoft's Visual C++ runtime 2015-2022 (x64)", err)
	}
	return uintptr(h), err
}

func closeLibrary(handle uintptr) error { return windows.FreeLibrary(windows.Handle(handle)) }

// strlen is the address of the C library's function.
func strlen() (uintptr, error) {
	h, err := windows.LoadLibraryEx("msvcrt.dll", 0, windows.LOAD_LIBRARY_SEARCH_SYSTEM32)
	if err != nil {
		return 0, err
	}
	return symbol(uintptr(h), "strlen")
}

func symbol(handle uintptr, name string) (uintptr, error) {
	return windows.GetProcAddress(windows.Handle(handle), name)
}
