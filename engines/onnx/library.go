//go:build cgo

package onnx

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"

	ort "github.com/yalue/onnxruntime_go"
)

// libraryVersion is the one release of ONNX Runtime that is loaded: vectors of
// int8 models depend on the release, later Linux builds carry telemetry, earlier
// ones do not have this API version. docs/adr says more.
const libraryVersion = "1.24.4"

// libraryFile is the library's name in the directory of native libraries: the
// one that it has in the vendor's package for the platform.
func libraryFile() string {
	switch runtime.GOOS {
	case "windows":
		return "onnxruntime.dll"
	case "darwin":
		return "libonnxruntime." + libraryVersion + ".dylib"
	}
	return "libonnxruntime.so." + libraryVersion
}

// openLibrary loads the library from dir, an absolute path, after asking it for
// its version. The system's search path is never used.
func openLibrary(dir string) error {
	if !filepath.IsAbs(dir) {
		return fmt.Errorf("the directory of ONNX Runtime must be an absolute path, got %q", dir)
	}
	path := filepath.Join(dir, libraryFile())
	// Asked before the binding creates its environment: that alone starts the
	// telemetry of a build that has it.
	found, err := versionOf(path)
	if err != nil {
		return fmt.Errorf("cannot load ONNX Runtime %s: %w; put the library of that release there", libraryVersion, err)
	}
	if found != libraryVersion {
		return fmt.Errorf("%s is ONNX Runtime %s, wanted is %s: put the library of that release there", path, found, libraryVersion)
	}
	if ort.IsInitialized() {
		return errors.New("ONNX Runtime is already open in this process")
	}
	ort.SetSharedLibraryPath(path)
	// What goes wrong comes back as an error; the library's own log would only
	// say it again on stderr.
	if err := ort.InitializeEnvironment(ort.WithLogLevelFatal()); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
