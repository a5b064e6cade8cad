package assets

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"time"
)

// makeTimeout ends a script that hangs. The longest takes seconds; a machine
// under load has been seen to take twenty times as long.
const makeTimeout = 30 * time.Minute

// make runs an asset's script and takes over its output, which must be what the
// lock lists, to the byte and to the file.
func (s *Store) make(ctx context.Context, a *Asset, root *os.Root) error {
	python, err := s.venv(ctx, a.Made)
	if err != nil {
		return err
	}
	s.progress.say("making %s with %s", a.Name, a.Made.Script)
	out, err := s.scratch()
	if err != nil {
		return err
	}
	// -B: no compiled files beside a script that imports its neighbour.
	args := slices.Concat(
		[]string{"-B", filepath.Join(s.root, filepath.FromSlash(a.Made.Script))},
		a.Made.Args, []string{"--out", out})
	for _, input := range a.Made.Inputs {
		args = append(args, filepath.Join(s.dir, input))
	}
	ctx, cancel := context.WithTimeout(ctx, makeTimeout)
	defer cancel()
	if printed, err := run(ctx, out, python, args...); err != nil {
		return fmt.Errorf("%s: %w%s", a.Made.Script, err, quote(printed))
	}
	return takeOver(a, out, root)
}

// takeOver copies what a script made into the asset and verifies it.
func takeOver(a *Asset, out string, root *os.Root) error {
	made, err := regularFiles(out)
	if err != nil {
		return err
	}
	for _, f := range a.Files {
		r, err := os.Open(filepath.Join(out, filepath.FromSlash(f.Path)))
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s did not make %s", a.Made.Script, f.Path)
		}
		if err != nil {
			return err
		}
		got, err := writeFile(root, f.Path, r)
		if err = errors.Join(err, r.Close()); err != nil {
			return err
		}
		if got != f.SHA256 {
			return &DigestError{
				File: f.Path, Want: f.SHA256, Got: got,
				Next: fmt.Sprintf("%s or a package of %s was changed; if that is meant, pin the new digest", a.Made.Script, a.Made.Requirements),
			}
		}
		made = slices.DeleteFunc(made, func(name string) bool { return name == f.Path })
	}
	if len(made) > 0 {
		return fmt.Errorf("%s also made %v, which %s does not list", a.Made.Script, made, LockName)
	}
	return nil
}

// regularFiles lists a directory's files: slashes, relative to it.
func regularFiles(dir string) ([]string, error) {
	var names []string
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, name)
		}
		return err
	})
	return names, err
}

// venv returns the Python of a script's own environment, built from its
// requirements file with every package held to a SHA-256.
func (s *Store) venv(ctx context.Context, r *Recipe) (string, error) {
	requirements := filepath.Join(s.root, filepath.FromSlash(r.Requirements))
	digest, err := fileDigest(requirements)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(s.dir, ".venv", path.Base(path.Dir(r.Script)))
	python := filepath.Join(dir, "bin", "python")
	if runtime.GOOS == "windows" {
		python = filepath.Join(dir, "Scripts", "python.exe")
	}
	// Written last, so that an environment that was cut short is built anew.
	stamp := filepath.Join(dir, "requirements.sha256")
	if built, err := os.ReadFile(stamp); err == nil && string(built) == digest {
		return python, nil
	}
	s.progress.say("installing %s", r.Requirements)
	if err := os.RemoveAll(dir); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, clientTimeout)
	defer cancel()
	if out, err := run(ctx, "", venvClient.program, "-m", "venv", dir); err != nil {
		return "", fmt.Errorf("python environment in %s: %w%s", dir, err, quote(out))
	}
	out, err := run(ctx, "", python, "-m", "pip", "install", "--disable-pip-version-check", "--no-input",
		"--require-hashes", "--only-binary=:all:", "--requirement", requirements)
	if err != nil {
		return "", fmt.Errorf("pip could not install %s: %w%s", r.Requirements, err, quote(out))
	}
	return python, os.WriteFile(stamp, []byte(digest), 0o644)
}
