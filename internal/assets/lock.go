package assets

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
)

// LockName is the name of the lock file, which stands in the root of the
// repository beside go.mod.
const LockName = "assets.lock"

// LockVersion is the version of the lock's format that this code reads.
const LockVersion = 1

// Kind says what a file is to the project.
type Kind string

// The kinds of files.
const (
	Library Kind = "library" // a native library that a worker loads
	Model   Kind = "model"   // weights, or what must stand beside them to use them
	Licence Kind = "licence" // terms or notices that travel with the asset
	Data    Kind = "data"    // what a model is held to; never shipped
)

// Version is a version as it was written.
type Version string

// UnmarshalYAML refuses a number: YAML would read 1.10 as 1.1.
func (v *Version) UnmarshalYAML(node ast.Node) error {
	text, ok := node.(*ast.StringNode)
	if !ok {
		at := node.GetToken().Position
		return fmt.Errorf("[%d:%d] version: %s is not a string, quote it", at.Line, at.Column, node)
	}
	*v = Version(text.Value)
	return nil
}

// Lock is the decoded assets.lock.
type Lock struct {
	Version int     `yaml:"version"`
	Assets  []Asset `yaml:"assets"`
}

// Asset is one directory of the store. It comes either out of a package or
// from a script of ours, never both.
type Asset struct {
	Name    string  `yaml:"name"`
	Version Version `yaml:"version"`
	// Licence is an SPDX expression.
	Licence string `yaml:"licence"`
	// Platform is GOOS/GOARCH, or empty where the files are the same everywhere.
	Platform string `yaml:"platform"`
	// Main is the file, or the directory, that `assets path` prints: slashes,
	// relative to the asset.
	Main    string   `yaml:"main"`
	Fits    *Binding `yaml:"fits"`
	Package *Package `yaml:"package"`
	Made    *Recipe  `yaml:"made"`
	Files   []File   `yaml:"files"`
}

// Binding names the Go module that a native library is known to work with.
type Binding struct {
	Module  string  `yaml:"module"`
	Version Version `yaml:"version"`
}

// Package names what a package client downloads.
type Package struct {
	// Client is pip, npm or maven.
	Client string `yaml:"client"`
	// Name is the client's own: for maven group:artifact.
	Name    string  `yaml:"name"`
	Version Version `yaml:"version"`
	// Platform is pip's platform tag, empty for a package that has none.
	Platform string `yaml:"platform"`
	// File is the name that the client gives the download; its ending says
	// whether it is a zip or a gzipped tar.
	File string `yaml:"file"`
	// Size is in bytes, for the progress shown.
	Size   int64  `yaml:"size"`
	SHA256 string `yaml:"sha256"`
}

// Recipe names a script of ours that makes an asset out of others. It is run as
//
//	python SCRIPT ARGS... --out DIR INPUT_DIR...
//
// with only the packages of the requirements file installed.
type Recipe struct {
	Script       string   `yaml:"script"`
	Requirements string   `yaml:"requirements"`
	Args         []string `yaml:"args"`
	Inputs       []string `yaml:"inputs"`
}

// File is one file of an asset.
type File struct {
	// Path is where the file stands in the asset: slashes, relative.
	Path string `yaml:"path"`
	// From is its name in the package; a made file has none.
	From   string `yaml:"from"`
	Kind   Kind   `yaml:"kind"`
	SHA256 string `yaml:"sha256"`
}

// LoadLock reads and checks a lock. Its errors name the file and the field.
func LoadLock(name string) (*Lock, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lock, err := decodeLock(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return lock, nil
}

func decodeLock(r io.Reader) (*Lock, error) {
	var lock Lock
	dec := yaml.NewDecoder(r, yaml.Strict())
	if err := dec.Decode(&lock); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, errors.New("the file is empty")
		}
		return nil, errors.New(yaml.FormatError(err, false, false))
	}
	if err := dec.Decode(new(any)); !errors.Is(err, io.EOF) {
		return nil, errors.New("a second document stands after the first")
	}
	if lock.Version != LockVersion {
		return nil, fmt.Errorf("version: this tool reads %d, the file says %d", LockVersion, lock.Version)
	}
	seen := map[string]bool{}
	for i := range lock.Assets {
		a := &lock.Assets[i]
		if err := a.check(seen); err != nil {
			label := a.Name
			if label == "" {
				label = fmt.Sprintf("number %d", i+1)
			}
			return nil, fmt.Errorf("asset %s: %w", label, err)
		}
		seen[a.Name] = true
	}
	return &lock, nil
}

