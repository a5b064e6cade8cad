//go:build cgo

package onnx

import (
	"github.com/synapse-module/workers/workerkit"
)

// limits are what rows must keep to: a vocabulary and a length. What neither the
// graph nor a sidecar says must be told; what is told must not exceed the graph.
func limits(s source, inputs []input, c workerkit.Config) (vocab, maxTokens int, err error) {
	ids := nameOf(inputs, roleIDs)
	vocab, err = limit(s.graph.Rows(ids), s.meta.VocabSize, c, optVocabSize, "embedding table")
	if err != nil {
		return 0, 0, err
	}
	table := s.graph.MaxPositions(ids, nameOf(inputs, rolePositions))
	if nameOf(inputs, rolePositions) != "" {
		table = max(0, table-s.meta.FirstPosition)
	}
	maxTokens, err = limit(table, s.meta.MaxTokens, c, optMaxTokens, "table of positions")
	return vocab, maxTokens, err
}

// limit is the one told, or the smaller of the graph's and the sidecars'. The
// graph's cannot be exceeded, the sidecars' can.
func limit(graph, sidecar int, c workerkit.Config, option, source string) (int, error) {
	told := c.Int(option)
	switch {
	case graph != 0 && told > graph:
		return 0, workerkit.ConfigInvalid("runtime_config.%s is %d; the graph's %s allows at most %d", option, told, source, graph)
	case told != 0:
		return told, nil
	case graph == 0 && sidecar == 0:
		return 0, workerkit.ConfigInvalid("the graph has no %s that could be found, and no sidecar tells: set runtime_config.%s", source, option)
	case graph == 0:
		return sidecar, nil
	case sidecar == 0:
		return graph, nil
	}
	return min(graph, sidecar), nil
}
