package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

// licencesCmd fills a folder with one folder for each Go module that is linked
// into any binary of the release, and one for Go itself. Native libraries carry
// theirs beside them.
type licencesCmd struct {
	Out string `arg:"" help:"The folder, which is made anew."`
	Zig string `required:"" help:"The folder of zig, the C compiler."`
}

// licencePattern is how licences and the notices that must go with them are named.
var licencePattern = regexp.MustCompile(`(?i)^(licen[cs]es?|copying|notice|patents|copyright)([-._].*)?$`)

func (c licencesCmd) Run(ctx context.Context) error {
	r, err := openRelease(".")
	if err != nil {
		return err
	}
	dirs := map[string]map[string]bool{} // module@version -> folders with linked packages, and those above
	for _, p := range r.platforms() {
		if err := linkedFolders(ctx, r, p, dirs); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(c.Out); err != nil {
		return err
	}
	for module, folders := range dirs {
		n := 0
		for _, folder := range slices.Sorted(maps.Keys(folders)) { // the module's own comes first
			copied, err := copyLicences(folder, filepath.Join(c.Out, filepath.FromSlash(module)))
			if err != nil {
				return err
			}
			n += copied
		}
		if n == 0 {
			return fmt.Errorf("%s is linked into the release and has no licence file: it cannot be shipped", module)
		}
	}
	goroot, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return err
	}
	if _, err := copyLicences(strings.TrimSpace(string(goroot)), filepath.Join(c.Out, runtime.Version())); err != nil {
		return err
	}
	return c.compilerLicences()
}

// compilerLicences are those of what zig links into programs with cgo and into the
// libraries that we build: its own runtime, the start-up code of the C libraries, and
// the C++ runtime.
func (c licencesCmd) compilerLicences() error {
	for _, part := range []string{".", "lib/libc/glibc", "lib/libc/mingw", "lib/libcxx", "lib/libcxxabi", "lib/libunwind"} {
		n, err := copyLicences(filepath.Join(c.Zig, part), filepath.Join(c.Out, "zig", part))
		if err != nil {
			return err
		}
		if n == 0 {
			return fmt.Errorf("zig has no licence in %s: it has moved, look for it", filepath.Join(c.Zig, part))
		}
	}
	return nil
}

// linkedFolders adds the modules of all packages that the platform's commands are
// made of.
func linkedFolders(ctx context.Context, r *release, p platform, dirs map[string]map[string]bool) error {
	args := []string{"list", "-deps", "-json=Dir,Module"}
	for _, b := range r.commands(p) {
		args = append(args, b.Main)
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	// With cgo, because then no binding's package is left out; nothing is compiled.
	cmd.Env = append(os.Environ(), "GOOS="+p.os(), "GOARCH="+p.arch(), "CGO_ENABLED=1")
	cmd.Dir, cmd.Stderr = r.root, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("%s: %w", strings.Join(cmd.Args, " "), err)
	}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var pkg struct {
			Dir    string
			Module *struct {
				Path, Version, Dir string
				Main               bool
			}
		}
		err := dec.Decode(&pkg)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if m := pkg.Module; m != nil && !m.Main {
			folders := dirs[m.Path+"@"+m.Version]
			if folders == nil {
				folders = map[string]bool{}
				dirs[m.Path+"@"+m.Version] = folders
			}
			// A folder's own licence, where it has one, stands for what a module took over from elsewhere.
			for dir := pkg.Dir; ; dir = filepath.Dir(dir) {
				folders[dir] = true
				if dir == m.Dir || dir == filepath.Dir(dir) {
					break
				}
			}
		}
	}
}

// copyLicences copies the licences of one folder and says how many there are. Two
// of one name, of a module and of a folder in it, must both be kept.
func copyLicences(from, to string) (int, error) {
	entries, err := os.ReadDir(from)
	if err != nil {
		return 0, err
	}
	n := 0
	for _, e := range entries {
		if !e.Type().IsRegular() || !licencePattern.MatchString(e.Name()) {
			continue
		}
		n++
		text, err := os.ReadFile(filepath.Join(from, e.Name()))
		if err != nil {
			return n, err
		}
		if err := os.MkdirAll(to, 0o755); err != nil {
			return n, err
		}
		if err := writeBeside(filepath.Join(to, e.Name()), filepath.Base(from), text); err != nil {
			return n, err
		}
	}
	return n, nil
}

// writeBeside writes name, or name with the folder's in it where another text
// stands there already.
func writeBeside(name, folder string, text []byte) error {
	there, err := os.ReadFile(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return os.WriteFile(name, text, 0o644)
	case err != nil || bytes.Equal(there, text):
		return err
	}
	return os.WriteFile(name+"."+folder, text, 0o644)
}
