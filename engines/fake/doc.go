// Package fake is a deterministic engine without a library: any module, in any
// language, can test itself against it. Its answers are simple functions of the
// token ids, so a test knows them beforehand; its faults are scripted by the
// LOAD's runtime_config.
//
// # Answers
//
// Component j of the state of token id t is mix(t<<32 | j) mapped to [-1, 1),
// where mix is the SplitMix64 finaliser ([State]). A vector is the mean over the
// row's tokens, the first or the last token's state. A rerank score is the share
// of the document's tokens that occur in the query. A generation repeats the
// prompt's ids as decimal words, and stops after the id 2.
//
// # Faults
//
// runtime_config.fault names one, fault_stage the request that meets it (load,
// embed, rerank, generate, unload) and fault_after how many such requests pass
// before. [Faults] lists them.
package fake
