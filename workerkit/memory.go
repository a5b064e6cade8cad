package workerkit

import (
	"fmt"
	"os"

	"github.com/shirou/gopsutil/v4/mem"
	"github.com/shirou/gopsutil/v4/process"
)

// mib is the unit of PONG's rss_mb.
const mib = 1 << 20

// residentMiB is this process's resident memory.
func residentMiB() (int64, error) {
	p, err := process.NewProcess(int32(os.Getpid()))
	if err != nil {
		return 0, err
	}
	info, err := p.MemoryInfo()
	if err != nil {
		return 0, err
	}
	return int64(info.RSS / mib), nil
}

// AvailableMemory is how many bytes this process can still take before the
// system or its control group must reclaim or kill.
func AvailableMemory() (uint64, error) {
	vm, err := mem.VirtualMemory()
	if err != nil {
		return 0, fmt.Errorf("available memory: %w", err)
	}
	if group, ok := groupAvailable(); ok {
		return min(vm.Available, group), nil
	}
	return vm.Available, nil
}

// CheckMemory answers oom for what needs more bytes than are available: said
// here, the worker lives; left to the kernel, it is killed. Where the system does
// not tell, the work is tried.
func CheckMemory(need uint64, what string) error {
	have, err := AvailableMemory()
	if err != nil || need <= have {
		return nil
	}
	return OOM("%s needs about %d MiB, %d MiB are available on this machine or in its control group", what, need/mib, have/mib)
}
