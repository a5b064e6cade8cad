package workerkit

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/synapse-module/workers/protocol"
)

func (s *server) load(ctx context.Context, r *request) (answer, error) {
	start := time.Now()
	var q protocol.Load
	if err := r.header.Decode(&q); err != nil {
		return answer{}, err
	}
	digest, err := protocol.ParseDigest(string(q.ArtifactDigest))
	if err != nil {
		return answer{}, err
	}
	if !slices.Contains(s.info.Formats, q.Format) {
		return answer{}, ArtifactInvalid("format %.64q is none that this engine loads (%s)", q.Format, strings.Join(s.info.Formats, ", "))
	}
	config, err := DecodeConfig(s.info.Options, q.RuntimeConfig)
	if err != nil {
		return answer{}, err
	}
	artifact, release, err := s.store.open(q.ArtifactPath, digest, q.Format)
	if err != nil {
		return answer{}, err
	}
	m, err := s.make(ctx, artifact, config, release)
	if err != nil {
		release()
		return answer{}, err
	}
	ref := s.models.add(m)
	took := time.Since(start)
	s.log.Info("model loaded", "model_ref", ref, "artifact", artifact.Name, "digest", artifact.Digest, "arch", m.desc.Arch, "ms", took.Milliseconds())
	return answer{message: protocol.Loaded{ReqID: q.ReqID, ModelRef: ref, Dims: m.desc.Dims, ColdLoadMS: took.Milliseconds()}}, nil
}

// make has the engine load a verified artifact, and holds the engine to its
// interface before anybody relies on it.
func (s *server) make(ctx context.Context, a Artifact, c Config, release func()) (*loaded, error) {
	model, err := s.engine.Load(ctx, a, c)
	if err != nil {
		var refusal *protocol.Error
		if errors.As(err, &refusal) {
			return nil, refusal
		}
		return nil, ArtifactInvalid("%s: the engine refused it: %v", a.Name, err)
	}
	if a.unchanged != nil {
		if err := a.unchanged(); err != nil {
			_ = model.Close() // the error says more
			return nil, err
		}
	}
	m := &loaded{model: model, desc: model.Describe(), config: c, release: release}
	m.embedder, _ = model.(Embedder)
	m.reranker, _ = model.(Reranker)
	m.generator, _ = model.(Generator)
	if len(m.desc.Poolings) == 0 {
		m.embedder = nil // the type embeds, this model does not
	}
	d := m.desc
	if d.MaxTokens <= 0 || d.VocabSize <= 0 || (m.embedder != nil && d.Dims <= 0) ||
		(d.DefaultPooling != "" && !slices.Contains(d.Poolings, d.DefaultPooling)) {
		_ = model.Close() // the error below says more
		return nil, EngineFailed("the engine describes %s as %+v, which cannot be: a fault of this worker", a.Name, d)
	}
	return m, nil
}
