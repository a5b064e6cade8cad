// Package machine says where a measurement holds.
package machine

import (
	"context"
	"runtime"

	"github.com/klauspost/cpuid/v2"
	"github.com/shirou/gopsutil/v4/host"
)

// Machine is where a result holds: quantised kernels differ between instruction
// sets, and Core ML between versions of the system.
type Machine struct {
	OS        string `json:"os"`         // GOOS
	OSName    string `json:"os_name"`    // "debian", "darwin"
	OSVersion string `json:"os_version"` // of the distribution or the system
	Kernel    string `json:"kernel"`
	Arch      string `json:"arch"` // GOARCH
	CPU       string `json:"cpu"`
	Cores     int    `json:"cores"` // that this process may use
	ISA       string `json:"isa"`   // instruction-set class, see [isaClass]
}

// This is the machine that the program runs on.
func This(ctx context.Context) Machine {
	m := Machine{
		OS: runtime.GOOS, Arch: runtime.GOARCH,
		CPU: cpuid.CPU.BrandName, Cores: runtime.NumCPU(), ISA: isaClass(cpuid.CPU),
	}
	// What the system does not tell stays empty: a certificate then fits no
	// other machine, which is the safe side.
	if info, err := host.InfoWithContext(ctx); err == nil {
		m.OSName, m.OSVersion, m.Kernel = info.Platform, info.PlatformVersion, info.KernelVersion
	}
	return m
}

// isaClass names what makes numeric kernels choose another path: the micro-
// architecture level of x86-64 or ARMv8, and the extensions for dot products and
// matrices.
func isaClass(c cpuid.CPUInfo) string {
	class := runtime.GOARCH
	if level := c.X64Level(); level > 0 {
		class = "x86-64-v" + string('0'+rune(level))
	}
	for _, f := range []cpuid.FeatureID{
		cpuid.AVX512VNNI, cpuid.AVXVNNI, cpuid.AVX512BF16, cpuid.AVX512FP16, cpuid.AMXINT8, cpuid.AMXBF16,
		cpuid.ASIMDDP, cpuid.I8MM, cpuid.BF16, cpuid.SVE, cpuid.SVE2,
	} {
		if c.Supports(f) {
			class += "+" + f.String()
		}
	}
	return class
}

// Has reports whether this processor has an instruction-set extension, by the
// name that an [Machine.ISA] has it under. It has none of an unknown name.
func Has(extension string) bool {
	id := cpuid.ParseFeature(extension)
	return id != cpuid.UNKNOWN && cpuid.CPU.Supports(id)
}
