package llama

import (
	"fmt"
	"strings"

	"github.com/synapse-module/workers/engines/llama/internal/gguf"
)

// llama.cpp takes a tensor of any type, and finds out in the first computation, by
// an abort or a call of a function that is not there, that it cannot compute with
// that type what the tensor is for.

// integers ends the names of the tensors that hold numbers of experts, in I32. Of
// all others the library has no product.
const integers = ".ffn_gate_tid2eid.weight"

// checkTypes refuses a file with a tensor of a type in which the library does not
// compute what it is for. Converters write and quantise none.
func checkTypes(f *gguf.File) error {
	for _, t := range f.Tensors {
		switch {
		case t.Type == gguf.I32 && !strings.HasSuffix(t.Name, integers):
			return fmt.Errorf("tensor %s is of %s, in which no weights are multiplied: the file was spoilt or made by a faulty converter", t.Name, t.Type)
		case t.Type != gguf.F32 && byValue(t):
			return fmt.Errorf("tensor %s is of %s, and llama.cpp adds or multiplies it value by value in F32 alone: convert the model with a newer converter", t.Name, t.Type)
		}
	}
	return nil
}

// byValue says whether a tensor is a bias, a norm's weight or the like.
func byValue(t gguf.Tensor) bool {
	return len(t.Dims) == 1 || t.Name == "token_types.weight" ||
		strings.HasSuffix(t.Name, "norm.weight") || strings.HasSuffix(t.Name, ".bias")
}
