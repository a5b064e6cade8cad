package onnx

import (
	"fmt"
	"slices"
	"strings"

	"github.com/synapse-module/workers/engines/onnx/internal/onnxfile"
	"github.com/synapse-module/workers/workerkit"
)

// role is what an input of the graph is for.
type role int

// The roles of an encoder's inputs, each a number per token.
const (
	roleIDs       role = iota // token ids
	roleMask                  // 1 for a token, 0 for padding
	roleTypes                 // token types (segments): 0 for single rows
	rolePositions             // 0, 1, 2, …
)

func (r role) String() string {
	return [...]string{"token ids", "attention mask", "token types", "positions"}[r]
}

// inputNames are the names under which exporters write the roles.
var inputNames = map[role][]string{
	roleIDs:       {"input_ids", "token_ids", "ids", "tokens"},
	roleMask:      {"attention_mask", "input_mask", "mask"},
	roleTypes:     {"token_type_ids", "segment_ids", "type_ids"},
	rolePositions: {"position_ids", "positions"},
}

// hiddenNames are the names under which exporters write the hidden states.
var hiddenNames = []string{"last_hidden_state", "token_embeddings", "hidden_states"}

// maxTypeRows is the largest table that is taken for one of token types. BERT
// has 2, others up to 4; no vocabulary is that small.
const maxTypeRows = 16

// input is an input of the graph with its role.
type input struct {
	onnxfile.Value
	role role
}

// assignInputs finds the role of each of the graph's inputs: by its name, else
// by the table that it is looked up in, else by being the only one left.
func assignInputs(m *onnxfile.Model) ([]input, error) {
	if len(m.Inputs) > len(inputNames) {
		return nil, workerkit.ArtifactInvalid("the graph has %d inputs, an encoder at most %d (%s); they are %s", len(m.Inputs), len(inputNames), usualNames(), list(m.Inputs))
	}
	inputs := make([]input, len(m.Inputs))
	taken := map[role]bool{}
	var open []int
	for i, v := range m.Inputs {
		if !v.Tensor || (v.Type != onnxfile.Int64 && v.Type != onnxfile.Int32) || (v.Dims != nil && len(v.Dims) != 2) {
			return nil, workerkit.ArtifactInvalid("the graph's input %v is none of an encoder: those are int32 or int64 of [batch, sequence]", v)
		}
		inputs[i].Value = v
		r, known := roleByName(v.Name)
		switch {
		case !known:
			open = append(open, i)
		case taken[r]:
			return nil, workerkit.ArtifactInvalid("the graph has two inputs for %v, one is %v", r, v)
		default:
			inputs[i].role, taken[r] = r, true
		}
	}
	give := func(r role, fits func(rows int) bool) {
		best, bestRows := -1, 0
		for _, i := range open {
			if rows := m.Rows(m.Inputs[i].Name); fits(rows) && (best < 0 || rows > bestRows) {
				best, bestRows = i, rows
			}
		}
		if best >= 0 && !taken[r] {
			inputs[best].role, taken[r] = r, true
			open = slices.DeleteFunc(open, func(i int) bool { return i == best })
		}
	}
	give(roleIDs, func(rows int) bool { return rows > maxTypeRows })
	give(roleTypes, func(rows int) bool { return rows > 0 && rows <= maxTypeRows })
	if len(open) == 1 {
		give(roleMask, func(rows int) bool { return rows == 0 })
	}
	if len(open) > 0 {
		return nil, workerkit.ArtifactInvalid("the graph's input %v has no known role; export it with the usual names (%s)", m.Inputs[open[0]], usualNames())
	}
	if !taken[roleIDs] {
		return nil, workerkit.ArtifactInvalid("the graph has no input for token ids; it has %s", list(m.Inputs))
	}
	return inputs, nil
}

func roleByName(name string) (role, bool) {
	for r, names := range inputNames {
		if slices.Contains(names, strings.ToLower(name)) {
			return r, true
		}
	}
	return 0, false
}

func usualNames() string {
	var names []string
	for _, r := range []role{roleIDs, roleMask, roleTypes, rolePositions} {
		names = append(names, inputNames[r][0])
	}
	return strings.Join(names, ", ")
}

// nameOf is the name of the input with the role, or empty.
func nameOf(inputs []input, r role) string {
	for _, in := range inputs {
		if in.role == r {
			return in.Name
		}
	}
	return ""
}

// hiddenStates finds the output [batch, sequence, dims]: by its name, else by
// being the only one of that rank.
func hiddenStates(m *onnxfile.Model) (onnxfile.Value, error) {
	var found []onnxfile.Value
	for _, v := range m.Outputs {
		if !v.Tensor || (v.Dims != nil && len(v.Dims) != 3) || !isFloat(v.Type) {
			continue
		}
		if slices.Contains(hiddenNames, strings.ToLower(v.Name)) {
			return v, nil
		}
		found = append(found, v)
	}
	if len(found) != 1 {
		return onnxfile.Value{}, workerkit.ArtifactInvalid("the graph must have one output of hidden states (float [batch, sequence, dims]); it has %s", list(m.Outputs))
	}
	return found[0], nil
}

// list names values in a message, not more than a few.
func list(values []onnxfile.Value) string {
	const most = 6
	var names []string
	for _, v := range values[:min(most, len(values))] {
		names = append(names, v.String())
	}
	if len(values) > most {
		names = append(names, fmt.Sprintf("and %d more", len(values)-most))
	}
	return strings.Join(names, ", ")
}

func isFloat(t onnxfile.Type) bool {
	return t == onnxfile.Float || t == onnxfile.Float16 || t == onnxfile.BFloat16
}

// limits are what rows must keep to. What the graph does not say must be told,
// and what is told must not exceed the graph.
func limits(m *onnxfile.Model, inputs []input, c workerkit.Config) (vocab, maxTokens int, err error) {
	ids := nameOf(inputs, roleIDs)
	vocab, err = limit(m.Rows(ids), c, optVocabSize, "embedding table")
	if err != nil {
		return 0, 0, err
	}
	maxTokens, err = limit(m.MaxPositions(ids, nameOf(inputs, rolePositions)), c, optMaxTokens, "table of positions")
	return vocab, maxTokens, err
}

func limit(found int, c workerkit.Config, option, source string) (int, error) {
	told := c.Int(option)
	switch {
	case told == 0 && found == 0:
		return 0, workerkit.ConfigInvalid("the graph has no %s that could be found: set runtime_config.%s", source, option)
	case found != 0 && told > found:
		return 0, workerkit.ConfigInvalid("runtime_config.%s is %d; the graph's %s allows at most %d", option, told, source, found)
	case told != 0:
		return told, nil
	}
	return found, nil
}
