// Package pairs lays a query and a document out as the one row of token ids that
// a cross-encoder was trained on.
package pairs

// Layout is how a model joins two texts:
//
//	First query Between... document Last
type Layout struct {
	First   int32
	Between []int32
	Last    int32
}

// BERT is [CLS] query [SEP] document [SEP]. The second segment begins with the
// document.
//
// Source: Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers
// for Language Understanding" (2019), section 3.
func BERT(cls, sep int32) Layout {
	return Layout{First: cls, Between: []int32{sep}, Last: sep}
}

// RoBERTa is <s> query </s></s> document </s>, which XLM-RoBERTa and the models
// made from it (bge-reranker-v2-m3) use as well.
//
// Source: Liu et al., "RoBERTa: A Robustly Optimized BERT Pretraining Approach"
// (2019); transformers, RobertaTokenizer.build_inputs_with_special_tokens.
func RoBERTa(bos, eos int32) Layout {
	return Layout{First: bos, Between: []int32{eos, eos}, Last: eos}
}

// Bare is a row without the special tokens that the layout puts around it, where
// the caller has put them there already: a tokenizer does so by default, and a
// pair in which they stand twice scores something else. The row is not changed.
func (l Layout) Bare(row []int32) []int32 {
	if len(row) > 0 && row[0] == l.First {
		row = row[1:]
	}
	if len(row) > 0 && row[len(row)-1] == l.Last {
		row = row[:len(row)-1]
	}
	return row
}

// Len is the length of the pair of two bare rows.
func (l Layout) Len(query, document []int32) int {
	return 2 + len(l.Between) + len(query) + len(document)
}

// Append appends the pair of two bare rows to dst and returns it with the index
// in dst at which the second segment begins.
func (l Layout) Append(dst, query, document []int32) (pair []int32, second int) {
	dst = append(dst, l.First)
	dst = append(dst, query...)
	dst = append(dst, l.Between...)
	second = len(dst)
	dst = append(dst, document...)
	return append(dst, l.Last), second
}
