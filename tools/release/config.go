package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/synapse-module/workers/internal/assets"
)

// configName is goreleaser's file, the one list of what is built for what.
const configName = "goreleaser.yaml"

// platform is GOOS/GOARCH.
type platform string

func (p platform) os() string   { os, _, _ := strings.Cut(string(p), "/"); return os }
func (p platform) arch() string { _, arch, _ := strings.Cut(string(p), "/"); return arch }

// exe is the file name of a command on the platform.
func (p platform) exe(command string) string {
	if p.os() == "windows" {
		return command + ".exe"
	}
	return command
}

// build is one command of the release. goreleaser knows more of it.
type build struct {
	ID      string   `yaml:"id"`
	Main    string   `yaml:"main"`
	Targets []string `yaml:"targets"`
}

// release is what goreleaser.yaml, assets.lock and the digests of the libraries that
// we build ourselves say of a release.
type release struct {
	root   string // of the repository
	builds []build
	lock   *assets.Lock
	built  map[platform]*assets.Asset // llama.cpp
}

// openRelease reads the three files in root.
func openRelease(root string) (*release, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	raw, err := os.ReadFile(filepath.Join(root, configName))
	if err != nil {
		return nil, err
	}
	var config struct {
		Builds []build `yaml:"builds"`
	}
	if err := yaml.Unmarshal(raw, &config); err != nil {
		return nil, fmt.Errorf("%s: %w", configName, err)
	}
	lock, err := assets.LoadLock(filepath.Join(root, assets.LockName))
	if err != nil {
		return nil, err
	}
	built, err := builtLlama(filepath.Join(root, builtSums))
	if err != nil {
		return nil, err
	}
	return &release{root: root, builds: config.Builds, lock: lock, built: built}, nil
}

// platforms are those that anything is built for, in the order of the file.
func (r *release) platforms() []platform {
	var all []platform
	for _, b := range r.builds {
		for _, t := range b.Targets {
			if p := targetPlatform(t); !slices.Contains(all, p) {
				all = append(all, p)
			}
		}
	}
	return all
}

// commands are those built for a platform.
func (r *release) commands(p platform) []build {
	var all []build
	for _, b := range r.builds {
		if slices.ContainsFunc(b.Targets, func(t string) bool { return targetPlatform(t) == p }) {
			all = append(all, b)
		}
	}
	return all
}

// targetPlatform reads goreleaser's form, linux_arm64.
func targetPlatform(target string) platform {
	return platform(strings.ReplaceAll(target, "_", "/"))
}

// library is a native library as an archive holds it.
type library struct {
	*assets.Asset
	dir string // in the archive: lib/onnxruntime
}

// libraries are those of a platform: what the lock has, and llama.cpp as we build it
// in place of the lock's where we do.
func (r *release) libraries(p platform) []library {
	suffix := "-" + p.os() + "-" + p.arch()
	var all []library
	for i := range r.lock.Assets {
		a := &r.lock.Assets[i]
		engine, ok := strings.CutSuffix(a.Name, suffix)
		if !ok || a.Platform != string(p) {
			continue
		}
		if built := r.built[p]; built != nil && engine == builtEngine {
			a = built
		}
		all = append(all, library{a, "lib/" + engine})
	}
	return all
}

// archive is one file of a release's folder.
type archive struct {
	path     string
	platform platform
}

// archives finds the archive of each platform in goreleaser's folder. One that is
// missing is an error: a release without it is none.
func (r *release) archives(dist string) ([]archive, error) {
	var all []archive
	for _, p := range r.platforms() {
		pattern := filepath.Join(dist, "synapse-workers_*_"+p.os()+"_"+p.arch()+".*")
		found, err := filepath.Glob(pattern)
		if err != nil {
			return nil, err
		}
		found = slices.DeleteFunc(found, func(name string) bool { return strings.HasSuffix(name, ".json") })
		if len(found) != 1 {
			return nil, fmt.Errorf("%d archives are named %s, due is one: run `make release-snapshot`", len(found), pattern)
		}
		all = append(all, archive{found[0], p})
	}
	return all, nil
}
