// Package sidecar reads the files that exporters leave beside an ONNX file:
// config.json and tokenizer_config.json of transformers, modules.json and the
// folders of sentence-transformers, tokenizer.json of tokenizers. Members that
// it does not know are ignored; what it reads must be well formed.
package sidecar

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/synapse-module/workers/workerkit"
)

// Limits on what is read whole. The largest tokenizer.json known is 20 MB, the
// largest layer after pooling 10 MB.
const (
	maxJSON    = 64 << 20
	maxWeights = 256 << 20
)

// maxLength is the longest row that a sidecar is believed about. Tokenizers
// write 10³⁰ for "no limit".
const maxLength = 1 << 20

// Metadata is what the sidecars say. A zero member was not said.
type Metadata struct {
	Arch      string // the name of its architecture
	VocabSize int
	MaxTokens int // what the model was made for; the graph may allow more

	// FirstPosition is the position of a row's first token where positions are an
	// input of the graph: models of RoBERTa's kind count from the padding id.
	FirstPosition int

	Pooling workerkit.Pooling // the model's own
	After   []Layer           // what follows pooling, without a last normalisation

	Ends []int // the ids that end a generated text

	Classifier bool   // the graph's head classifies rows
	Labels     int    // its classes
	Scores     Scores // what becomes of its logits
}

// Scores is what a ranking head's logits become.
type Scores string

// The ways of sentence-transformers.
const (
	Raw     Scores = "raw"
	Sigmoid Scores = "sigmoid"
)

// Files is where the sidecars lie: a file is looked for in each folder in turn.
type Files struct {
	FS      fs.FS
	Folders []string
}

// read returns a file, or nil where no folder has it.
func (f Files) read(name string, limit int64) ([]byte, error) {
	for _, folder := range f.Folders {
		file, err := f.FS.Open(path.Join(folder, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		b, err := io.ReadAll(io.LimitReader(file, limit+1))
		if err := errors.Join(err, file.Close()); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if int64(len(b)) > limit {
			return nil, fmt.Errorf("%s has more than %d bytes", name, limit)
		}
		return b, nil
	}
	return nil, nil
}

// decode reads a JSON file into v, and says whether it is there.
func (f Files) decode(name string, v any) (bool, error) {
	b, err := f.read(name, maxJSON)
	if b == nil || err != nil {
		return false, err
	}
	if err := json.Unmarshal(b, v); err != nil {
		return false, fmt.Errorf("%s: %w", name, err)
	}
	return true, nil
}

// config is config.json.
type config struct {
	ModelType     string            `json:"model_type"`
	Architectures []string          `json:"architectures"`
	VocabSize     int               `json:"vocab_size"`
	Positions     int               `json:"max_position_embeddings"`
	PadTokenID    *int              `json:"pad_token_id"`
	Ends          idList            `json:"eos_token_id"`
	Labels        map[string]string `json:"id2label"`
	Activation    string            `json:"sbert_ce_default_activation_function"`
	CrossEncoder  struct {
		Activation string `json:"activation_fn"`
	} `json:"sentence_transformers"`
}

// idList is written as one id, a list of them, or null.
type idList []int

// UnmarshalJSON implements [json.Unmarshaler].
func (l *idList) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '[' {
		return json.Unmarshal(b, (*[]int)(l))
	}
	var one *int
	if err := json.Unmarshal(b, &one); err != nil || one == nil {
		return err
	}
	*l = idList{*one}
	return nil
}

// countedFromPadding are the architectures whose positions begin behind the
// padding id.
var countedFromPadding = []string{"camembert", "data2vec-text", "longformer", "mpnet", "roberta", "roberta-prelayernorm", "xlm-roberta", "xlm-roberta-xl"}

// Read reads the sidecars.
func Read(f Files) (m Metadata, err error) {
	var c config
	if _, err := f.decode("config.json", &c); err != nil {
		return m, err
	}
	m.Arch = c.ModelType
	m.VocabSize = max(0, c.VocabSize)
	m.Labels = len(c.Labels)
	// What transformers generates with comes before what it was trained with.
	var generation struct {
		Ends idList `json:"eos_token_id"`
	}
	if _, err := f.decode("generation_config.json", &generation); err != nil {
		return m, err
	}
	if m.Ends = generation.Ends; len(m.Ends) == 0 {
		m.Ends = c.Ends
	}
	m.Classifier = slices.ContainsFunc(c.Architectures, func(a string) bool { return strings.HasSuffix(a, "ForSequenceClassification") })
	if m.Scores, err = scores(c); err != nil {
		return m, err
	}
	if slices.Contains(countedFromPadding, c.ModelType) && c.PadTokenID != nil {
		m.FirstPosition = *c.PadTokenID + 1
	}
	if m.MaxTokens, err = length(f, c.Positions-m.FirstPosition); err != nil {
		return m, err
	}
	return m, m.readModules(f)
}

// length is the longest row that the model was made for. What
// sentence-transformers cuts at is the model's word; without it the tokenizer's
// limit and the positions count.
func length(f Files, positions int) (int, error) {
	var bert struct {
		MaxSeqLength int `json:"max_seq_length"`
	}
	if _, err := f.decode("sentence_bert_config.json", &bert); err != nil {
		return 0, err
	}
	if bert.MaxSeqLength > 0 {
		return bert.MaxSeqLength, nil
	}
	var tokenizer struct {
		MaxLength float64 `json:"model_max_length"` // 10³⁰ is written for none
	}
	if _, err := f.decode("tokenizer_config.json", &tokenizer); err != nil {
		return 0, err
	}
	least := 0
	for _, n := range []float64{tokenizer.MaxLength, float64(positions)} {
		if n >= 1 && n <= maxLength && (least == 0 || int(n) < least) {
			least = int(n)
		}
	}
	return least, nil
}

func scores(c config) (Scores, error) {
	activation := c.CrossEncoder.Activation
	if activation == "" {
		activation = c.Activation
	}
	switch activation[strings.LastIndex(activation, ".")+1:] {
	case "":
		return "", nil
	case "Identity":
		return Raw, nil
	case "Sigmoid":
		return Sigmoid, nil
	}
	return "", fmt.Errorf("config.json: scores through %.64q are not supported", activation)
}
