package host

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// neutralDir is the worker's working directory: one that only administrators can
// write, since Windows looks for libraries there too.
func neutralDir() string {
	dir, err := windows.GetSystemWindowsDirectory()
	if err != nil {
		return `C:\`
	}
	return dir
}

// group is a Job Object whose processes all die when its last handle is closed,
// which the system does when the module ends, however it ends.
type group struct{ job windows.Handle }

// startInGroup starts cmd inside a new Job Object. The process is created
// suspended, so that it runs no instruction outside the job.
func startInGroup(cmd *exec.Cmd) (group, error) {
	job, err := killOnCloseJob()
	if err != nil {
		return group{}, fmt.Errorf("make a Job Object: %w", err)
	}
	g := group{job}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		CreationFlags: windows.CREATE_SUSPENDED | windows.CREATE_NO_WINDOW | windows.CREATE_NEW_PROCESS_GROUP,
	}
	if err := cmd.Start(); err != nil {
		g.release()
		return group{}, err
	}
	if err := enterJob(job, uint32(cmd.Process.Pid)); err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		g.release()
		return group{}, err
	}
	return g, nil
}

func killOnCloseJob() (windows.Handle, error) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return 0, err
	}
	var limits windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION
	limits.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE |
		windows.JOB_OBJECT_LIMIT_DIE_ON_UNHANDLED_EXCEPTION // no dialog waits for a user
	_, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&limits)), uint32(unsafe.Sizeof(limits)))
	if err != nil {
		windows.CloseHandle(job)
		return 0, err
	}
	return job, nil
}

func enterJob(job windows.Handle, pid uint32) error {
	p, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, pid)
	if err != nil {
		return fmt.Errorf("open the new process: %w", err)
	}
	defer windows.CloseHandle(p)
	if err := windows.AssignProcessToJobObject(job, p); err != nil {
		return fmt.Errorf("put the new process into its Job Object: %w", err)
	}
	return resume(pid)
}

// resume starts the only thread of a process that was created suspended.
func resume(pid uint32) error {
	all, err := windows.CreateToolhelp32Snapshot(windows.TH32CS_SNAPTHREAD, 0)
	if err != nil {
		return fmt.Errorf("list threads: %w", err)
	}
	defer windows.CloseHandle(all)
	entry := windows.ThreadEntry32{Size: uint32(unsafe.Sizeof(windows.ThreadEntry32{}))}
	for err = windows.Thread32First(all, &entry); err == nil; err = windows.Thread32Next(all, &entry) {
		if entry.OwnerProcessID != pid {
			continue
		}
		thread, err := windows.OpenThread(windows.THREAD_SUSPEND_RESUME, false, entry.ThreadID)
		if err != nil {
			return fmt.Errorf("open the new process's thread: %w", err)
		}
		defer windows.CloseHandle(thread)
		if _, err := windows.ResumeThread(thread); err != nil {
			return fmt.Errorf("resume the new process: %w", err)
		}
		return nil
	}
	return fmt.Errorf("find the new process's thread: %w", err)
}

// killedStatus is the exit status of processes that kill ends; Windows has no
// signals to tell them by.
const killedStatus = 0xDEAD

func (g group) kill() { _ = windows.TerminateJobObject(g.job, killedStatus) }

func (g group) release() { windows.CloseHandle(g.job) }

// awaitExit blocks until the process has exited. The handle that cmd holds keeps
// the process id from being given away until cmd.Wait.
func awaitExit(pid int) {
	p, err := windows.OpenProcess(windows.SYNCHRONIZE, false, uint32(pid))
	if err != nil {
		return
	}
	defer windows.CloseHandle(p)
	_, _ = windows.WaitForSingleObject(p, windows.INFINITE)
}

// endingOf reads exceptions that end a process as the signals that they are
// elsewhere, so that a module reads one vocabulary.
func endingOf(s *os.ProcessState) ending {
	switch code := uint32(s.ExitCode()); code {
	case uint32(windows.STATUS_ACCESS_VIOLATION), uint32(windows.STATUS_STACK_OVERFLOW):
		return ending{code: NoExitCode, signal: "SIGSEGV"}
	case uint32(windows.STATUS_ILLEGAL_INSTRUCTION):
		return ending{code: NoExitCode, signal: "SIGILL"}
	case uint32(windows.STATUS_STACK_BUFFER_OVERRUN): // what abort() ends in
		return ending{code: NoExitCode, signal: "SIGABRT"}
	case killedStatus:
		return ending{code: NoExitCode, signal: "SIGKILL"}
	default:
		return ending{code: int(int32(code))}
	}
}
