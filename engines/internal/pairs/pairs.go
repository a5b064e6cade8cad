// Package pairs lays a query and a document out as the one row of token ids that
// a cross-encoder was trained on.
package pairs

import "slices"

// Part says what stands at a place of the row.
type Part int

// The parts of a pair.
const (
	Special  Part = iota // fixed tokens
	Query                // the first text
	Document             // the second text
)

// Piece is one place of a layout.
type Piece struct {
	Part Part
	IDs  []int32 // of a Special
	Type int32   // the token type (segment) of all tokens here
}

// Layout is how a model joins two texts.
type Layout struct {
	Prefix, Suffix []int32 // what its tokenizer puts round a single text
	Pair           []Piece
}

// BERT is [CLS] query [SEP] document [SEP]. The second segment begins with the
// document.
//
// Source: Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers
// for Language Understanding" (2019), section 3.
func BERT(cls, sep int32) Layout {
	return around([]int32{cls}, []int32{sep}, []int32{sep}, 1)
}

// RoBERTa is <s> query </s></s> document </s>, which XLM-RoBERTa and the models
// made from it (bge-reranker-v2-m3) use as well. All is one segment.
//
// Source: Liu et al., "RoBERTa: A Robustly Optimized BERT Pretraining Approach"
// (2019); transformers, RobertaTokenizer.build_inputs_with_special_tokens.
func RoBERTa(bos, eos int32) Layout {
	return around([]int32{bos}, []int32{eos, eos}, []int32{eos}, 0)
}

// around is first, query, between, document, last; segment is the document's
// side.
func around(first, between, last []int32, segment int32) Layout {
	return Layout{
		Prefix: first, Suffix: last,
		Pair: []Piece{
			{IDs: first},
			{Part: Query},
			{IDs: between},
			{Part: Document, Type: segment},
			{IDs: last, Type: segment},
		},
	}
}

// Valid says that the pair has each text once, the query first.
func (l Layout) Valid() bool {
	var texts []Part
	for _, x := range l.Pair {
		if x.Part != Special {
			texts = append(texts, x.Part)
		}
	}
	return slices.Equal(texts, []Part{Query, Document})
}

// Bare is a row without the special tokens that the layout puts around it, where
// the caller has put them there already: a tokenizer does so by default, and a
// pair in which they stand twice scores something else. The row is not changed.
func (l Layout) Bare(row []int32) []int32 {
	if n := len(l.Prefix); len(row) >= n && slices.Equal(row[:n], l.Prefix) {
		row = row[n:]
	}
	if n := len(l.Suffix); len(row) >= n && slices.Equal(row[len(row)-n:], l.Suffix) {
		row = row[:len(row)-n]
	}
	return row
}

// tokens are those at one place of the pair of two bare rows.
func (x Piece) tokens(query, document []int32) []int32 {
	switch x.Part {
	case Query:
		return query
	case Document:
		return document
	}
	return x.IDs
}

// Len is the length of the pair of two bare rows.
func (l Layout) Len(query, document []int32) (n int) {
	for _, x := range l.Pair {
		n += len(x.tokens(query, document))
	}
	return n
}

// Append appends the pair of two bare rows to dst and returns it with the index
// in dst at which the document begins.
func (l Layout) Append(dst, query, document []int32) (pair []int32, second int) {
	for _, x := range l.Pair {
		if x.Part == Document {
			second = len(dst)
		}
		dst = append(dst, x.tokens(query, document)...)
	}
	return dst, second
}

// AppendTypes appends the token types of the pair of two bare rows to dst.
func (l Layout) AppendTypes(dst, query, document []int32) []int32 {
	for _, x := range l.Pair {
		for range x.tokens(query, document) {
			dst = append(dst, x.Type)
		}
	}
	return dst
}
