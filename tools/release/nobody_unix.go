//go:build unix

package main

import (
	"os"
	"os/exec"
	"syscall"
)

// nobody owns nothing (its id on Debian and macOS alike is not asked: 65534 owns
// no file on either).
const nobody = 65534

// asNobody takes root's rights from a command: root may write to a read-only
// folder.
func asNobody(cmd *exec.Cmd) {
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
}
