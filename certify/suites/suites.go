// Package suites holds the suites that certify ships, inside the binary.
package suites

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/synapse-module/workers/certify/suite"
)

//go:embed */*
var shipped embed.FS

// Load reads a shipped suite by its name.
func Load(name string) (*suite.Suite, error) {
	for _, n := range Names() {
		if n != name {
			continue
		}
		folder, err := fs.Sub(shipped, name)
		if err != nil {
			return nil, err
		}
		return suite.Load(folder, name)
	}
	return nil, fmt.Errorf("no shipped suite is named %q, there are: %s; a folder is named with a slash, as in ./%s", name, strings.Join(Names(), ", "), name)
}

// Names lists the shipped suites.
func Names() []string {
	files, err := fs.Glob(shipped, "*/"+suite.File)
	if err != nil {
		panic(err) // the pattern is a constant
	}
	for i, f := range files {
		files[i] = path.Dir(f)
	}
	return files
}
