package onnx

import (
	"strconv"
	"strings"

	"github.com/synapse-module/workers/engines/internal/pairs"
	"github.com/synapse-module/workers/workerkit"
)

// parsePair reads the member pair of runtime_config: ids, $A and $B, each with
// :TYPE where its token type is not 0.
func parsePair(pieces []string) (pairs.Layout, error) {
	var l pairs.Layout
	for _, s := range pieces {
		what, kind, typed := strings.Cut(s, ":")
		var piece pairs.Piece
		if typed {
			n, err := strconv.ParseInt(kind, 10, 32)
			if err != nil || n < 0 {
				return l, workerkit.ConfigInvalid("runtime_config.%s: %.32q has no token type after its colon", optPair, s)
			}
			piece.Type = int32(n)
		}
		switch what {
		case "$A":
			piece.Part = pairs.Query
		case "$B":
			piece.Part = pairs.Document
		default:
			id, err := strconv.ParseInt(what, 10, 32)
			if err != nil {
				return l, workerkit.ConfigInvalid("runtime_config.%s: %.32q is neither an id nor $A nor $B", optPair, s)
			}
			piece.IDs = []int32{int32(id)}
		}
		l.Pair = append(l.Pair, piece)
	}
	if !l.Valid() {
		return l, workerkit.ConfigInvalid("runtime_config.%s must have $A and then $B once each, got %.128q", optPair, strings.Join(pieces, " "))
	}
	l.Prefix, l.Suffix = ends(l.Pair)
	return l, nil
}

// ends are the special tokens before the query and after the document: what a
// tokenizer puts round a single text.
func ends(pair []pairs.Piece) (prefix, suffix []int32) {
	for _, x := range pair {
		switch x.Part {
		case pairs.Special:
			suffix = append(suffix, x.IDs...)
		case pairs.Query:
			prefix, suffix = suffix, nil
		case pairs.Document:
			suffix = nil
		}
	}
	return prefix, suffix
}
