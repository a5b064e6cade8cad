// Layoutcheck prints C that compiles against llama.h only if the structs there
// are laid out as the binding's are. tools/llama-libs/build.sh compiles it.
package main

import (
	"fmt"
	"reflect"
	"strings"
	"unicode"

	"github.com/synapse-module/workers/engines/llama/internal/capi"
)

func main() {
	fmt.Println("#include <stddef.h>")
	fmt.Println(`#include "llama.h"`)
	for name, s := range map[string]any{
		"struct llama_model_params":   capi.ModelParams{},
		"struct llama_context_params": capi.ContextParams{},
		"struct llama_batch":          capi.Batch{},
		"struct ggml_tensor":          capi.TensorHead{}, // its beginning
		"struct ggml_type_traits":     capi.TypeTraits{},
	} {
		t := reflect.TypeOf(s)
		equal := "=="
		if t == reflect.TypeFor[capi.TensorHead]() {
			equal = ">="
		}
		fmt.Printf("_Static_assert(sizeof(%s) %s %d, \"size of %s\");\n", name, equal, t.Size(), name)
		for i := range t.NumField() {
			f := t.Field(i)
			if f.Name == "_" {
				continue
			}
			c := snake(f.Name)
			fmt.Printf("_Static_assert(offsetof(%s, %s) == %d, \"offset of %s\");\n", name, c, f.Offset, c)
			fmt.Printf("_Static_assert(sizeof(((%s *) 0)->%s) == %d, \"size of %s\");\n", name, c, f.Type.Size(), c)
		}
	}
}

// irregular are the names that do not follow from the Go names.
var irregular = map[string]string{
	"NGPULayers": "n_gpu_layers", "MainGPU": "main_gpu", "KVOverrides": "kv_overrides", "LoadMTP": "load_mtp",
	"OffloadKQV": "offload_kqv", "KVUnified": "kv_unified", "NSeqID": "n_seq_id", "SeqID": "seq_id",
}

// snake turns NCtxMax into n_ctx_max.
func snake(name string) string {
	if c, ok := irregular[name]; ok {
		return c
	}
	var b strings.Builder
	for i, r := range name {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
