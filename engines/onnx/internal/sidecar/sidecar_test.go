package sidecar

import (
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/synapse-module/workers/engines/internal/pairs"
	"github.com/synapse-module/workers/internal/assetstest"
	"github.com/synapse-module/workers/workerkit"
)

func folder(files map[string]string) Files {
	tree := fstest.MapFS{}
	for name, content := range files {
		tree[name] = &fstest.MapFile{Data: []byte(content)}
	}
	return Files{FS: tree, Folders: []string{".", "onnx"}}
}

func TestRead(t *testing.T) {
	for _, c := range []struct {
		name  string
		files map[string]string
		want  Metadata
	}{
		{"nothing", nil, Metadata{}},
		{
			"BERT",
			map[string]string{"config.json": `{"model_type": "bert", "vocab_size": 30522, "max_position_embeddings": 512, "pad_token_id": 0, "architectures": ["BertModel"]}`},
			Metadata{Arch: "bert", VocabSize: 30522, MaxTokens: 512},
		},
		{"beside the graph", map[string]string{"onnx/config.json": `{"model_type": "bert"}`}, Metadata{Arch: "bert"}},
		{
			"XLM-RoBERTa counts from its padding id",
			map[string]string{"config.json": `{"model_type": "xlm-roberta", "max_position_embeddings": 514, "pad_token_id": 1}`},
			Metadata{Arch: "xlm-roberta", MaxTokens: 512, FirstPosition: 2},
		},
		{"members of null", map[string]string{"config.json": `{"model_type": "bert", "vocab_size": null, "pad_token_id": null, "architectures": null, "id2label": null}`}, Metadata{Arch: "bert"}},
		{
			"a cross-encoder",
			map[string]string{"config.json": `{"architectures": ["XForSequenceClassification"], "id2label": {"0": "LABEL_0"}, "sbert_ce_default_activation_function": "torch.nn.modules.linear.Identity"}`},
			Metadata{Classifier: true, Labels: 1, Scores: Raw},
		},
		{
			"a newer cross-encoder",
			map[string]string{"config.json": `{"architectures": ["XForSequenceClassification"], "sentence_transformers": {"activation_fn": "torch.nn.modules.activation.Sigmoid", "version": "5"}}`},
			Metadata{Classifier: true, Scores: Sigmoid},
		},
		{"the length of sentence-transformers is the model's word", map[string]string{"sentence_bert_config.json": `{"max_seq_length": 384}`, "tokenizer_config.json": `{"model_max_length": 256}`}, Metadata{MaxTokens: 384}},
		{"no length", map[string]string{"sentence_bert_config.json": `{"max_seq_length": null}`, "tokenizer_config.json": `{"model_max_length": 1000000000000000019884624838656}`}, Metadata{}},
		{"last-token pooling", map[string]string{"1_Pooling/config.json": `{"pooling_mode_lasttoken": true}`}, Metadata{Pooling: workerkit.PoolingLast}},
		{"pooling at its module's path", map[string]string{"modules.json": `[{"path": "", "type": "a.b.Transformer"}, {"path": "2_P", "type": "a.b.Pooling"}]`, "2_P/config.json": `{"pooling_mode": "cls"}`}, Metadata{Pooling: workerkit.PoolingCLS}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Read(folder(c.files))
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
}

// weights is a safetensors file of a 2×3 weight and its bias.
func weights() string {
	header := `{"__metadata__": {"format": "pt"}, "linear.weight": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, "linear.bias": {"dtype": "BF16", "shape": [2], "data_offsets": [24, 28]}}`
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	b = append(b, header...)
	for i := range 6 {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(i)))
	}
	for _, v := range []float32{0.5, -2} {
		b = binary.LittleEndian.AppendUint16(b, uint16(math.Float32bits(v)>>16))
	}
	return string(b)
}

func denseModel(config, file string) Files {
	files := map[string]string{
		"modules.json": `[{"path": "", "type": "x.Transformer"}, {"path": "1_Pooling", "type": "x.Pooling"}, {"path": "2_Normalize", "type": "x.Normalize"},
			{"path": "3_Dense", "type": "x.Dense"}, {"path": "4_Normalize", "type": "x.Normalize"}]`,
		"1_Pooling/config.json": `{"pooling_mode_mean_tokens": true}`,
		"3_Dense/config.json":   config,
	}
	if file != "" {
		files["3_Dense/model.safetensors"] = file
	}
	return folder(files)
}