var (
	// An asset's name is a directory of the store; those that begin with a dot
	// are the store's own.
	namePattern     = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]*$`)
	platformPattern = regexp.MustCompile(`^[a-z0-9]+/[a-z0-9]+$`)
	digestPattern   = regexp.MustCompile(`^[0-9a-f]{64}$`)
	// What is handed to a client as an argument must not read as an option.
	argumentPattern = regexp.MustCompile(`^[A-Za-z0-9@][A-Za-z0-9@._/:+-]*$`)
)

// check holds one entry to the format. Inputs must be in earlier, which also
// rules out a circle.
func (a *Asset) check(earlier map[string]bool) error {
	switch {
	case !namePattern.MatchString(a.Name):
		return fmt.Errorf("name: %q does not match %s", a.Name, namePattern)
	case earlier[a.Name]:
		return errors.New("name: stands twice in the file")
	case a.Version == "":
		return errors.New("version: missing")
	case a.Licence == "":
		return errors.New("licence: missing")
	case a.Platform != "" && !platformPattern.MatchString(a.Platform):
		return fmt.Errorf("platform: %q is not GOOS/GOARCH", a.Platform)
	case (a.Package == nil) == (a.Made == nil):
		return errors.New("package, made: one of the two must stand, and only one")
	case len(a.Files) == 0:
		return errors.New("files: missing")
	}
	if a.Package != nil {
		if err := a.Package.check(); err != nil {
			return fmt.Errorf("package.%w", err)
		}
	}
	if a.Made != nil {
		if err := a.Made.check(earlier); err != nil {
			return fmt.Errorf("made.%w", err)
		}
	}
	if err := a.checkFiles(); err != nil {
		return err
	}
	kind, ok := a.kind()
	switch {
	case !ok:
		return fmt.Errorf("main: %q is none of the files, nor a directory of one", a.Main)
	case kind == Library && a.Platform == "":
		return errors.New("platform: missing, a library is of one platform")
	case kind == Library && (a.Fits == nil || a.Fits.Module == "" || a.Fits.Version == ""):
		return errors.New("fits: missing, a library must name the module and version of its binding")
	}
	return nil
}

func (a *Asset) checkFiles() error {
	paths, sources := map[string]bool{}, map[string]bool{}
	for i, f := range a.Files {
		field := fmt.Sprintf("files[%d]", i)
		switch {
		case !local(f.Path):
			return fmt.Errorf("%s.path: %q does not stay inside the asset", field, f.Path)
		case paths[f.Path]:
			return fmt.Errorf("%s.path: %q stands twice", field, f.Path)
		case f.Kind != Library && f.Kind != Model && f.Kind != Licence && f.Kind != Data:
			return fmt.Errorf("%s.kind: %q is not library, model, data or licence", field, f.Kind)
		case !digestPattern.MatchString(f.SHA256):
			return fmt.Errorf("%s.sha256: %q is not 64 lower-case hex digits", field, f.SHA256)
		case a.Made != nil && f.From != "":
			return fmt.Errorf("%s.from: a made file comes out of no package", field)
		case a.Package != nil && !local(f.From):
			return fmt.Errorf("%s.from: %q is not a plain name inside a package", field, f.From)
		case a.Package != nil && sources[f.From]:
			return fmt.Errorf("%s.from: %q stands twice", field, f.From)
		}
		paths[f.Path], sources[f.From] = true, true
	}
	return nil
}

func (p *Package) check() error {
	if _, ok := clients[p.Client]; !ok {
		return fmt.Errorf("client: %q is not pip, npm or maven", p.Client)
	}
	for _, f := range []struct{ field, value string }{{"name", p.Name}, {"version", string(p.Version)}, {"file", p.File}} {
		if !argumentPattern.MatchString(f.value) {
			return fmt.Errorf("%s: %q does not match %s", f.field, f.value, argumentPattern)
		}
	}
	switch {
	case p.Platform != "" && (p.Client != "pip" || !argumentPattern.MatchString(p.Platform)):
		return fmt.Errorf("platform: %q is not a platform tag of pip", p.Platform)
	case !local(p.File) || path.Base(p.File) != p.File:
		return fmt.Errorf("file: %q is not a bare file name", p.File)
	case archiveFormat(p.File) == "":
		return fmt.Errorf("file: %q ends in none of .whl, .jar, .zip, .tgz, .tar.gz", p.File)
	case p.Size <= 0:
		return errors.New("size: missing")
	case !digestPattern.MatchString(p.SHA256):
		return fmt.Errorf("sha256: %q is not 64 lower-case hex digits", p.SHA256)
	}
	return nil
}

func (r *Recipe) check(earlier map[string]bool) error {
	switch {
	case !local(r.Script):
		return fmt.Errorf("script: %q does not stay inside the repository", r.Script)
	case !local(r.Requirements):
		return fmt.Errorf("requirements: %q does not stay inside the repository", r.Requirements)
	}
	for _, input := range r.Inputs {
		if !earlier[input] {
			return fmt.Errorf("inputs: %q does not stand before this asset", input)
		}
	}
	return nil
}

// kind is that of the main file, or of the first file under the main directory.
func (a *Asset) kind() (Kind, bool) {
	for _, f := range a.Files {
		if f.Path == a.Main || strings.HasPrefix(f.Path, a.Main+"/") {
			return f.Kind, true
		}
	}
	return "", false
}

// here says whether the asset is of use on this machine.
func (a *Asset) here() bool {
	return a.Platform == "" || a.Platform == runtime.GOOS+"/"+runtime.GOARCH
}

// find returns the entry of a name.
func (l *Lock) find(name string) (*Asset, error) {
	i := slices.IndexFunc(l.Assets, func(a Asset) bool { return a.Name == name })
	if i >= 0 {
		return &l.Assets[i], nil
	}
	return nil, fmt.Errorf("no asset %q in %s; `go run ./cmd/assets list` lists them", name, LockName)
}

// local says whether a slash-separated name stays under the directory that it
// is joined to, on every platform: a lock or a package is read on all of them.
func local(name string) bool {
	return filepath.IsLocal(filepath.FromSlash(name)) &&
		!strings.ContainsAny(name, `\:`) && path.Clean(name) == name && name != "."
}
