package workerkit

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
)

// A worker parses model files that nobody has vouched for, in a library written
// in C++. Before it says HELLO, and after all that needs more is done (the
// libraries are loaded, the socket is connected), it gives up what serving does
// not need: writing outside its cache, reading outside the artifact roots where it
// was told of some, starting programs, opening sockets, dumping its memory to a
// core file, and gaining privilege ever again. The platform files say how far each
// system can do that.

// The values of --sandbox.
const (
	sandboxAuto    = "auto"    // as much as this system has
	sandboxOff     = "off"     // nothing
	sandboxRequire = "require" // all of it, or no worker
)

// sandboxFlag introduces the sandbox among the build flags, such as
// "sandbox=landlock-v6+seccomp".
const sandboxFlag = "sandbox="

// confinement is what a sandbox leaves open.
type confinement struct {
	readable []string // artifact roots; empty for everything
	libs     string   // the engine's libraries; empty for none
	cache    string   // written as well
}

// enterSandbox confines this process for good and returns the build flag that
// says how.
func enterSandbox(mode string, c confinement, log *slog.Logger) (flag string, err error) {
	if mode == sandboxOff {
		return sandboxFlag + "off", nil
	}
	for i, root := range c.readable {
		if c.readable[i], err = filepath.Abs(root); err != nil {
			return "", fmt.Errorf("--artifact-root: %w", err)
		}
		info, err := os.Stat(root)
		if err != nil {
			return "", fmt.Errorf("--artifact-root: %w", err)
		}
		if !info.IsDir() {
			return "", fmt.Errorf("--artifact-root: %s is no directory", root)
		}
	}
	// A rule can only name what is there. Without a cache nothing can be written.
	if err := os.MkdirAll(c.cache, 0o700); err != nil {
		log.Warn("no cache directory, so artifacts that need a private copy cannot be loaded", "error", err)
		c.cache = ""
	}
	done, missing := confine(c)
	if missing == nil {
		return sandboxFlag + done, nil
	}
	if mode == sandboxRequire {
		return "", fmt.Errorf("--sandbox=require: %w", missing)
	}
	log.Warn("this system has no whole sandbox", "have", done, "missing", missing)
	return sandboxFlag + done, nil
}
