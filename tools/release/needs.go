package main

import (
	"cmp"
	"debug/elf"
	"debug/macho"
	"debug/pe"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// needs is what a native file wants from the machine that it lands on.
type needs struct {
	debug      bool // holds debug information
	libraries  []string
	searchPath string // where it looks for them, besides the system's own places
	floor      string // the oldest glibc or macOS
}

// needsOf reads a command or library; ok is false for any other file.
func needsOf(p platform, file string) (n needs, ok bool, err error) {
	switch p.os() {
	case "linux":
		return elfNeeds(file)
	case "darwin":
		return machoNeeds(file)
	default:
		return peNeeds(file)
	}
}

func elfNeeds(file string) (n needs, ok bool, err error) {
	f, err := elf.Open(file)
	var format *elf.FormatError
	if errors.As(err, &format) {
		return n, false, nil
	}
	if err != nil {
		return n, false, err
	}
	defer f.Close()
	if n.libraries, err = f.ImportedLibraries(); err != nil {
		return n, false, err
	}
	n.debug = slices.ContainsFunc(f.Sections, func(s *elf.Section) bool { return strings.HasPrefix(s.Name, ".debug") })
	for _, tag := range []elf.DynTag{elf.DT_RPATH, elf.DT_RUNPATH} {
		paths, err := f.DynString(tag)
		if err != nil {
			return n, false, err
		}
		n.searchPath += strings.Join(paths, ":")
	}
	symbols, err := f.ImportedSymbols()
	if err != nil && !errors.Is(err, elf.ErrNoSymbols) { // a static program has none
		return n, false, err
	}
	for _, s := range symbols {
		if v, ok := strings.CutPrefix(s.Version, "GLIBC_"); ok && versionLess(n.floor, v) {
			n.floor = v
		}
	}
	return n, true, nil
}

// Load commands that debug/macho has no names for (mach-o/loader.h), and the
// place of the minimum OS in LC_BUILD_VERSION.
const (
	loadCodeSignature = 0x1d
	loadBuildVersion  = 0x32
	minOSOffset       = 12
)

func machoNeeds(file string) (n needs, ok bool, err error) {
	f, err := macho.Open(file)
	var format *macho.FormatError
	if errors.As(err, &format) {
		return n, false, nil
	}
	if err != nil {
		return n, false, err
	}
	defer f.Close()
	if n.libraries, err = f.ImportedLibraries(); err != nil {
		return n, false, err
	}
	n.debug = f.Segment("__DWARF") != nil
	signed := false
	for _, load := range f.Loads {
		if r, ok := load.(*macho.Rpath); ok {
			n.searchPath = r.Path
		}
		raw := load.Raw()
		switch f.ByteOrder.Uint32(raw) {
		case loadCodeSignature:
			signed = true
		case loadBuildVersion:
			v := f.ByteOrder.Uint32(raw[minOSOffset:]) // xxxx.yy.zz
			n.floor = fmt.Sprintf("%d.%d", v>>16, v>>8&0xff)
		}
	}
	switch {
	case !signed:
		return n, false, errors.New("it has no code signature, not even an ad-hoc one: macOS on arm64 does not run it")
	case n.floor == "":
		return n, false, errors.New("it does not say which macOS it is for")
	}
	return n, true, nil
}

func peNeeds(file string) (n needs, ok bool, err error) {
	if ext := filepath.Ext(file); ext != ".exe" && ext != ".dll" {
		return n, false, nil
	}
	f, err := pe.Open(file)
	if err != nil {
		return n, false, err
	}
	defer f.Close()
	n.debug = slices.ContainsFunc(f.Sections, func(s *pe.Section) bool {
		return strings.HasPrefix(s.Name, ".debug") || strings.HasPrefix(s.Name, ".zdebug")
	})
	// debug/pe's ImportedLibraries gives nothing; its symbols carry the library.
	symbols, err := f.ImportedSymbols()
	if err != nil {
		return n, false, err
	}
	seen := map[string]bool{}
	for _, s := range symbols {
		if _, library, ok := strings.Cut(s, ":"); ok && !seen[library] {
			seen[library] = true
			n.libraries = append(n.libraries, library)
		}
	}
	return n, true, nil
}

// versionLess compares versions of numbers and dots; the empty one is the least.
func versionLess(a, b string) bool {
	as, bs := strings.Split(a, "."), strings.Split(b, ".")
	for i := range max(len(as), len(bs)) {
		if c := cmp.Compare(number(as, i), number(bs, i)); c != 0 {
			return c < 0
		}
	}
	return false
}

func number(parts []string, i int) int {
	if i >= len(parts) {
		return 0
	}
	n, err := strconv.Atoi(parts[i])
	if err != nil {
		return 0
	}
	return n
}
