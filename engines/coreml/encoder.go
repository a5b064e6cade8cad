package coreml

import (
	"context"
	"slices"

	"github.com/synapse-module/workers/engines/internal/pooling"
	"github.com/synapse-module/workers/workerkit"
)

// encoder is a session whose rows become vectors.
type encoder struct {
	*session
	desc workerkit.Description

	values  []float32 // of the last request
	vectors [][]float32
}

// Describe implements [workerkit.Model].
func (m *encoder) Describe() workerkit.Description     { return m.desc }
func (m *encoder) description() *workerkit.Description { return &m.desc }

// Close implements [workerkit.Model].
func (m *encoder) Close() error {
	m.close()
	return nil
}

// Embed implements [workerkit.Embedder].
func (m *encoder) Embed(ctx context.Context, rows [][]int32, p workerkit.Pooling) ([][]float32, error) {
	if err := m.checkPadding(rows); err != nil {
		return nil, err
	}
	m.values = slices.Grow(m.values[:0], len(rows)*m.dims)[:len(rows)*m.dims]
	m.vectors = m.vectors[:0]
	for i := range rows {
		m.vectors = append(m.vectors, m.values[i*m.dims:(i+1)*m.dims:(i+1)*m.dims])
	}
	err := m.run(ctx, batch{ids: rows}, func(row int, values []float32) {
		switch dst := m.vectors[row]; {
		case m.rank == 2:
			copy(dst, values)
		case p == workerkit.PoolingMean:
			pooling.Mean(dst, values)
		case p == workerkit.PoolingCLS:
			pooling.CLS(dst, values)
		default:
			pooling.Last(dst, values)
		}
	})
	if err != nil {
		return nil, workerkit.EngineFailed("%v", err)
	}
	return m.vectors, nil
}

// checkPadding refuses a row that holds the padding's id where the model tells
// padding by it: that token would silently be left out.
func (s *session) checkPadding(rows [][]int32) error {
	if s.roles.mask != "" {
		return nil
	}
	for i, row := range rows {
		if at := slices.Index(row, int32(s.meta.padID)); at >= 0 {
			return workerkit.RequestInvalid("row %d holds the id %d as token %d; this model has no mask and takes that id for padding: convert the model with %s", i, s.meta.padID, at, inputNames.mask[0])
		}
	}
	return nil
}

// describe says what the session's model is and takes, once it was probed.
func (s *session) describe(c workerkit.Config) (workerkit.Description, error) {
	d := workerkit.Description{Arch: s.meta.arch, MaxTokens: s.longest(), VocabSize: s.meta.vocabSize}
	if told := c.Int(optMaxTokens); told > 0 {
		if told > d.MaxTokens {
			return d, workerkit.ConfigInvalid("runtime_config.%s is %d, the longest bucket has %d tokens", optMaxTokens, told, d.MaxTokens)
		}
		d.MaxTokens = told
	}
	if d.VocabSize == 0 {
		return d, workerkit.ConfigInvalid("%s does not say how large its vocabulary is, so ids cannot be checked: set runtime_config.%s, or its metadata %s", s.name, optVocabSize, keyVocabSize)
	}
	if s.roles.mask == "" && s.meta.padID < 0 {
		return d, workerkit.ArtifactInvalid("the model has no %s and its metadata does not say which id is padding (%s)", inputNames.mask[0], keyPadID)
	}
	switch {
	case s.meta.pair != nil:
		return d, s.checkRanker()
	case s.rank == 3:
		d.Dims, d.Poolings, d.DefaultPooling = s.dims, allPoolings, s.meta.pooling
	case s.dims == 1:
		return d, workerkit.ArtifactInvalid("the model gives one value a row, which is a ranking head's, and nobody says how a pair is laid out: set its metadata %s or runtime_config.%s", keyPair, optPair)
	case s.meta.pooling == "":
		return d, workerkit.ConfigInvalid("the model pools by itself and %s does not say how: set runtime_config.%s, or its metadata %s", s.name, optPooling, keyPooling)
	default:
		d.Dims, d.Poolings, d.DefaultPooling = s.dims, []workerkit.Pooling{s.meta.pooling}, s.meta.pooling
	}
	return d, nil
}
