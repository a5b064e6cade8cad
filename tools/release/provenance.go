package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	provenance "github.com/in-toto/attestation/go/predicates/provenance/v1"
	intoto "github.com/in-toto/attestation/go/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/synapse-module/workers/internal/assets"
)

// provenanceCmd says of what a release was made and how: an in-toto statement with
// a SLSA provenance predicate. It is not signed; whoever publishes signs it.
type provenanceCmd struct {
	Checksums string   `arg:"" help:"goreleaser's checksum file."`
	Out       string   `arg:"" help:"The statement to write."`
	Commit    string   `required:"" help:"The commit that was built."`
	Time      string   `required:"" help:"When it was committed, RFC 3339: the only time in the statement, so that two builds state the same."`
	Builder   string   `default:"https://github.com/synapse-module/workers/blob/main/Makefile" help:"Who built it, as a URI."`
	Tool      []string `placeholder:"NAME@VERSION" help:"What it was built with."`
}

// The identifiers of what the statement says, in the vocabulary of SLSA.
const (
	predicateType = "https://slsa.dev/provenance/v1"
	buildType     = "https://github.com/synapse-module/workers/blob/main/goreleaser.yaml"
	repository    = "git+https://github.com/synapse-module/workers"
	// toolPins are the tools, besides zig, that the libraries of builtSums are built with.
	toolPins = "tools/llama-libs/requirements.txt"
)

func (c provenanceCmd) Run() error {
	r, err := openRelease(".")
	if err != nil {
		return err
	}
	committed, err := time.Parse(time.RFC3339, c.Time)
	if err != nil {
		return fmt.Errorf("--time: %w", err)
	}
	subjects, err := subjectsOf(c.Checksums)
	if err != nil {
		return err
	}
	materials, err := c.materials(r)
	if err != nil {
		return err
	}
	parameters, err := structpb.NewStruct(map[string]any{"target": "release-snapshot", "config": configName})
	if err != nil {
		return err
	}
	predicate := &provenance.Provenance{
		BuildDefinition: &provenance.BuildDefinition{
			BuildType: buildType, ExternalParameters: parameters, ResolvedDependencies: materials,
		},
		RunDetails: &provenance.RunDetails{
			Builder:  &provenance.Builder{Id: c.Builder, Version: c.toolVersions()},
			Metadata: &provenance.BuildMetadata{StartedOn: timestamppb.New(committed)},
		},
	}
	if err := predicate.Validate(); err != nil {
		return fmt.Errorf("the provenance is not sound: %w", err)
	}
	raw, err := protojson.Marshal(predicate)
	if err != nil {
		return err
	}
	var body structpb.Struct
	if err := protojson.Unmarshal(raw, &body); err != nil {
		return err
	}
	statement := &intoto.Statement{Type: intoto.StatementTypeUri, Subject: subjects, PredicateType: predicateType, Predicate: &body}
	if err := statement.Validate(); err != nil {
		return fmt.Errorf("the statement is not sound: %w", err)
	}
	text, err := protojson.Marshal(statement)
	if err != nil {
		return err
	}
	// protojson varies its white space from build to build, on purpose.
	var out jsontext.Value = text
	if err := out.Canonicalize(); err != nil {
		return err
	}
	if err := out.Indent(); err != nil {
		return err
	}
	return os.WriteFile(c.Out, append(out, '\n'), 0o644)
}

// subjectsOf reads lines of a SHA-256 and a name.
func subjectsOf(checksums string) ([]*intoto.ResourceDescriptor, error) {
	f, err := os.Open(checksums)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var all []*intoto.ResourceDescriptor
	for lines := bufio.NewScanner(f); lines.Scan(); {
		sum, name, ok := strings.Cut(lines.Text(), "  ")
		if !ok {
			return nil, fmt.Errorf("%s: %q is no line of a checksum file", checksums, lines.Text())
		}
		all = append(all, &intoto.ResourceDescriptor{Name: name, Digest: map[string]string{"sha256": sum}})
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s lists nothing", checksums)
	}
	return all, nil
}

// materials are the commit and each package that a native library was taken from.
func (c provenanceCmd) materials(r *release) ([]*intoto.ResourceDescriptor, error) {
	all := []*intoto.ResourceDescriptor{{Uri: repository, Digest: map[string]string{"gitCommit": c.Commit}}}
	seen := map[string]bool{} // sources are one package for several platforms
	for _, p := range r.platforms() {
		for _, l := range r.libraries(p) {
			if seen[l.Package.SHA256] {
				continue
			}
			seen[l.Package.SHA256] = true
			url, err := packageURL(l.Package)
			if err != nil {
				return nil, err
			}
			all = append(all, &intoto.ResourceDescriptor{Name: l.Package.File, Uri: url, Digest: map[string]string{"sha256": l.Package.SHA256}})
		}
	}
	for _, name := range []string{assets.LockName, builtSums, toolPins} {
		raw, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		all = append(all, &intoto.ResourceDescriptor{Name: name, Digest: map[string]string{"sha256": sumOf(raw)}})
	}
	return all, nil
}

// toolVersions are what the bytes depend on besides the materials.
func (c provenanceCmd) toolVersions() map[string]string {
	versions := map[string]string{"go": runtime.Version()}
	for _, tool := range c.Tool {
		name, version, _ := strings.Cut(tool, "@")
		versions[name] = version
	}
	return versions
}
