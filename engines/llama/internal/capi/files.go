package capi

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// fileNames says how the libraries are named on a system. Builds of llama.cpp
// name them "libllama.so" or, where several versions live side by side,
// "libllama.v0.4.0.so" and "libllama.metal.v0.4.0.dylib". The files refer to one
// another by these very names, so they are opened under them: on Windows a copy
// under another name would be loaded a second time, with a registry of its own.
type fileNames struct {
	prefix, suffix string
	module         string // suffix of backends, which are opened at run time
}

// path finds the one file of the library called name in dir.
func (n fileNames) path(dir, name string) (string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", fmt.Errorf("read the library directory: %w", err)
	}
	var found []string
	for _, e := range entries {
		rest, ok := strings.CutPrefix(e.Name(), n.prefix+name)
		rest, ok2 := strings.CutSuffix(rest, n.suffix)
		if ok && ok2 && (rest == "" || strings.HasPrefix(rest, ".")) {
			found = append(found, e.Name())
		}
	}
	switch len(found) {
	case 1:
		return filepath.Join(dir, found[0]), nil
	case 0:
		return "", fmt.Errorf("%s holds no %s%s%s: install llama.cpp's libraries there, or name their directory with --engine-lib", dir, n.prefix, name, n.suffix)
	default:
		return "", fmt.Errorf("%s holds several builds of %s (%s): leave one of them there", dir, name, strings.Join(found, ", "))
	}
}

// backends lists the files of the backend called name in dir: one plain file, or
// one for each variant, sorted by name.
func (n fileNames) backends(dir, name string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read the library directory: %w", err)
	}
	var found []string
	for _, e := range entries {
		rest, ok := strings.CutPrefix(e.Name(), n.prefix+"ggml-"+name)
		rest, ok2 := strings.CutSuffix(rest, n.module)
		if ok && ok2 && (rest == "" || strings.HasPrefix(rest, "-")) {
			found = append(found, filepath.Join(dir, e.Name()))
		}
	}
	slices.Sort(found)
	return found, nil
}

// variant is the part of a backend's file name that tells it from its siblings:
// "zen4" of "libggml-cpu-zen4.so", "" of "libggml-cpu.so".
func (n fileNames) variant(path, name string) string {
	rest := strings.TrimPrefix(filepath.Base(path), n.prefix+"ggml-"+name)
	return strings.TrimPrefix(strings.TrimSuffix(rest, n.module), "-")
}
