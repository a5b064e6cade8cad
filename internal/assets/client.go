package assets

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

const (
	// clientTimeout ends a client that hangs on a dead connection. The largest
	// package is 84 MB, which takes this long at 47 kB/s.
	clientTimeout = 30 * time.Minute
	// probeTimeout is for a client that only says whether it is there; the
	// slowest takes 2 s on a loaded machine.
	probeTimeout = time.Minute
	// killDelay is how long a client's children may hold its output open after
	// it was told to end.
	killDelay = 5 * time.Second
	// outputTail is as much of a failed client's output as an error quotes:
	// enough for the last few lines, where the clients name the cause.
	outputTail = 600
)

// The plugin is named with its version, because Maven's own default differs
// between its releases and the oldest ones cannot copy without a project.
const mavenCopy = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"

// Wheels of native libraries are tagged with a Python version although the
// library inside has nothing to do with it. One tag is asked for whatever
// Python runs the client, so that everyone gets the same wheel.
const wheelPython = "3.12"

// client is one of the ordinary package clients, run as it is set up on this
// machine: with its index, its proxy, its credentials.
type client struct {
	program string
	// probe is a quick call that fails where the client cannot do its work.
	probe []string
	// install completes the sentence "… needs X, which is not here: ".
	what, install string
	// download makes the arguments that put a package into dir.
	download func(p *Package, dir string) []string
}

var clients = map[string]client{
	"pip": {
		program: pythonProgram,
		probe:   []string{"-m", "pip", "--version"},
		what:    "Python with pip",
		install: pythonInstall,
		download: func(p *Package, dir string) []string {
			args := []string{
				"-m", "pip", "download", "--disable-pip-version-check", "--no-input", "--no-cache-dir",
				"--no-deps", "--only-binary=:all:", "--dest", dir,
			}
			if p.Platform != "" {
				args = append(args, "--python-version", wheelPython, "--implementation", "cp", "--platform", p.Platform)
			}
			return append(args, p.Name+"=="+string(p.Version))
		},
	},
	"npm": {
		program: "npm",
		probe:   []string{"--version"},
		what:    "npm",
		install: "install Node.js 20 or newer (Debian: apt-get install npm; macOS: brew install node)",
		download: func(p *Package, dir string) []string {
			return []string{"pack", "--ignore-scripts", "--silent", "--pack-destination", dir, p.Name + "@" + string(p.Version)}
		},
	},
	"maven": {
		program: "mvn",
		probe:   []string{"--version"},
		what:    "Maven",
		install: "install Maven 3.6 or newer (Debian: apt-get install maven; macOS: brew install maven)",
		download: func(p *Package, dir string) []string {
			return []string{
				"-B", "-q", "-ntp", mavenCopy, "-Dartifact=" + p.Name + ":" + string(p.Version) + ":jar",
				"-DoutputDirectory=" + dir, "-Dmdep.useBaseVersion=true",
			}
		},
	},
}

// venvClient is the Python that runs our scripts.
var venvClient = client{
	program: pythonProgram,
	probe:   []string{"-c", "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))"},
	what:    "Python 3.11 or newer with venv",
	install: pythonInstall,
}

// pythonProgram is python3 where `python` may be Python 2, and python on
// Windows, where python3 may be a stub that opens a store.
var pythonProgram = func() string {
	if runtime.GOOS == "windows" {
		return "python"
	}
	return "python3"
}()

const pythonInstall = "install Python 3.11 or newer (Debian: apt-get install python3-pip python3-venv; macOS: brew install python)"

// check says in one line what to install where the client is missing.
func (c client) check(ctx context.Context, purpose string) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	if _, err := run(ctx, "", c.program, c.probe...); err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("%s %s: %w", c.program, strings.Join(c.probe, " "), ctx.Err())
		}
		return fmt.Errorf("%s needs %s, which is not here: %s", purpose, c.what, c.install)
	}
	return nil
}

// fetch downloads a package into dir and returns the path of its file.
func (p *Package) fetch(ctx context.Context, dir string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, clientTimeout)
	defer cancel()
	c := clients[p.Client]
	if out, err := run(ctx, dir, c.program, c.download(p, dir)...); err != nil {
		return "", fmt.Errorf("%s could not fetch %s %s: %w%s", p.Client, p.Name, p.Version, err, quote(out))
	}
	file := filepath.Join(dir, p.File)
	if _, err := os.Stat(file); err != nil {
		return "", fmt.Errorf("%s fetched %s %s, but not as %s: the name in %s is wrong", p.Client, p.Name, p.Version, p.File, LockName)
	}
	return file, nil
}

// run runs a program to its end in dir and returns what it printed, both
// streams together.
func run(ctx context.Context, dir, program string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	cmd.WaitDelay = killDelay
	out, err := cmd.CombinedOutput()
	if err != nil && ctx.Err() != nil {
		// That the program was killed is only the consequence.
		err = ctx.Err()
	}
	return out, err
}

// quote is the end of a program's output, to stand after an error.
func quote(out []byte) string {
	out = bytes.TrimSpace(out)
	if len(out) == 0 {
		return ""
	}
	if len(out) > outputTail {
		out = bytes.ToValidUTF8(out[len(out)-outputTail:], nil)
	}
	return ", saying:\n" + string(out)
}
