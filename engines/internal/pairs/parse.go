package pairs

import (
	"fmt"
	"strconv"
	"strings"
)

// Parse reads a layout as artifacts and runtime_config write it: ids, $A for the
// query and $B for the document, each with :TYPE where its token type is not 0.
// BERT's is 101 $A 102 $B:1 102:1.
func Parse(pieces []string) (Layout, error) {
	var l Layout
	for _, s := range pieces {
		what, kind, typed := strings.Cut(s, ":")
		var piece Piece
		if typed {
			n, err := strconv.ParseInt(kind, 10, 32)
			if err != nil || n < 0 {
				return l, fmt.Errorf("%.32q has no token type after its colon", s)
			}
			piece.Type = int32(n)
		}
		switch what {
		case "$A":
			piece.Part = Query
		case "$B":
			piece.Part = Document
		default:
			id, err := strconv.ParseInt(what, 10, 32)
			if err != nil || id < 0 {
				return l, fmt.Errorf("%.32q is neither an id nor $A nor $B", s)
			}
			piece.IDs = []int32{int32(id)}
		}
		l.Pair = append(l.Pair, piece)
	}
	if !l.Valid() {
		return l, fmt.Errorf("a pair has $A and then $B once each, this one is %.128q", strings.Join(pieces, " "))
	}
	l.Prefix, l.Suffix = ends(l.Pair)
	return l, nil
}

// ends are the special tokens before the query and after the document: what a
// tokenizer puts round a single text.
func ends(pair []Piece) (prefix, suffix []int32) {
	for _, x := range pair {
		switch x.Part {
		case Special:
			suffix = append(suffix, x.IDs...)
		case Query:
			prefix, suffix = suffix, nil
		case Document:
			suffix = nil
		}
	}
	return prefix, suffix
}
