//go:build cgo

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
