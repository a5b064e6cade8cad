package capi

import (
	"fmt"
	"strings"

	"github.com/ebitengine/purego"
	"golang.org/x/sys/cpu"
)

// variantNeeds says which instruction sets the operating system must have
// enabled for a variant. llama.cpp's own score asks the processor alone, so
// where a hypervisor or kernel keeps the wide registers off it would pick a
// variant that dies of SIGILL. A variant that is not listed needs nothing more
// than its score says.
var variantNeeds = map[string]func() bool{
	"sandybridge":    func() bool { return cpu.X86.HasAVX },
	"ivybridge":      func() bool { return cpu.X86.HasAVX },
	"piledriver":     func() bool { return cpu.X86.HasAVX },
	"haswell":        func() bool { return cpu.X86.HasAVX2 },
	"alderlake":      func() bool { return cpu.X86.HasAVX2 },
	"skylakex":       func() bool { return cpu.X86.HasAVX512F },
	"cannonlake":     func() bool { return cpu.X86.HasAVX512F },
	"cascadelake":    func() bool { return cpu.X86.HasAVX512F },
	"cooperlake":     func() bool { return cpu.X86.HasAVX512F },
	"icelake":        func() bool { return cpu.X86.HasAVX512F },
	"zen4":           func() bool { return cpu.X86.HasAVX512F },
	"sapphirerapids": func() bool { return cpu.X86.HasAVX512F && cpu.X86.HasAMXTile },
}

// bestVariant picks the file whose variant llama.cpp scores highest for this
// processor, among those that the operating system has enabled. Where there is
// only one build its score is asked as well.
func bestVariant(files []string) (string, error) {
	best, bestScore := "", int32(0)
	var refused []string
	for _, path := range files {
		v := names.variant(path, "cpu")
		if needs := variantNeeds[v]; needs != nil && !needs() {
			refused = append(refused, v+" (not enabled by this processor and system)")
			continue
		}
		s, err := score(path)
		if err != nil {
			refused = append(refused, fmt.Sprintf("%s (%v)", v, err))
			continue
		}
		if s == 0 {
			refused = append(refused, v+" (scored 0)")
		}
		if s > bestScore {
			best, bestScore = path, s
		}
	}
	if best == "" {
		return "", fmt.Errorf("no CPU variant among %d runs here: %s", len(files), strings.Join(refused, ", "))
	}
	return best, nil
}

// score asks a backend how well it suits this processor; 0 is not at all. A
// build without variants has no score and suits.
func score(path string) (int32, error) {
	h, err := open(path)
	if err != nil {
		return 0, err
	}
	defer closeLibrary(h) //nolint:errcheck // a handle more is harmless
	addr, err := symbol(h, "ggml_backend_score")
	if err != nil {
		return 1, nil
	}
	var fn func() int32
	purego.RegisterFunc(&fn, addr)
	return fn(), nil
}
