// Package tokenizer turns a text into the token ids of a BERT model, as the
// model's own tokenizer.json says: for a person who wants to see the vector of a
// text that no suite has. A worker takes ids, and a module brings a tokenizer of
// its own.
//
// It reads WordPiece tokenizers with BERT's normalisation and pre-tokenisation and
// refuses every other kind, and every member that it does not understand: ids that
// are nearly right give vectors that look right. Tests hold it to the ids that the
// reference's tokenizer gave for all texts of the shipped suites, in 39 languages.
// The one library in pure Go that could be had (sugarme/tokenizer v0.3.0) gives
// other ids for 51 of those 339 texts.
//
// Nothing is cut or padded, whatever tokenizer.json says of that.
//
// Sources: Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers for
// Language Understanding" (2019); Wu et al., "Google's Neural Machine Translation
// System" (2016), section 4.1, for WordPiece; the documented behaviour of
// Hugging Face tokenizers' BertNormalizer, BertPreTokenizer and WordPiece.
package tokenizer
