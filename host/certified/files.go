package certified

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/synapse-module/workers/certify/certificate"
	"github.com/synapse-module/workers/host"
	"github.com/synapse-module/workers/internal/regular"
)

const (
	// suffix ends the name of each certificate's file.
	suffix = ".certificate.json"

	// maxFiles and maxBytes bound what a folder can make a module read: a release
	// has a few dozen certificates of some 20 KiB.
	maxFiles = 1000
	maxBytes = 4 << 20
)

// certificates lists the files of a folder, in the order of their names.
func certificates(folder string) ([]string, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("the folder of certificates cannot be read: %w", err)
	}
	var files []string
	for _, e := range entries {
		if ok, _ := filepath.Match("*"+suffix, e.Name()); ok {
			files = append(files, filepath.Join(folder, e.Name()))
		}
	}
	if len(files) > maxFiles {
		return nil, fmt.Errorf("%s holds %d certificates, at most %d are read: keep those of this release", folder, len(files), maxFiles)
	}
	return files, nil
}

// open reads a certificate that is signed by a trusted key.
func (p *Policy) open(ctx context.Context, path string) (*certificate.Certificate, error) {
	f, err := regular.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxBytes+1))
	if err != nil {
		return nil, err
	}
	if len(b) > maxBytes {
		return nil, fmt.Errorf("it is longer than %d bytes, which no certificate is", maxBytes)
	}
	return certificate.Open(ctx, b, p.Keys...)
}

// holds wants what is here, and how it is to be loaded, to be what was certified.
func (p *Policy) holds(c *certificate.Certificate, here certificate.Here, a host.Admission) error {
	errs := []error{c.Holds(here)}
	if c.Artifact.Format != a.Format {
		errs = append(errs, &certificate.MismatchError{What: "format", Certified: c.Artifact.Format, IsHere: a.Format})
	}
	certified, err := p.bound(c.Artifact.Requested)
	if err != nil {
		return fmt.Errorf("its runtime_config: %w", err)
	}
	asked, err := p.bound(a.Config)
	if err != nil {
		return fmt.Errorf("runtime_config: %w", err)
	}
	if certified != asked {
		errs = append(errs, &certificate.MismatchError{What: "runtime_config", Certified: certified, IsHere: asked})
	}
	return errors.Join(errs...)
}

// bound is a runtime_config without the members that are free, as canonical JSON.
func (p *Policy) bound(config jsontext.Value) (string, error) {
	members := map[string]jsontext.Value{}
	if len(config) > 0 {
		if err := json.Unmarshal(config, &members); err != nil {
			return "", err
		}
	}
	for name := range members {
		if slices.Contains(p.FreeConfig, name) {
			delete(members, name)
		}
	}
	b, err := json.Marshal(members)
	if err != nil {
		return "", err
	}
	out := jsontext.Value(b)
	// Numbers stay as they were written, as in package host: two that differ must not
	// become one.
	err = out.Canonicalize(jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false))
	return string(out), err
}
