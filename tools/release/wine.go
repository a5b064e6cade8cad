package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// wine is a private Windows: a prefix of its own, with the one library in it that
// wine 8 lacks and Go programs need.
type wine struct {
	program string
	server  string
	env     []string
}

const (
	// prefixTimeout bounds the making of a prefix, which takes a minute on a loaded
	// machine.
	prefixTimeout = 10 * time.Minute
	// wineTimeout bounds one program: an engine's load and three sentences take
	// seconds, a hang takes forever.
	wineTimeout = 5 * time.Minute
)

func newWine(ctx context.Context, shim, scratch string) (*wine, error) {
	w := &wine{env: []string{
		"PATH=/usr/bin:/bin", "HOME=" + scratch, "WINEPREFIX=" + filepath.Join(scratch, "wine"), "WINEDEBUG=-all",
		"WINEDLLOVERRIDES=mscoree=;mshtml=", // no offers to install .NET and a browser
	}}
	var err error
	for _, p := range []struct {
		field *string
		names []string
	}{
		{&w.program, []string{"wine64", "wine", "/usr/lib/wine/wine64"}},
		{&w.server, []string{"wineserver", "/usr/lib/wine/wineserver64", "/usr/lib/wine/wineserver"}},
	} {
		if *p.field, err = lookAny(p.names); err != nil {
			return nil, fmt.Errorf("%w: apt-get install wine64", err)
		}
	}
	w.env = append(w.env, "WINESERVER="+w.server)
	start, cancel := context.WithTimeout(ctx, prefixTimeout)
	defer cancel()
	if out, err := w.exec(start, "wineboot.exe", "--init").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("make the prefix: %w: %s", err, out)
	}
	raw, err := os.ReadFile(shim)
	if err != nil {
		return nil, fmt.Errorf("--wine-shim: %w", err)
	}
	system := filepath.Join(scratch, "wine", "drive_c", "windows", "system32")
	return w, os.WriteFile(filepath.Join(system, "bcryptprimitives.dll"), raw, 0o755)
}

func lookAny(names []string) (string, error) {
	var faults []error
	for _, name := range names {
		path, err := exec.LookPath(name)
		if err == nil {
			return path, nil
		}
		faults = append(faults, err)
	}
	return "", errors.Join(faults...)
}

func (w *wine) exec(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, w.program, append([]string{program}, args...)...)
	cmd.Env = w.env
	cmd.WaitDelay = 10 * time.Second // a child of wine's may hold the output open
	return cmd
}

// run returns what a program printed; its stderr is in the error.
func (w *wine) run(ctx context.Context, program string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, wineTimeout)
	defer cancel()
	cmd := w.exec(ctx, program, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return out, fmt.Errorf("%w: %s", err, lastLine(stderr.Bytes()))
	}
	return out, nil
}

// path is a file's name in wine's world, where drive Z is our root.
func (w *wine) path(file string) string { return `Z:` + strings.ReplaceAll(file, "/", `\`) }

// close ends every program of the prefix.
func (w *wine) close() {
	cmd := exec.Command(w.server, "--kill")
	cmd.Env = w.env
	_ = cmd.Run() // it fails where none is left
}
