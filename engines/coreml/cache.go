package coreml

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/synapse-module/workers/engines/coreml/internal/bridge"
	"github.com/synapse-module/workers/protocol"
	"github.com/synapse-module/workers/workerkit"
)

// cache keeps compiled models by the digest of what they were made from:
//
//	DIGEST-BUILD/models/NAME.mlmodelc  what Core ML loads
//	DIGEST-BUILD/digest                the tree digest of models
//
// A model is loaded from where it was first put, each time: the system caches
// what it compiles for the Neural Engine by the compiled model, and that takes
// minutes to make. The directory is the user's alone. Whatever lies in it is
// hashed before every load, and compiled anew where it is not what was put there.
type cache struct {
	dir    string
	bridge *bridge.Bridge
	log    *slog.Logger
}

const (
	modelsDir  = "models"
	digestFile = "digest"
)

// making is how the names of entries begin that are not whole yet.
const making = "making-"

// staleAfter is the age at which a half-made entry is taken for a killed worker's:
// compiles were reported to take hours, none a day.
const staleAfter = 48 * time.Hour

// Modes of the cache: nobody else may read weights or swap them.
const (
	privateDir  fs.FileMode = 0o700
	privateFile fs.FileMode = 0o600
)

// Over this size Core ML was reported to run the whole compiled model on the CPU
// without a word, and some of them to NaN. From macOS 27 on the size is halved.
const (
	engineLimit      = 2 << 30
	engineLimitSince = "27"
	laterEngineLimit = 1 << 30
)

// open returns the artifact's compiled models, in the order of their names.
func (c *cache) open(ctx context.Context, a workerkit.Artifact, units bridge.Units) ([]part, error) {
	// Compiled models depend on the compiler, which is the system's.
	digest := protocol.Digest(a.Digest).Hex()
	entry := filepath.Join(c.dir, digest+"-"+c.bridge.System().Build)
	if _, err := os.Lstat(entry); err == nil {
		models, err := c.verified(entry)
		if err == nil {
			c.log.Info("compiled model found in the cache", "artifact", a.Name, "entry", entry)
			return models, c.checkSizes(models, a.Name, units)
		}
		c.log.Warn("compiled model in the cache is not what was put there; compiling anew", "entry", entry, "error", err)
		if err := os.RemoveAll(entry); err != nil {
			return nil, c.failed(err)
		}
	}
	c.sweep(digest)
	if err := c.make(ctx, a, entry, units); err != nil {
		return nil, err
	}
	models, err := c.verified(entry)
	if err != nil {
		return nil, c.failed(err)
	}
	return models, nil
}

// verified lists the models of an entry whose bytes are those that were put there.
func (c *cache) verified(entry string) ([]part, error) {
	want, err := os.ReadFile(filepath.Join(entry, digestFile))
	if err != nil {
		return nil, err
	}
	models := filepath.Join(entry, modelsDir)
	got, err := protocol.TreeDigest(os.DirFS(models), nil)
	if err != nil {
		return nil, fmt.Errorf("it cannot be hashed: %w", err)
	}
	if string(got) != string(want) {
		return nil, fmt.Errorf("its digest is %s, it was %s", got, want)
	}
	return findParts(models, formatCompiled, entry)
}

// checkSizes refuses what the Neural Engine would be left out for.
func (c *cache) checkSizes(models []part, name string, units bridge.Units) error {
	if !hasEngine(units) {
		return nil
	}
	limit := int64(engineLimit)
	if !bridge.Older(c.bridge.System().Version, engineLimitSince) {
		limit = laterEngineLimit
	}
	for _, m := range models {
		size, err := treeSize(m.path)
		if err != nil {
			return c.failed(err)
		}
		if size > limit {
			return workerkit.ArtifactInvalid("%s: the compiled model %s has %d MiB; over %d MiB macOS %s runs all of it on the CPU without saying so: split or quantise the model, or set runtime_config.%s to cpu_only or cpu_and_gpu",
				name, m.name, size>>20, limit>>20, c.bridge.System().Version, optComputeUnits)
		}
	}
	return nil
}

