package llama

import (
	"fmt"
	"slices"

	"github.com/synapse-module/workers/engines/internal/pairs"
	"github.com/synapse-module/workers/engines/llama/internal/gguf"
)

// maxLabels bounds the list of a classifier's labels that is read; a reranker
// has one.
const maxLabels = 64

// hasHead says whether a file that declares no pooling ranks, as converters write
// rerankers: an encoder with a head of one score. One of several labels classifies.
func (p *plan) hasHead(f *gguf.File) bool {
	out, ok := f.Tensor(headOutput)
	return ok && rankers[p.arch] && scores(out) == 1
}

// scores is how many values a head gives.
func scores(out gguf.Tensor) int64 {
	if len(out.Dims) < 2 {
		return 1
	}
	return out.Dims[1]
}

// The tensors of a ranking head.
const (
	headDense  = "cls.weight"
	headNorm   = "cls.norm.weight" // ModernBERT's
	headOutput = "cls.output.weight"
)

// readRanking holds a file that calls itself a reranker to what a reranker is.
// The library itself computes a number from any file: without a head it returns
// the first value of the hidden state.
func (p *plan) readRanking(f *gguf.File) error {
	if templated[p.arch] {
		return p.readTemplate(f)
	}
	if !rankers[p.arch] {
		return fmt.Errorf("it declares to be a reranker, but how %q ranks is not computed faithfully by llama.cpp (a chat template and two tokens' logits, or a head that it does not know)", p.arch)
	}
	for _, name := range []string{headDense, headOutput} {
		if _, ok := f.Tensor(name); !ok {
			return fmt.Errorf("it is a reranker, but %s is missing: stock converters drop BERT's pooler, without which the scores mean nothing; convert the model with tools/gguf/convert.py", name)
		}
	}
	if p.arch == "modern-bert" {
		if err := p.readModernHead(f); err != nil {
			return err
		}
	}
	labels, err := f.Strings(p.arch+".classifier.output_labels", maxLabels)
	if err != nil {
		return err
	}
	if out, _ := f.Tensor(headOutput); len(labels) > 1 || scores(out) != 1 {
		return fmt.Errorf("its classifier has several labels %q, a reranker has one score", labels)
	}
	if err := p.readSegments(f); err != nil {
		return err
	}
	return p.readLayout(f)
}

// readModernHead reads which states ModernBERT's head takes. llama.cpp takes the
// mean of all where the file does not say, and versions before 0.5 always do.
func (p *plan) readModernHead(f *gguf.File) error {
	if _, ok := f.Tensor(headNorm); !ok {
		return fmt.Errorf("it is a reranker, but %s is missing", headNorm)
	}
	key := p.arch + ".classifier.pooling_type"
	pooling, err := f.Int(key, -1)
	if err != nil {
		return err
	}
	switch pooling {
	case filePoolingMean:
	case filePoolingCLS:
		p.headOfFirst = true
	default:
		return fmt.Errorf("%s is missing or neither %d (mean) nor %d (first token): without it llama.cpp takes the mean, whatever the checkpoint's classifier_pooling says: convert the model with a newer converter", key, filePoolingMean, filePoolingCLS)
	}
	return nil
}

// readLayout takes the special tokens of a pair from the tokenizer's metadata.
func (p *plan) readLayout(f *gguf.File) error {
	id := func(names ...string) (int32, error) {
		for _, name := range names {
			key := "tokenizer.ggml." + name
			n, err := f.Int(key, -1)
			if err != nil {
				return 0, err
			}
			if n >= int64(p.vocab) {
				return 0, fmt.Errorf("%s is %d, the vocabulary has %d tokens", key, n, p.vocab)
			}
			if n >= 0 {
				return int32(n), nil
			}
		}
		return 0, fmt.Errorf("none of tokenizer.ggml.%v is there, so pairs cannot be built", names)
	}
	first, err := id("cls_token_id", "bos_token_id")
	if err != nil {
		return err
	}
	// The format's own spelling of "separator", and the one that came later.
	last, err := id("seperator_token_id", "sep_token_id", "eos_token_id") //nolint:misspell // so GGUF spells it
	if err != nil {
		return err
	}
	// WordPiece is BERT's, ModernBERT pairs like it with another tokenizer, and
	// SentencePiece in a model of this kind is XLM-RoBERTa's.
	switch model := f.Text("tokenizer.ggml.model"); {
	case model == "bert" || p.arch == "modern-bert" || p.arch == "neo-bert":
		p.layout = pairs.BERT(first, last)
	case model == "t5" || model == "gpt2":
		p.layout = pairs.RoBERTa(first, last)
	default:
		return fmt.Errorf("how a model with the tokenizer %.64q joins a query and a document is not known here", model)
	}
	return nil
}

// readSegments sees to the second segment. llama.cpp adds token type 0 to every
// token; a file of our converter holds the embeddings a second time, with the
// difference of the types added. A model that was trained with two types and has
// no such table would score something else.
func (p *plan) readSegments(f *gguf.File) error {
	offset, err := f.Int(segmentKey, 0)
	if err != nil {
		return err
	}
	if offset != 0 {
		if 2*offset != p.shape.table {
			return fmt.Errorf("%s is %d, the embedding table has %d rows, not twice as many", segmentKey, offset, p.shape.table)
		}
		p.segmentOffset, p.vocab = int32(offset), int(offset) // the second half is not the module's
		return nil
	}
	types, ok := f.Tensor("token_types.weight")
	if !ok || len(types.Dims) < 2 || types.Dims[1] < 2 {
		return nil // one segment is all that it knows
	}
	first, err := f.Float32s(types, 0, types.Dims[0])
	if err != nil {
		return err
	}
	second, err := f.Float32s(types, types.Dims[0], types.Dims[0])
	if err != nil {
		return err
	}
	if !slices.Equal(first, second) {
		return fmt.Errorf("it was trained with two segments, and llama.cpp gives every token the first: convert it with tools/gguf/convert.py --segments")
	}
	return nil
}
