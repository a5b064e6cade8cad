package sidecar

import (
	"fmt"
	"path"
	"strings"

	"github.com/synapse-module/workers/engines/onnx/internal/safetensors"
	"github.com/synapse-module/workers/workerkit"
)

// Layer is a step after pooling: a dense layer, or a normalisation to length 1.
type Layer struct {
	Normalize bool
	In, Out   int
	Weight    []float32 // Out×In, row-major
	Bias      []float32 // Out, or nil
	Tanh      bool      // of the sum; else nothing
}

// poolingFile is the config.json of a pooling module. Newer releases name the
// mode, older ones set a flag.
type poolingFile struct {
	Mode     string `json:"pooling_mode"`
	CLS      bool   `json:"pooling_mode_cls_token"`
	Mean     bool   `json:"pooling_mode_mean_tokens"`
	Max      bool   `json:"pooling_mode_max_tokens"`
	SqrtMean bool   `json:"pooling_mode_mean_sqrt_len_tokens"`
	Weighted bool   `json:"pooling_mode_weightedmean_tokens"`
	Last     bool   `json:"pooling_mode_lasttoken"`
}

func (p poolingFile) pooling() (workerkit.Pooling, error) {
	var modes []string
	for mode, set := range map[string]bool{
		"cls": p.CLS, "mean": p.Mean, "max": p.Max, "mean_sqrt_len_tokens": p.SqrtMean, "weightedmean": p.Weighted, "lasttoken": p.Last,
	} {
		if set {
			modes = append(modes, mode)
		}
	}
	if p.Mode != "" {
		modes = []string{p.Mode}
	}
	if len(modes) == 1 {
		switch modes[0] {
		case "cls":
			return workerkit.PoolingCLS, nil
		case "mean":
			return workerkit.PoolingMean, nil
		case "lasttoken":
			return workerkit.PoolingLast, nil
		}
	}
	return "", fmt.Errorf("the model pools by %q; supported is one of mean, cls, lasttoken", modes)
}

type module struct {
	Path string `json:"path"`
	Type string `json:"type"`
}

// defaultPoolingPath is where the pooling lies when modules.json was left out.
const defaultPoolingPath = "1_Pooling"

// readModules follows modules.json. A module that cannot be run faithfully makes
// an error: leaving it out would give other vectors in silence.
func (m *Metadata) readModules(f Files) error {
	var modules []module
	there, err := f.decode("modules.json", &modules)
	if err != nil {
		return err
	}
	if !there {
		modules = []module{{Path: defaultPoolingPath, Type: "Pooling"}}
	}
	for _, mod := range modules {
		kind := mod.Type[strings.LastIndex(mod.Type, ".")+1:]
		switch kind {
		case "Transformer":
			if m.Pooling != "" {
				return fmt.Errorf("modules.json: a Transformer after pooling is not supported")
			}
		case "Pooling":
			var p poolingFile
			found, err := f.decode(path.Join(mod.Path, "config.json"), &p)
			if err != nil {
				return err
			}
			if !found {
				if there {
					return fmt.Errorf("modules.json names %s, which has no config.json", mod.Path)
				}
				return nil
			}
			if m.Pooling, err = p.pooling(); err != nil {
				return fmt.Errorf("%s: %w", path.Join(mod.Path, "config.json"), err)
			}
		case "Dense":
			layer, err := dense(f, mod.Path)
			if err != nil {
				return err
			}
			m.After = append(m.After, layer)
		case "Normalize":
			m.After = append(m.After, Layer{Normalize: true})
		default:
			return fmt.Errorf("modules.json: a module of type %.64q is not supported", mod.Type)
		}
	}
	// A last normalisation is the request's to ask for.
	if n := len(m.After); n > 0 && m.After[n-1].Normalize {
		m.After = m.After[:n-1]
	}
	return nil
}

func dense(f Files, folder string) (l Layer, err error) {
	var c struct {
		In         int    `json:"in_features"`
		Out        int    `json:"out_features"`
		Bias       bool   `json:"bias"`
		Activation string `json:"activation_function"`
	}
	name := path.Join(folder, "config.json")
	found, err := f.decode(name, &c)
	if err != nil {
		return l, err
	}
	if !found {
		return l, fmt.Errorf("modules.json names %s, which has no config.json", folder)
	}
	switch c.Activation[strings.LastIndex(c.Activation, ".")+1:] {
	case "Identity":
	case "Tanh":
		l.Tanh = true
	default:
		return l, fmt.Errorf("%s: the activation %.64q is not supported", name, c.Activation)
	}
	file := path.Join(folder, "model.safetensors")
	b, err := f.read(file, maxWeights)
	if err != nil {
		return l, err
	}
	if b == nil {
		return l, fmt.Errorf("%s is missing: the dense layer's weights are read from safetensors only", file)
	}
	tensors, err := safetensors.Read(b, "linear.weight", "linear.bias")
	if err != nil {
		return l, fmt.Errorf("%s: %w", file, err)
	}
	weight, bias := tensors["linear.weight"], tensors["linear.bias"]
	if len(weight.Shape) != 2 || weight.Shape[0] != int64(c.Out) || weight.Shape[1] != int64(c.In) || c.In < 1 || c.Out < 1 {
		return l, fmt.Errorf("%s: linear.weight has the shape %v, %s says [%d %d]", file, weight.Shape, name, c.Out, c.In)
	}
	if c.Bias && len(bias.Values) != c.Out {
		return l, fmt.Errorf("%s: linear.bias has %d values, %s says %d", file, len(bias.Values), name, c.Out)
	}
	l.In, l.Out, l.Weight = c.In, c.Out, weight.Values
	if c.Bias {
		l.Bias = bias.Values
	}
	return l, nil
}
