//go:build cgo

package onnx

import (
	"github.com/synapse-module/workers/engines/internal/pairs"
	"github.com/synapse-module/workers/workerkit"
)

// parsePair reads the member pair of runtime_config.
func parsePair(pieces []string) (pairs.Layout, error) {
	l, err := pairs.Parse(pieces)
	if err != nil {
		return l, workerkit.ConfigInvalid("runtime_config.%s: %v", optPair, err)
	}
	return l, nil
}
