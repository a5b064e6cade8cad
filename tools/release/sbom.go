package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/package-url/packageurl-go"

	"github.com/synapse-module/workers/internal/assets"
)

// sbomCmd merges what cyclonedx-gomod says of each binary in an archive with what
// assets.lock says of the native libraries beside them. Two runs over one archive
// write the same bytes.
type sbomCmd struct {
	Archive  string `arg:"" help:"The archive."`
	Document string `arg:"" help:"The file to write."`
	Version  string `required:"" help:"The release's version."`
	Platform string `required:"" help:"The archive's GOOS/GOARCH."`
	Root     string `default:"." help:"The repository."`
}

// gomod is the tool that reads what a Go binary is made of; the Makefile pins it.
const gomod = "cyclonedx-gomod"

func (c sbomCmd) Run(ctx context.Context) error {
	r, err := openRelease(c.Root)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "sbom-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if _, err := unpack(c.Archive, dir); err != nil {
		return err
	}
	root := cdx.Component{BOMRef: "release", Type: cdx.ComponentTypeApplication, Name: "synapse-workers", Version: c.Version}
	m := merge{components: map[string]cdx.Component{}, dependencies: map[string][]string{root.BOMRef: nil}}
	p := platform(c.Platform)
	for _, b := range r.commands(p) {
		if err := m.binary(ctx, root.BOMRef, dir, p.exe(b.ID), c.Version); err != nil {
			return err
		}
	}
	for _, l := range r.libraries(p) {
		if err := m.library(root.BOMRef, l); err != nil {
			return err
		}
	}
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{Component: &root}
	bom.Components, bom.Dependencies = m.sorted()
	f, err := os.Create(c.Document)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := cdx.NewBOMEncoder(f, cdx.BOMFileFormatJSON).SetPretty(true).Encode(bom); err != nil {
		return err
	}
	return f.Close()
}

// merge is a bill in the making, by reference.
type merge struct {
	components   map[string]cdx.Component
	dependencies map[string][]string
}

// binary adds a command and the modules that it is made of.
func (m merge) binary(ctx context.Context, parent, dir, file, version string) error {
	exe := filepath.Join(dir, file)
	cmd := exec.CommandContext(ctx, gomod, "bin", "-json", "-std", "-noserial", exe)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("%s: %w", strings.Join(cmd.Args, " "), err)
	}
	var bom cdx.BOM
	if err := cdx.NewBOMDecoder(strings.NewReader(string(out)), cdx.BOMFileFormatJSON).Decode(&bom); err != nil {
		return fmt.Errorf("%s: %w", gomod, err)
	}
	raw, err := os.ReadFile(exe)
	if err != nil {
		return err
	}
	self := cdx.Component{
		BOMRef: "binary:" + file, Type: cdx.ComponentTypeApplication, Name: file, Version: version,
		Hashes: hashes(sumOf(raw)),
	}
	m.add(parent, self)
	// The module that a binary is of has no version there; its own entry is the command.
	main := bom.Metadata.Component.BOMRef
	rename := func(ref string) string {
		if ref == main {
			return self.BOMRef
		}
		return ref
	}
	for _, component := range *bom.Components {
		component.Scope = "" // of one binary, not of the release
		m.components[component.BOMRef] = component
	}
	for _, d := range *bom.Dependencies {
		if d.Dependencies == nil {
			continue
		}
		for _, ref := range *d.Dependencies {
			m.depend(rename(d.Ref), rename(ref))
		}
	}
	return nil
}

// library adds a native library's build and each of its files.
func (m merge) library(parent string, l library) error {
	url, err := packageURL(l.Package)
	if err != nil {
		return fmt.Errorf("asset %s: %w", l.Name, err)
	}
	var files []cdx.Component
	for _, f := range l.Files {
		files = append(files, cdx.Component{
			BOMRef: "file:" + path.Join(l.dir, f.Path), Type: cdx.ComponentTypeFile, Name: path.Join(l.dir, f.Path), Hashes: hashes(f.SHA256),
		})
	}
	m.add(parent, cdx.Component{
		BOMRef: "library:" + l.Name, Type: cdx.ComponentTypeLibrary, Name: strings.TrimPrefix(l.dir, "lib/"), Version: string(l.Version),
		PackageURL: url, Licenses: &cdx.Licenses{{Expression: l.Licence}}, Components: &files,
	})
	return nil
}

func (m merge) add(parent string, c cdx.Component) {
	m.components[c.BOMRef] = c
	m.depend(parent, c.BOMRef)
}

func (m merge) depend(on, ref string) {
	if !slices.Contains(m.dependencies[on], ref) {
		m.dependencies[on] = append(m.dependencies[on], ref)
	}
}

// sorted is the bill's content in one order.
func (m merge) sorted() (*[]cdx.Component, *[]cdx.Dependency) {
	var components []cdx.Component
	for _, c := range m.components {
		components = append(components, c)
	}
	slices.SortFunc(components, func(a, b cdx.Component) int { return strings.Compare(a.BOMRef, b.BOMRef) })
	var dependencies []cdx.Dependency
	for ref, on := range m.dependencies {
		slices.Sort(on)
		dependencies = append(dependencies, cdx.Dependency{Ref: ref, Dependencies: &on})
	}
	slices.SortFunc(dependencies, func(a, b cdx.Dependency) int { return strings.Compare(a.Ref, b.Ref) })
	return &components, &dependencies
}

func sumOf(raw []byte) string {
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

func hashes(sha256 string) *[]cdx.Hash {
	return &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: sha256}}
}

// packageURL names the package that a library was taken out of.
func packageURL(p *assets.Package) (string, error) {
	var kind, group, name string
	switch p.Client {
	case "pip":
		kind, name = packageurl.TypePyPi, p.Name
	case "npm":
		kind, name = packageurl.TypeNPM, p.Name
		if at := strings.LastIndex(name, "/"); at >= 0 {
			group, name = name[:at], name[at+1:]
		}
	case "maven":
		kind = packageurl.TypeMaven
		group, name, _ = strings.Cut(p.Name, ":")
	default:
		return "", fmt.Errorf("no package URL is known for the client %q", p.Client)
	}
	return packageurl.NewPackageURL(kind, group, name, string(p.Version), nil, "").ToString(), nil
}
