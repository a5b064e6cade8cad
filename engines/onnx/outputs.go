//go:build cgo

package onnx

import (
	"slices"
	"strings"

	"github.com/synapse-module/workers/engines/onnx/internal/onnxfile"
	"github.com/synapse-module/workers/engines/onnx/internal/sidecar"
	"github.com/synapse-module/workers/workerkit"
)

// outputKind is what an output of the graph is.
type outputKind int

// The kinds of output that are used.
const (
	hiddenStates outputKind = iota // [batch, sequence, dims]
	pooledRows                     // [batch, dims], one embedding a row
	logits                         // [batch, labels], a ranking or classifying head
)

// rank is how many dimensions the kind has.
func (k outputKind) rank() int {
	if k == hiddenStates {
		return 3
	}
	return 2
}

func (k outputKind) String() string {
	return [...]string{"hidden states [batch, sequence, dims]", "embeddings [batch, dims]", "logits [batch, labels]"}[k]
}

// outputNames are the names under which exporters write the kinds, the most
// telling first. BERT's pooler_output is none of them: it was trained for another
// task, and no encoder's embedding.
var outputNames = map[outputKind][]string{
	hiddenStates: {"last_hidden_state", "token_embeddings", "hidden_states"},
	pooledRows:   {"sentence_embedding", "sentence_embeddings", "text_embeds", "embeddings"},
	logits:       {"logits"},
}

// output is the output of the graph that is used.
type output struct {
	onnxfile.Value
	kind outputKind
}

// chooseOutput finds it: the one told, a head that the sidecars speak of, hidden
// states, or embeddings, by name or by being the only one of its rank.
func chooseOutput(m *onnxfile.Model, meta sidecar.Metadata, told string) (output, error) {
	if told != "" {
		i := slices.IndexFunc(m.Outputs, func(v onnxfile.Value) bool { return v.Name == told })
		if i < 0 {
			return output{}, workerkit.ConfigInvalid("runtime_config.%s is %.64q; the graph's outputs are %s", optOutput, told, list(m.Outputs))
		}
		return classify(m.Outputs[i], meta)
	}
	order := []outputKind{hiddenStates, pooledRows, logits}
	if meta.Classifier {
		order = []outputKind{logits}
	}
	for _, kind := range order {
		for _, name := range outputNames[kind] {
			for _, v := range m.Outputs {
				if strings.EqualFold(v.Name, name) && fits(v, kind) {
					return output{v, kind}, nil
				}
			}
		}
	}
	only := slices.DeleteFunc(slices.Clone(m.Outputs), func(v onnxfile.Value) bool { return !fits(v, hiddenStates) })
	if len(only) == 1 && !meta.Classifier {
		return output{only[0], hiddenStates}, nil
	}
	return output{}, workerkit.ArtifactInvalid("none of the graph's outputs is one of hidden states, embeddings or logits by its name and rank; it has %s; name one with runtime_config.%s", list(m.Outputs), optOutput)
}

// classify says what an output is that was named by hand.
func classify(v onnxfile.Value, meta sidecar.Metadata) (output, error) {
	head := meta.Classifier || slices.Contains(outputNames[logits], strings.ToLower(v.Name))
	switch {
	case fits(v, logits) && len(v.Dims) == 2 && head:
		return output{v, logits}, nil
	case fits(v, pooledRows) && len(v.Dims) == 2:
		return output{v, pooledRows}, nil
	case fits(v, hiddenStates):
		return output{v, hiddenStates}, nil
	}
	return output{}, workerkit.ConfigInvalid("runtime_config.%s names %v, which is none of %v, %v, %v", optOutput, v, hiddenStates, pooledRows, logits)
}

// fits says that the output can be of the kind, as far as the file tells.
func fits(v onnxfile.Value, kind outputKind) bool {
	float := v.Type == onnxfile.Float || v.Type == onnxfile.Float16 || v.Type == onnxfile.BFloat16
	return v.Tensor && float && (v.Dims == nil || len(v.Dims) == kind.rank())
}
