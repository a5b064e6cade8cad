package coreml

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"

	"github.com/synapse-module/workers/engines/coreml/internal/bridge"
	"github.com/synapse-module/workers/engines/coreml/internal/objc"
	"github.com/synapse-module/workers/internal/diskcache"
	"github.com/synapse-module/workers/workerkit"
)

// The artifact formats.
const (
	formatPackage  = "mlpackage"
	formatCompiled = "mlmodelc"
)

// loadFactor is the memory that a load takes at its peak, in sizes of the
// artifact: the weights as read, and as they are laid out for the device.
const loadFactor = 2

type engine struct {
	bridge *bridge.Bridge
	cache  *cache
	info   workerkit.Info
	log    *slog.Logger
}

// Open loads Core ML and holds it to the messages that the bridge sends. It
// implements [workerkit.Open].
func Open(s workerkit.Setup) (workerkit.Engine, error) {
	rt, err := objc.Open(s.LibDir)
	if err != nil {
		return nil, err
	}
	return over(rt, s)
}

// over is the engine over a runtime.
func over(rt objc.Runtime, s workerkit.Setup) (workerkit.Engine, error) {
	b, err := bridge.Open(rt)
	if err != nil {
		return nil, err
	}
	for _, d := range b.Differences() {
		s.Log.Info("Core ML differs from what this worker was written for", "difference", d.String())
	}
	system := b.System()
	return &engine{
		bridge: b,
		cache:  &cache{entries: diskcache.New(filepath.Join(s.CacheDir, cacheDir), s.CacheLimit, s.Log), bridge: b, log: s.Log},
		info: workerkit.Info{
			Name:       "coreml",
			Version:    fmt.Sprintf("macOS %s (%s)", system.Version, system.Build),
			BuildFlags: []string{"chip=" + system.Chip},
			Formats:    []string{formatPackage, formatPackage + "+tar.zst", formatCompiled, formatCompiled + "+tar.zst"},
			Options:    options(),
		},
		log: s.Log,
	}, nil
}

func (e *engine) Info() workerkit.Info { return e.info }

// Load implements [workerkit.Engine].
func (e *engine) Load(ctx context.Context, a workerkit.Artifact, c workerkit.Config) (workerkit.Model, error) {
	if a.File != nil {
		return nil, workerkit.ArtifactInvalid("%s is a file, a %s is a directory: give its tree digest (sha256-tree:)", a.Name, a.Format)
	}
	switch {
	case !c.Has(optFunctions):
	case len(c.Strings(optFunctions)) == 0:
		return nil, workerkit.ConfigInvalid("runtime_config.%s is an empty list: name a function, or leave it out", optFunctions)
	case !e.bridge.CanSelect():
		return nil, workerkit.ConfigInvalid("runtime_config.%s needs macOS 15, this is macOS %s: load a package of one function a bucket", optFunctions, e.bridge.System().Version)
	}
	if err := workerkit.CheckMemory(loadFactor*uint64(a.Size), "loading "+a.Name); err != nil {
		return nil, err
	}
	units := computeUnits[c.String(optComputeUnits)]
	compiled, release, err := e.cache.open(ctx, a, units)
	if err != nil {
		return nil, err
	}
	s := &session{name: a.Name, release: release, config: bridge.Configuration{Units: units}, log: e.log}
	if err := e.start(ctx, s, compiled, c); err != nil {
		s.close()
		return nil, err
	}
	m, err := e.finish(ctx, s, c)
	if err != nil {
		s.close()
		return nil, err
	}
	return m, nil
}

// finish runs every bucket once, checks golden rows, reads the compute plans and
// makes the model of a session's kind.
func (e *engine) finish(ctx context.Context, s *session, c workerkit.Config) (workerkit.Model, error) {
	if err := s.probe(ctx); err != nil {
		return nil, err
	}
	desc, err := s.describe(c)
	if err != nil {
		return nil, err
	}
	var m model
	if s.meta.pair != nil {
		m = &reranker{session: s, desc: desc}
	} else {
		m = &encoder{session: s, desc: desc}
	}
	if s.goldens, err = s.checkGolden(ctx, m); err != nil {
		return nil, err
	}
	placement, err := e.placement(ctx, s, c)
	if err != nil {
		return nil, err
	}
	s.described = m.description()
	s.described.Placement = placement
	return m, nil
}

// model is what the engine's two kinds of model have in common.
type model interface {
	workerkit.Model
	description() *workerkit.Description
	state() *session
	golden(ctx context.Context, g golden) (float64, error)
	better(a, b float64) bool
}
