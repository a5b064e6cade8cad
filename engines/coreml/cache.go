package coreml

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/synapse-module/workers/engines/coreml/internal/bridge"
	"github.com/synapse-module/workers/internal/diskcache"
	"github.com/synapse-module/workers/protocol"
	"github.com/synapse-module/workers/workerkit"
)

// cache keeps compiled models by what they were made from. A model is loaded
// from where it was first put, each time: the system caches what it compiles for
// the Neural Engine by the compiled model, and that takes minutes to make.
type cache struct {
	entries *diskcache.Cache
	bridge  *bridge.Bridge
	log     *slog.Logger
}

// cacheDir is where it lies in the worker's cache directory.
const cacheDir = "coreml"

// privateDir is the mode of what lies in the cache: nobody else may read weights or
// swap them.
const privateDir fs.FileMode = 0o700

// Over this size Core ML was reported to run the whole compiled model on the CPU
// without a word, and some of them to NaN. From macOS 27 on the size is halved.
const (
	engineLimit      = 2 << 30
	engineLimitSince = "27"
	laterEngineLimit = 1 << 30
)

// open returns the artifact's compiled models, in the order of their names. They
// stay until release is called.
func (c *cache) open(ctx context.Context, a workerkit.Artifact, units bridge.Units) (models []part, release func(), err error) {
	// Compiled models depend on the compiler, which is the system's.
	artifact := protocol.Digest(a.Digest).Hex() + "-" + a.Format + "-"
	key := artifact + c.bridge.System().Build
	made := false
	e, err := c.entries.Open(key, func(content string) (diskcache.Content, error) {
		made = true
		return c.make(ctx, a, content)
	})
	if err != nil {
		return nil, nil, err
	}
	if made { // what an older macOS compiled of it, nobody will load again
		c.entries.Drop(func(k string) bool { return k != key && strings.HasPrefix(k, artifact) })
	} else {
		c.log.Info("compiled model found in the cache", "artifact", a.Name, "entry", e.Path)
	}
	models, err = findParts(e.Path, formatCompiled, a.Name)
	if err == nil {
		err = c.checkSizes(models, a.Name, units)
	}
	if err != nil {
		e.Release()
		return nil, nil, err
	}
	return models, e.Release, nil
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
			return c.entries.Failed(err)
		}
		if size > limit {
			return workerkit.ArtifactInvalid("%s: the compiled model %s has %d MiB; over %d MiB macOS %s runs all of it on the CPU without saying so: split or quantise the model, or set runtime_config.%s to cpu_only or cpu_and_gpu",
				name, m.name, size>>20, limit>>20, c.bridge.System().Version, optComputeUnits)
		}
	}
	return nil
}

// make compiles an artifact into a directory.
func (c *cache) make(ctx context.Context, a workerkit.Artifact, dir string) (diskcache.Content, error) {
	parts, err := findParts(a.Path, a.Format, a.Name)
	if err != nil {
		return diskcache.Content{}, err
	}
	sources, err := c.entries.Private()
	if err != nil {
		return diskcache.Content{}, err
	}
	defer sources.Release()
	if err := os.Mkdir(dir, privateDir); err != nil {
		return diskcache.Content{}, c.entries.Failed(err)
	}
	for _, p := range parts {
		// Core ML knows both by their endings, which a private copy has lost.
		compiled := filepath.Join(dir, p.name+"."+formatCompiled)
		source := compiled
		if a.Format == formatPackage {
			source = filepath.Join(sources.Dir, p.name+"."+formatPackage)
		}
		if err := os.CopyFS(source, os.DirFS(p.path)); err != nil {
			return diskcache.Content{}, c.entries.Failed(err)
		}
		if a.Format == formatPackage {
			if err := c.compile(ctx, a.Name, source, compiled); err != nil {
				return diskcache.Content{}, err
			}
		}
	}
	content, err := diskcache.TreeContent(dir)
	if err != nil {
		return content, c.entries.Failed(err)
	}
	return content, nil
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
		return c.entries.Failed(err)
	}
	c.log.Info("package compiled", "artifact", name, "specification", version)
	return nil
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
