package main

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// interrupt runs a command, sends it SIGINT when a line of its stderr ends in
// the first argument, and wants exit status 3.
func interrupt(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: interrupt LINE_END COMMAND [ARG...]")
	}
	path, err := program(args[1])
	ts.Check(err)
	cmd := exec.Command(path, args[2:]...)
	cmd.Dir = ts.MkAbs(".")
	stderr, err := cmd.StderrPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	sent := false
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		ts.Logf("%s", lines.Text())
		if !sent && strings.HasSuffix(lines.Text(), args[0]) {
			sent = true
			ts.Check(cmd.Process.Signal(os.Interrupt))
		}
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !sent || !errors.As(err, &exit) || exit.ExitCode() != 3 {
		ts.Fatalf("interrupted: %t, ended with %v, wanted exit status 3", sent, err)
	}
}

// interrupted sends a command that waits for a file SIGINT until it has ended.
// The first asks it to end by itself.
func interrupted(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: interrupted COMMAND [ARG...]")
	}
	path, err := program(args[0])
	ts.Check(err)
	cmd := exec.Command(path, args[1:]...)
	cmd.Dir = ts.MkAbs(".")
	ts.Check(cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	give := time.After(patience)
	for every := time.NewTicker(100 * time.Millisecond); ; {
		select {
		case err := <-ended:
			ts.Logf("it ended: %v", err)
			return
		case <-every.C:
			cmd.Process.Signal(os.Interrupt) //nolint:errcheck // it may have ended
		case <-give:
			cmd.Process.Kill() //nolint:errcheck // it may have ended
			ts.Fatalf("it has not ended after %v of SIGINT", patience)
		}
	}
}

// patience is far over what a process takes to die of a signal.
const patience = 10 * time.Second
