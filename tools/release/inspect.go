package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// inspectLayout holds an unpacked archive to what it must hold, no more and no
// less: the commands, the libraries byte for byte as the lock has them, the texts.
func inspectLayout(r *release, p platform, dir string, names []string) error {
	due := map[string]string{"LICENSE": "", "README.md": ""} // name -> SHA-256, empty where it is not known
	for _, b := range r.commands(p) {
		due[p.exe(b.ID)] = ""
	}
	for _, l := range r.libraries(p) {
		for _, f := range l.Files {
			due[path.Join(l.dir, f.Path)] = f.SHA256
		}
	}
	licences := 0
	for _, name := range names {
		if strings.HasPrefix(name, "LICENSES/") {
			licences++
			continue
		}
		want, ok := due[name]
		if !ok {
			return fmt.Errorf("holds %s, which nothing asks for", name)
		}
		delete(due, name)
		if want == "" {
			continue
		}
		raw, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		if err != nil {
			return err
		}
		if got := sumOf(raw); got != want {
			return fmt.Errorf("%s has SHA-256 %s, the lock pins %s", name, got, want)
		}
	}
	for name := range due {
		return fmt.Errorf("lacks %s", name)
	}
	if licences == 0 {
		return fmt.Errorf("lacks LICENSES")
	}
	return nil
}

// inspectPaths looks for traces of this machine in the commands.
func inspectPaths(ctx context.Context, r *release, p platform, dir string) error {
	traces, err := machinePaths(ctx, r.root)
	if err != nil {
		return err
	}
	for _, b := range r.commands(p) {
		file := filepath.Join(dir, p.exe(b.ID))
		// Debug information is compressed, so folders in it would not be found below.
		n, _, err := needsOf(p, file)
		if err == nil && n.debug {
			err = errors.New("holds debug information, which names the building machine's folders")
		}
		if err != nil {
			return fmt.Errorf("%s: %w", p.exe(b.ID), err)
		}
		raw, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		for _, t := range traces {
			if at := bytes.Index(raw, []byte(t)); at >= 0 {
				return fmt.Errorf("%s names a path of the building machine: %q", p.exe(b.ID), raw[at:min(at+80, len(raw))])
			}
		}
	}
	return nil
}

// machinePaths are the folders that a build here could leak.
func machinePaths(ctx context.Context, root string) ([]string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOROOT", "GOMODCACHE", "GOCACHE").Output()
	if err != nil {
		return nil, err
	}
	paths := append(strings.Fields(string(out)), root)
	if home, err := os.UserHomeDir(); err == nil {
		paths = append(paths, home)
	}
	if zig := os.Getenv("ZIG"); zig != "" {
		paths = append(paths, filepath.Dir(zig))
	}
	for i, p := range paths {
		// A whole folder's name, so that /root is not found in /rootless.
		paths[i] = strings.TrimSuffix(p, string(filepath.Separator)) + string(filepath.Separator)
	}
	return paths, nil
}

// inspectNeeds asks every command and library what it wants from the system, and
// returns the oldest system that has all of it.
func inspectNeeds(p platform, dir string, names []string) (floor string, err error) {
	for _, name := range names {
		n, ok, err := needsOf(p, filepath.Join(dir, filepath.FromSlash(name)))
		if err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
		if !ok {
			continue
		}
		if !slices.Contains(harmlessSearchPaths, n.searchPath) {
			return "", fmt.Errorf("%s looks for libraries in %s", name, n.searchPath)
		}
		for _, library := range n.libraries {
			beside := path.Join(path.Dir(name), path.Base(library))
			if !systemHas(p, library) && !slices.Contains(names, beside) {
				return "", fmt.Errorf("%s needs %s, which is neither beside it nor part of the system", name, library)
			}
		}
		if versionLess(floor, n.floor) {
			floor = n.floor
		}
	}
	if most := oldestSystem[p.os()]; versionLess(most, floor) {
		return "", fmt.Errorf("it needs %s %s, what is promised is %s", floorName[p.os()], floor, most)
	}
	return floor, nil
}

// harmlessSearchPaths lead to the file's own folder. The colon at the end of
// llama.cpp's adds the working directory, which package host makes / and which
// none of these libraries needs: what they need is loaded before them.
var harmlessSearchPaths = []string{"", "$ORIGIN", "$ORIGIN:", "@loader_path"}

// oldestSystem is what docs/operations.md promises, and floorName what it counts.
var (
	oldestSystem = map[string]string{"linux": "2.28", "darwin": "14.0"}
	floorName    = map[string]string{"linux": "glibc", "darwin": "macOS"}
)

// systemLibraries are part of every system that the archives are for, or, where
// they are not (the C++ runtimes), are what docs/operations.md asks for.
var systemLibraries = map[string][]string{
	"linux": {
		"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1",
		"libstdc++.so.6", "libgcc_s.so.1",
	},
	"windows": {
		"kernel32.dll", "ntdll.dll", "msvcrt.dll", "advapi32.dll", "ws2_32.dll", "user32.dll", "shell32.dll", "ole32.dll", "dxgi.dll", "dbghelp.dll", "setupapi.dll",
		"msvcp140.dll", "msvcp140_1.dll", "vcruntime140.dll", "vcruntime140_1.dll",
	},
}

func systemHas(p platform, library string) bool {
	switch p.os() {
	case "darwin":
		return strings.HasPrefix(library, "/usr/lib/") || strings.HasPrefix(library, "/System/Library/")
	case "windows":
		library = strings.ToLower(library)
		return strings.HasPrefix(library, "api-ms-win-") || slices.Contains(systemLibraries["windows"], library)
	}
	return slices.Contains(systemLibraries[p.os()], library)
}
