package main

import (
	"bufio"
	"fmt"
	"os"
	"path"
	"regexp"
	"strings"

	"github.com/synapse-module/workers/internal/assets"
)

// What tools/llama-libs builds: its sources are pinned in this file, and what comes
// out of them.
const (
	builtSums   = "tools/llama-libs/SHA256SUMS"
	builtEngine = "llama"
	// builtVersion is llama.cpp's in these sources, as worker-llama --version says it.
	builtVersion = "0.5.0-dev"
	// builtLicence is that of llama.cpp, and of what zig links in: its own runtime,
	// LLVM's C++ library and unwinder, the start-up code of mingw-w64.
	builtLicence        = "MIT AND Apache-2.0 WITH LLVM-exception"
	builtLicenceWindows = builtLicence + " AND ZPL-2.1"
)

// builtLine is a line of builtSums: the source archive, or PLATFORM/FILE.
var builtLine = regexp.MustCompile(`^([0-9a-f]{64})  (?:(llama_cpp_python)-([0-9.]+)\.tar\.gz|([a-z0-9]+-[a-z0-9]+)/([A-Za-z0-9_.-]+))$`)

// builtLlama reads the libraries of each platform that they are built for, in the
// form that fetched ones have.
func builtLlama(sums string) (map[platform]*assets.Asset, error) {
	f, err := os.Open(sums)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var source assets.Package
	built := map[platform]*assets.Asset{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		m := builtLine.FindStringSubmatch(lines.Text())
		if m == nil {
			return nil, fmt.Errorf("%s: %q names neither llama-cpp-python's sources nor PLATFORM/FILE", sums, lines.Text())
		}
		if m[2] != "" {
			source = assets.Package{
				Client: "pip", Name: strings.ReplaceAll(m[2], "_", "-"), Version: assets.Version(m[3]),
				File: m[2] + "-" + m[3] + ".tar.gz", SHA256: m[1],
			}
			continue
		}
		p := platform(strings.Replace(m[4], "-", "/", 1))
		a := built[p]
		if a == nil {
			a = &assets.Asset{Name: builtEngine + "-" + m[4], Version: builtVersion, Licence: builtLicence, Platform: string(p), Package: &source}
			if p.os() == "windows" {
				a.Licence = builtLicenceWindows
			}
			built[p] = a
		}
		a.Files = append(a.Files, assets.File{Path: m[5], SHA256: m[1]})
	}
	if source.File == "" {
		return nil, fmt.Errorf("%s does not pin llama-cpp-python's sources", path.Base(sums))
	}
	return built, nil
}
