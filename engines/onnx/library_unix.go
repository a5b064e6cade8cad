//go:build cgo && unix

package onnx

/*
#cgo linux LDFLAGS: -ldl
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>

// The head of the library's OrtApiBase, which is fixed for all releases.
typedef struct {
	const void *(*get_api)(uint32_t version);
	const char *(*get_version_string)(void);
} api_base;

typedef const api_base *(*get_api_base)(void);

static const char *version_string(void *get) { return ((get_api_base)get)()->get_version_string(); }
*/
import "C"

import (
	"errors"
	"fmt"
	"unsafe"
)

// versionOf loads the library at path and asks for its version. The library
// stays loaded: unloading runs code of its own, and who refuses it exits.
func versionOf(path string) (string, error) {
	file := C.CString(path)
	defer C.free(unsafe.Pointer(file))
	handle := C.dlopen(file, C.RTLD_NOW|C.RTLD_LOCAL)
	if handle == nil {
		return "", errors.New(C.GoString(C.dlerror()))
	}
	symbol := C.CString("OrtGetApiBase")
	defer C.free(unsafe.Pointer(symbol))
	get := C.dlsym(handle, symbol)
	if get == nil {
		return "", fmt.Errorf("%s is no ONNX Runtime: %s", path, C.GoString(C.dlerror()))
	}
	return C.GoString(C.version_string(get)), nil
}