// make compiles an artifact into an entry, which appears whole or not at all.
func (c *cache) make(ctx context.Context, a workerkit.Artifact, entry string, units bridge.Units) error {
	format, _, _ := strings.Cut(a.Format, "+") // what it was unpacked from is of no concern here
	parts, err := findParts(a.Path, format, a.Name)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(c.dir, privateDir); err != nil {
		return c.failed(err)
	}
	tmp, err := os.MkdirTemp(c.dir, making)
	if err != nil {
		return c.failed(err)
	}
	defer os.RemoveAll(tmp)
	whole := filepath.Join(tmp, "entry")
	models := filepath.Join(whole, modelsDir)
	if err := os.MkdirAll(models, privateDir); err != nil {
		return c.failed(err)
	}
	for _, p := range parts {
		// Core ML knows both by their endings, which a private copy has lost.
		source := filepath.Join(tmp, p.name+"."+format)
		if format == formatCompiled {
			source = filepath.Join(models, p.name+"."+format)
		}
		if err := os.CopyFS(source, os.DirFS(p.path)); err != nil {
			return c.failed(err)
		}
		if format == formatPackage {
			if err := c.compile(ctx, a.Name, source, filepath.Join(models, p.name+"."+formatCompiled)); err != nil {
				return err
			}
		}
	}
	made, err := findParts(models, formatCompiled, a.Name)
	if err != nil {
		return err
	}
	if err := c.checkSizes(made, a.Name, units); err != nil {
		return err
	}
	digest, err := protocol.TreeDigest(os.DirFS(models), nil)
	if err != nil {
		return c.failed(err)
	}
	if err := os.WriteFile(filepath.Join(whole, digestFile), []byte(digest), privateFile); err != nil {
		return c.failed(err)
	}
	if err := os.Rename(whole, entry); err != nil && !errors.Is(err, fs.ErrExist) {
		return c.failed(err)
	}
	return nil // where another worker was quicker, its entry is verified like ours
}

// compile has Core ML compile one package to dst.
func (c *cache) compile(ctx context.Context, name, source, dst string) error {
	version, err := specificationVersion(source)
	if err != nil {
		return workerkit.ArtifactInvalid("%s is no package that can be read: %v", name, err)
	}
	system := c.bridge.System()
	if since := specificationSince[version]; since != "" && bridge.Older(system.Version, since) {
		return workerkit.ArtifactInvalid("%s has specification version %d, which needs macOS %s; this is macOS %s: update macOS or convert the model for an older one", name, version, since, system.Version)
	}
	compiled, err := c.bridge.Compile(ctx, source)
	if err != nil {
		return engineError(err)
	}
	if err := move(compiled, dst); err != nil {
		return c.failed(err)
	}
	c.log.Info("package compiled", "artifact", name, "specification", version)
	return nil
}

// sweep removes what an older macOS compiled of the same artifact, and what
// workers that were killed left half made.
func (c *cache) sweep(digest string) {
	old, _ := filepath.Glob(filepath.Join(c.dir, digest+"-*"))
	halves, _ := filepath.Glob(filepath.Join(c.dir, making+"*"))
	for _, dir := range halves {
		if info, err := os.Stat(dir); err == nil && time.Since(info.ModTime()) > staleAfter {
			old = append(old, dir)
		}
	}
	for _, dir := range old {
		c.log.Info("removing from the cache what nobody will load", "directory", dir)
		os.RemoveAll(dir)
	}
}

// failed is an error of the cache itself, which is no fault of the artifact.
func (c *cache) failed(err error) error {
	return workerkit.EngineFailed("the cache in %s cannot be used: %v; free some space there, or name another directory with --cache-dir", c.dir, err)
}

// move renames a directory, or copies it where the two lie on different volumes.
func move(src, dst string) error {
	if os.Rename(src, dst) == nil {
		return nil
	}
	if err := os.CopyFS(dst, os.DirFS(src)); err != nil {
		return err
	}
	return os.RemoveAll(src)
}

// engineError says of Core ML not answering that it is no fault of the artifact;
// all else that Core ML refuses is.
func engineError(err error) error {
	if errors.Is(err, bridge.ErrNoAnswer) {
		return workerkit.EngineFailed("%v", err)
	}
	return err
}
