package coreml

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/synapse-module/workers/engines/internal/pairs"
	"github.com/synapse-module/workers/workerkit"
)

// The user-defined metadata that an artifact may carry. docs/placement.md
// documents them.
const (
	keyPrefix    = "synapse."
	keyArch      = "synapse.arch"
	keyVocabSize = "synapse.vocab_size"
	keyPooling   = "synapse.pooling"
	keyPadID     = "synapse.pad_id"
	keyOutput    = "synapse.output"
	keyFunctions = "synapse.functions"
	keyPair      = "synapse.pair"
	keyGolden    = "synapse.golden"
)

var knownKeys = []string{keyArch, keyVocabSize, keyPooling, keyPadID, keyOutput, keyFunctions, keyPair, keyGolden}

// metadata is what an artifact and runtime_config say of a model that Core ML
// does not describe.
type metadata struct {
	arch      string
	vocabSize int // 0 where nobody tells
	pooling   workerkit.Pooling
	padID     int // -1 where nobody tells
	output    string
	functions []string
	pair      *pairs.Layout // nil for a model that is no reranker
	golden    []golden
}

// golden is an input with the answer that the model was made to give: a row's
// embedding, or a pair's score.
type golden struct {
	IDs      []int32   `json:"ids,omitempty"`
	Vector   []float32 `json:"vector,omitempty"`
	Query    []int32   `json:"query,omitempty"`
	Document []int32   `json:"document,omitempty"`
	Score    float32   `json:"score,omitzero"`
}

// readMetadata reads the synapse keys of a model's metadata, strictly: a key that
// is not understood may be one that matters.
func readMetadata(all map[string]string) (metadata, error) {
	m := metadata{arch: "coreml", padID: -1}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		value := all[key]
		var err error
		switch key {
		case keyArch:
			m.arch = value
		case keyVocabSize:
			m.vocabSize, err = number(key, value, 1, maxVocabSize)
		case keyPadID:
			m.padID, err = number(key, value, 0, maxVocabSize)
		case keyPooling:
			m.pooling = workerkit.Pooling(value)
			if !slices.Contains(allPoolings, m.pooling) {
				err = workerkit.ArtifactInvalid("its metadata %s is %.64q; known are %q", key, value, allPoolings)
			}
		case keyOutput:
			m.output = value
		case keyFunctions:
			m.functions = strings.Split(value, ",")
		case keyPair:
			layout, bad := pairs.Parse(strings.Fields(value))
			if bad != nil {
				err = workerkit.ArtifactInvalid("its metadata %s: %v", key, bad)
			}
			m.pair = &layout
		case keyGolden:
			if json.Unmarshal([]byte(value), &m.golden, json.RejectUnknownMembers(true)) != nil {
				err = workerkit.ArtifactInvalid("its metadata %s is no JSON list of golden rows or pairs", key)
			}
		default:
			if strings.HasPrefix(key, keyPrefix) {
				err = workerkit.ArtifactInvalid("its metadata %.64q is unknown; this worker knows %s", key, strings.Join(knownKeys, ", "))
			}
		}
		if err != nil {
			return m, err
		}
	}
	return m, nil
}

// allPoolings are what hidden states can be pooled to.
var allPoolings = []workerkit.Pooling{workerkit.PoolingMean, workerkit.PoolingCLS, workerkit.PoolingLast}

func number(key, value string, least, most int) (int, error) {
	n, err := strconv.Atoi(value)
	if err != nil || n < least || n > most {
		return 0, workerkit.ArtifactInvalid("its metadata %s is %.64q, allowed is a number from %d to %d", key, value, least, most)
	}
	return n, nil
}

// override puts in what runtime_config says. It may tell what the artifact does
// not, and lower a limit, but not contradict.
func (m *metadata) override(c workerkit.Config) error {
	if told := c.Int(optVocabSize); told > 0 {
		if m.vocabSize > 0 && told > m.vocabSize {
			return workerkit.ConfigInvalid("runtime_config.%s is %d, the artifact says %d", optVocabSize, told, m.vocabSize)
		}
		m.vocabSize = told
	}
	if told := workerkit.Pooling(c.String(optPooling)); told != "" {
		if m.pooling != "" && told != m.pooling {
			return workerkit.ConfigInvalid("runtime_config.%s is %q, the artifact says %q; a request may name another where the model gives hidden states", optPooling, told, m.pooling)
		}
		m.pooling = told
	}
	if told := c.String(optOutput); told != "" {
		m.output = told
	}
	if c.Has(optPair) {
		pair, err := pairs.Parse(c.Strings(optPair))
		if err != nil {
			return workerkit.ConfigInvalid("runtime_config.%s: %v", optPair, err)
		}
		m.pair = &pair
	}
	return nil
}
