package capi

import (
	"fmt"
	"reflect"

	"github.com/ebitengine/purego"
)

// Functions are the C functions, each under its own name in C. The tag lib
// names the library that exports it.
type Functions struct {
	GGMLVersion    func() string                       `lib:"ggml-base" c:"ggml_version"`
	DevName        func(Device) string                 `lib:"ggml-base" c:"ggml_backend_dev_name"`
	DevDescription func(Device) string                 `lib:"ggml-base" c:"ggml_backend_dev_description"`
	DevType        func(Device) int32                  `lib:"ggml-base" c:"ggml_backend_dev_type"`
	DevMemory      func(d Device, free, total *uint64) `lib:"ggml-base" c:"ggml_backend_dev_memory"`
	RegName        func(Reg) string                    `lib:"ggml-base" c:"ggml_backend_reg_name"`
	RegDevCount    func(Reg) uint64                    `lib:"ggml-base" c:"ggml_backend_reg_dev_count"`
	RegDevGet      func(Reg, uint64) Device            `lib:"ggml-base" c:"ggml_backend_reg_dev_get"`
	RegProcAddress func(Reg, string) uintptr           `lib:"ggml-base" c:"ggml_backend_reg_get_proc_address"`

	GGMLInit    func(initParams) uintptr                          `lib:"ggml-base" c:"ggml_init"`
	GGMLFree    func(ctx uintptr)                                 `lib:"ggml-base" c:"ggml_free"`
	NewTensor1D func(ctx uintptr, typ int32, n int64) *TensorHead `lib:"ggml-base" c:"ggml_new_tensor_1d"`
	GELU        func(ctx uintptr, of *TensorHead) *TensorHead     `lib:"ggml-base" c:"ggml_gelu"`
	GELUErf     func(ctx uintptr, of *TensorHead) *TensorHead     `lib:"ggml-base" c:"ggml_gelu_erf"`
	GEGLU       func(ctx uintptr, of *TensorHead) *TensorHead     `lib:"ggml-base" c:"ggml_geglu"`
	GEGLUErf    func(ctx uintptr, of *TensorHead) *TensorHead     `lib:"ggml-base" c:"ggml_geglu_erf"`
	GetUnaryOp  func(*TensorHead) int32                           `lib:"ggml-base" c:"ggml_get_unary_op"`
	GetGLUOp    func(*TensorHead) int32                           `lib:"ggml-base" c:"ggml_get_glu_op"`

	GetTypeTraits func(typ uint32) *TypeTraits                `lib:"ggml-base" c:"ggml_get_type_traits"`
	FP32ToFP16Row func(src *float32, dst *byte, values int64) `lib:"ggml-base" c:"ggml_fp32_to_fp16_row"`

	BackendLoad func(path string) Reg `lib:"ggml" c:"ggml_backend_load"`
	RegCount    func() uint64         `lib:"ggml" c:"ggml_backend_reg_count"`
	RegGet      func(uint64) Reg      `lib:"ggml" c:"ggml_backend_reg_get"`
	DevCount    func() uint64         `lib:"ggml" c:"ggml_backend_dev_count"`
	DevGet      func(uint64) Device   `lib:"ggml" c:"ggml_backend_dev_get"`

	Version              func() string                                                                                            `lib:"llama" c:"llama_version"`
	LogSet               func(callback, data uintptr)                                                                             `lib:"llama" c:"llama_log_set"`
	BackendInit          func()                                                                                                   `lib:"llama" c:"llama_backend_init"`
	ModelDefaultParams   func() ModelParams                                                                                       `lib:"llama" c:"llama_model_default_params"`
	ContextDefaultParams func() ContextParams                                                                                     `lib:"llama" c:"llama_context_default_params"`
	ModelLoad            func(path string, p ModelParams) Model                                                                   `lib:"llama" c:"llama_model_load_from_file"`
	ModelFree            func(Model)                                                                                              `lib:"llama" c:"llama_model_free"`
	ModelVocab           func(Model) Vocab                                                                                        `lib:"llama" c:"llama_model_get_vocab"`
	ModelNCtxTrain       func(Model) int32                                                                                        `lib:"llama" c:"llama_model_n_ctx_train"`
	ModelNEmbdOut        func(Model) int32                                                                                        `lib:"llama" c:"llama_model_n_embd_out"`
	ModelNClsOut         func(Model) uint32                                                                                       `lib:"llama" c:"llama_model_n_cls_out"`
	ModelHasEncoder      func(Model) bool                                                                                         `lib:"llama" c:"llama_model_has_encoder"`
	ModelHasDecoder      func(Model) bool                                                                                         `lib:"llama" c:"llama_model_has_decoder"`
	ContextInit          func(Model, ContextParams) Context                                                                       `lib:"llama" c:"llama_init_from_model"`
	ContextFree          func(Context)                                                                                            `lib:"llama" c:"llama_free"`
	GetMemory            func(Context) Memory                                                                                     `lib:"llama" c:"llama_get_memory"`
	MemoryClear          func(m Memory, data bool)                                                                                `lib:"llama" c:"llama_memory_clear"`
	GetPoolingType       func(Context) PoolingType                                                                                `lib:"llama" c:"llama_pooling_type"`
	NUbatch              func(Context) uint32                                                                                     `lib:"llama" c:"llama_n_ubatch"`
	NCtx                 func(Context) uint32                                                                                     `lib:"llama" c:"llama_n_ctx"`
	Encode               func(Context, Batch) int32                                                                               `lib:"llama" c:"llama_encode"`
	Decode               func(Context, Batch) int32                                                                               `lib:"llama" c:"llama_decode"`
	GetEmbeddingsSeq     func(c Context, seq int32) *float32                                                                      `lib:"llama" c:"llama_get_embeddings_seq"`
	GetLogitsIth         func(c Context, i int32) *float32                                                                        `lib:"llama" c:"llama_get_logits_ith"`
	VocabNTokens         func(Vocab) int32                                                                                        `lib:"llama" c:"llama_vocab_n_tokens"`
	VocabIsEOG           func(v Vocab, token int32) bool                                                                          `lib:"llama" c:"llama_vocab_is_eog"`
	VocabIsControl       func(v Vocab, token int32) bool                                                                          `lib:"llama" c:"llama_vocab_is_control"`
	Tokenize             func(v Vocab, text string, length int32, tokens *int32, room int32, addSpecial, parseSpecial bool) int32 `lib:"llama" c:"llama_tokenize"`
	TokenToPiece         func(v Vocab, token int32, buf *byte, length, lstrip int32, special bool) int32                          `lib:"llama" c:"llama_token_to_piece"`
}

// bind fills the fields of f from the opened libraries, by their tags.
func (f *Functions) bind(handles map[string]uintptr) error {
	v := reflect.ValueOf(f).Elem()
	for i := range v.NumField() {
		tag := v.Type().Field(i).Tag
		lib, name := tag.Get("lib"), tag.Get("c")
		addr, err := symbol(handles[lib], name)
		if err != nil {
			return fmt.Errorf("the library %s has no function %s", lib, name)
		}
		purego.RegisterFunc(v.Field(i).Addr().Interface(), addr)
	}
	return nil
}
