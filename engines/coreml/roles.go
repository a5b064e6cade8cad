package coreml

import (
	"fmt"
	"slices"
	"strings"

	"github.com/synapse-module/workers/engines/coreml/internal/bridge"
	"github.com/synapse-module/workers/workerkit"
)

// roles are the names of a model's inputs by what they are for; empty where the
// model has none. Each is int32 [rows, tokens].
type roles struct {
	ids   string // token ids
	mask  string // 1 for a token, 0 for padding
	types string // token types (segments)
}

// inputNames are the names under which converters write the roles.
var inputNames = struct{ ids, mask, types []string }{
	ids:   []string{"input_ids", "token_ids", "ids", "tokens"},
	mask:  []string{"attention_mask", "input_mask", "mask"},
	types: []string{"token_type_ids", "segment_ids", "type_ids"},
}

// assignRoles finds the role of every input that must be given.
func assignRoles(inputs []bridge.Feature) (r roles, ids bridge.Feature, err error) {
	for _, f := range inputs {
		var name *string
		switch lower := strings.ToLower(f.Name); {
		case slices.Contains(inputNames.ids, lower):
			name, ids = &r.ids, f
		case slices.Contains(inputNames.mask, lower):
			name = &r.mask
		case slices.Contains(inputNames.types, lower):
			name = &r.types
		case f.Optional:
			continue
		default:
			return r, ids, workerkit.ArtifactInvalid("the model's input %v has no known role; convert it with %s, %s, %s", f, inputNames.ids[0], inputNames.mask[0], inputNames.types[0])
		}
		switch {
		case *name != "":
			return r, ids, workerkit.ArtifactInvalid("the model's inputs %s and %s have the same role", *name, f.Name)
		case f.Type != bridge.Int32:
			return r, ids, workerkit.ArtifactInvalid("the model's input %v is none of token ids: those are int32", f)
		case rankOf(f) != 2:
			return r, ids, workerkit.ArtifactInvalid("the model's input %v is none of token ids: those are [rows, tokens]", f)
		}
		*name = f.Name
	}
	if r.ids == "" {
		return r, ids, workerkit.ArtifactInvalid("the model has no input of token ids (%s); it has %s", inputNames.ids[0], list(inputs))
	}
	return r, ids, nil
}

func rankOf(f bridge.Feature) int {
	switch {
	case len(f.Shapes) > 0:
		return len(f.Shapes[0])
	case len(f.Ranges) > 0:
		return len(f.Ranges)
	}
	return len(f.Shape)
}

// chooseOutput is the one named, or the only one.
func chooseOutput(outputs []bridge.Feature, named string) (string, error) {
	var arrays []bridge.Feature
	for _, f := range outputs {
		if f.Type == 0 {
			continue
		}
		if f.Name == named {
			return f.Name, nil
		}
		arrays = append(arrays, f)
	}
	switch {
	case named != "":
		return "", workerkit.ArtifactInvalid("the model has no output %q of numbers; it has %s", named, list(outputs))
	case len(arrays) != 1:
		return "", workerkit.ArtifactInvalid("the model has the outputs %s: name the one to use in its metadata %s or in runtime_config.%s", list(outputs), keyOutput, optOutput)
	}
	return arrays[0].Name, nil
}

func list(features []bridge.Feature) string {
	if len(features) == 0 {
		return "none"
	}
	texts := make([]string, len(features))
	for i, f := range features {
		texts[i] = fmt.Sprint(f)
	}
	return strings.Join(texts, ", ")
}

// rangeLengths are the lengths that a range of shapes is served at: each call
// computes its whole shape, so rows are padded to the next of these.
var rangeLengths = []int{8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192}

// shapesOf lists the shapes [rows, tokens] that the input of token ids takes.
func shapesOf(ids bridge.Feature, allowRanges bool, maxTokens int) ([][2]int, error) {
	switch {
	case len(ids.Shapes) > 0:
		var shapes [][2]int
		for _, s := range ids.Shapes {
			shapes = append(shapes, [2]int{s[0], s[1]})
		}
		return shapes, nil
	case len(ids.Ranges) == 0:
		return [][2]int{{ids.Shape[0], ids.Shape[1]}}, nil
	case !allowRanges:
		return nil, workerkit.ArtifactInvalid("the model's input %v takes a range of shapes, which the Neural Engine runs only at one of them: convert it with fixed or enumerated shapes, or set runtime_config.%s", ids, optRanges)
	}
	rows, tokens := ids.Ranges[0], ids.Ranges[1]
	most := tokens.Most
	if maxTokens > 0 && (most == 0 || maxTokens < most) {
		most = maxTokens
	}
	if most == 0 {
		return nil, workerkit.ConfigInvalid("the model's input %v has no longest shape: set runtime_config.%s", ids, optMaxTokens)
	}
	var shapes [][2]int
	for _, n := range rangeLengths {
		if n > tokens.Least && n < most {
			shapes = append(shapes, [2]int{rows.Least, n})
		}
	}
	if most > tokens.Least {
		shapes = append(shapes, [2]int{rows.Least, tokens.Least})
	}
	return append(shapes, [2]int{rows.Least, max(most, tokens.Least)}), nil
}
