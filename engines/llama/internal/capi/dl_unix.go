//go:build unix

package capi

import (
	"runtime"

	"github.com/ebitengine/purego"
)

var names = func() fileNames {
	n := fileNames{prefix: "lib", suffix: ".so", module: ".so"}
	if runtime.GOOS == "darwin" {
		n.suffix = ".dylib" // ggml's backends are .so on macOS as well
	}
	return n
}()

// open loads the library at an absolute path. Symbols stay out of the global
// scope, so that two engines' libraries in one process cannot meet.
func open(path string) (uintptr, error) {
	return purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
}

func closeLibrary(handle uintptr) error { return purego.Dlclose(handle) }

// strlen is the address of the C library's function.
func strlen() (uintptr, error) { return purego.Dlsym(purego.RTLD_DEFAULT, "strlen") }

func symbol(handle uintptr, name string) (uintptr, error) { return purego.Dlsym(handle, name) }