func TestLayersAfterPooling(t *testing.T) {
	got, err := Read(denseModel(`{"in_features": 3, "out_features": 2, "bias": true, "activation_function": "torch.nn.modules.activation.Tanh"}`, weights()))
	if err != nil {
		t.Fatal(err)
	}
	want := []Layer{{Normalize: true}, {In: 3, Out: 2, Weight: []float32{0, 1, 2, 3, 4, 5}, Bias: []float32{0.5, -2}, Tanh: true}}
	if !reflect.DeepEqual(got.After, want) {
		t.Errorf("%+v, want %+v", got.After, want)
	}
}

func TestReport14_LayersThatCannotBeRunRefuseTheModel(t *testing.T) {
	for _, c := range []struct{ name, config, file, says string }{
		{"no weights", `{"in_features": 3, "out_features": 2, "activation_function": "x.Identity"}`, "", "safetensors"},
		{"another shape", `{"in_features": 4, "out_features": 2, "activation_function": "x.Identity"}`, weights(), "[2 3]"},
		{"an unknown activation", `{"in_features": 3, "out_features": 2, "activation_function": "x.GELU"}`, weights(), "GELU"},
		{"cut weights", `{"in_features": 3, "out_features": 2, "activation_function": "x.Identity"}`, weights()[:len(weights())-10], "outside"},
		{"no safetensors", `{"in_features": 3, "out_features": 2, "activation_function": "x.Identity"}`, "PK", "safetensors"},
		{"a header that is too long", `{"in_features": 3, "out_features": 2, "activation_function": "x.Identity"}`, "\xff\xff\xff\xff\xff\xff\xff\xff{}", "header"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Read(denseModel(c.config, c.file))
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %q", err, c.says)
			}
		})
	}
}

func TestPairLayout(t *testing.T) {
	for _, c := range []struct {
		name, processor string
		want            pairs.Layout
		ok              bool
	}{
		{"none", `null`, pairs.Layout{}, false},
		{"BertProcessing", `{"type": "BertProcessing", "sep": ["[SEP]", 102], "cls": ["[CLS]", 101]}`, pairs.BERT(101, 102), true},
		{"RobertaProcessing", `{"type": "RobertaProcessing", "sep": ["</s>", 2], "cls": ["<s>", 0], "trim_offsets": true}`, pairs.RoBERTa(0, 2), true},
		{"ByteLevel says nothing of pairs", `{"type": "ByteLevel", "add_prefix_space": true}`, pairs.Layout{}, false},
		{
			"a template in a sequence", `{"type": "Sequence", "processors": [{"type": "ByteLevel"}, {"type": "TemplateProcessing",
			"single": [{"SpecialToken": {"id": "B", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
			"pair": [{"SpecialToken": {"id": "B", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
			"special_tokens": {"B": {"id": "B", "ids": [5, 6], "tokens": ["x", "y"]}}}]}`,
			pairs.Layout{Prefix: []int32{5, 6}, Pair: []pairs.Piece{{IDs: []int32{5, 6}}, {Part: pairs.Query}, {Part: pairs.Document, Type: 1}}},
			true,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, ok, err := PairLayout(folder(map[string]string{"tokenizer.json": `{"post_processor": ` + c.processor + `}`}))
			if err != nil || ok != c.ok {
				t.Fatalf("found %v, error %v", ok, err)
			}
			if ok && !reflect.DeepEqual(got, c.want) {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
	_, _, err := PairLayout(folder(map[string]string{"tokenizer.json": `{"post_processor": {"type": "TemplateProcessing", "pair": [{"SpecialToken": {"id": "X", "type_id": 0}}]}}`}))
	if err == nil {
		t.Error("a template with an unknown special token is taken")
	}
}

// The layout that MiniLM's own tokenizer.json gives, and what the sidecars of the
// published model say.
func TestPublishedModel(t *testing.T) {
	dir := filepath.Dir(assetstest.Path(t, "minilm-safetensors"))
	f := Files{FS: os.DirFS(dir), Folders: []string{"."}}
	got, err := Read(f)
	if err != nil {
		t.Fatal(err)
	}
	want := Metadata{Arch: "bert", VocabSize: 30522, MaxTokens: 256, Pooling: workerkit.PoolingMean}
	if len(got.After) == 0 {
		got.After = nil // the last normalisation was taken off
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	layout, ok, err := PairLayout(f)
	if err != nil || !ok || !reflect.DeepEqual(layout, pairs.BERT(101, 102)) {
		t.Errorf("layout %+v, %v, %v", layout, ok, err)
	}
}
