package workerkit

import (
	"fmt"
	"runtime"
	"unsafe"

	"github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// deniedCalls fail with EPERM: starting programs, opening sockets, reaching into
// other processes, changing the system. io_uring can do most of that without the
// calls that a filter sees.
var deniedCalls = []string{
	"execve", "execveat", "fork", "vfork",
	"socket", "socketpair", "connect", "bind", "listen", "accept", "accept4",
	"ptrace", "process_vm_readv", "process_vm_writev", "pidfd_getfd", "kcmp",
	"io_uring_setup", "io_uring_enter", "io_uring_register",
	"bpf", "perf_event_open", "userfaultfd", "keyctl", "add_key", "request_key",
	"mount", "umount2", "pivot_root", "chroot", "setns", "unshare", "move_mount", "open_tree", "fsopen",
	"init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load", "reboot", "swapon", "swapoff",
}

// denyCalls makes the calls above fail in every thread.
func denyCalls() error {
	runtime.LockOSThread() // no_new_privs is set on the thread that installs the filter
	defer runtime.UnlockOSThread()
	native, err := arch.GetInfo("")
	if err != nil {
		return err
	}
	var names []string
	for _, name := range deniedCalls {
		if _, has := native.SyscallNames[name]; has { // arm64 has no fork
			names = append(names, name)
		}
	}
	newProcess := seccomp.NameWithConditions{
		Name:       "clone",
		Conditions: seccomp.ArgumentConditions{{Argument: 0, Operation: seccomp.BitsNotSet, Value: unix.CLONE_THREAD}},
	}
	filter := seccomp.Filter{
		NoNewPrivs: true,
		Flag:       seccomp.FilterFlagTSync,
		Policy: seccomp.Policy{
			DefaultAction: seccomp.ActionAllow,
			Syscalls: []seccomp.SyscallGroup{
				{Names: names, NamesWithCondtions: []seccomp.NameWithConditions{newProcess}, Action: seccomp.ActionErrno | seccomp.Action(unix.EPERM)},
				// Its flags lie in memory, out of a filter's sight: with ENOSYS a C
				// library falls back to clone.
				{Names: []string{"clone3"}, Action: seccomp.ActionErrno | seccomp.Action(unix.ENOSYS)},
			},
		},
	}
	if err := seccomp.LoadFilter(filter); err != nil {
		return err
	}
	return denyForeignCalls(uint32(native.ID))
}

// denyForeignCalls refuses system calls by another architecture's entry, as 32-bit
// ones on a 64-bit machine: the names above have other numbers there.
func denyForeignCalls(native uint32) error {
	const archOffset = 4 // struct seccomp_data: int nr; __u32 arch; ...
	program, err := bpf.Assemble([]bpf.Instruction{
		bpf.LoadAbsolute{Off: archOffset, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: native, SkipTrue: 1},
		bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)},
		bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW},
	})
	if err != nil {
		return err
	}
	filter := make([]unix.SockFilter, len(program))
	for i, in := range program {
		filter[i] = unix.SockFilter{Code: in.Op, Jt: in.Jt, Jf: in.Jf, K: in.K}
	}
	fprog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&fprog)))
	if errno != 0 {
		return fmt.Errorf("refuse foreign system calls: %w", errno)
	}
	return nil
}
