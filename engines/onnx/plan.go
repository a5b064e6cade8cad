package onnx

import (
	"errors"
	"runtime"

	ort "github.com/yalue/onnxruntime_go"

	"github.com/synapse-module/workers/engines/onnx/internal/onnxfile"
	"github.com/synapse-module/workers/workerkit"
)

// plan is what is known of an encoder before its session is made.
type plan struct {
	inputs    []input
	output    onnxfile.Value
	dims      int // of the output per token; 0 where the file does not say
	vocab     int
	maxTokens int
	width     int // of every call, where the graph fixes it; else 0
	batcher   batcher
	pooling   workerkit.Pooling // the model's own; empty where it is not known
}

// quantizes says that the graph takes scales over the values of a call, so that
// rows in one call move each other.
func quantizes(m *onnxfile.Model) bool {
	return m.Ops["DynamicQuantizeLinear"]+m.Ops["DynamicQuantizeMatMul"] > 0
}

// multipliesBytes says that the graph has integer products, whose kernels
// saturate on some CPUs.
func multipliesBytes(m *onnxfile.Model) bool {
	return m.Ops["MatMulInteger"]+m.Ops["DynamicQuantizeMatMul"]+m.Ops["QLinearMatMul"]+m.Ops["QGemm"]+m.Ops["QAttention"] > 0
}

func planEncoder(m *onnxfile.Model, c workerkit.Config) (p plan, err error) {
	if p.inputs, err = assignInputs(m); err != nil {
		return p, err
	}
	if p.output, err = hiddenStates(m); err != nil {
		return p, err
	}
	if k := len(p.output.Dims); k > 0 && p.output.Dims[k-1] > 0 {
		p.dims = int(p.output.Dims[k-1])
	} else {
		p.dims = m.Width(nameOf(p.inputs, roleIDs))
	}
	if p.vocab, p.maxTokens, err = limits(m, p.inputs, c); err != nil {
		return p, err
	}
	if level := c.String(optOptimization); saturates() && multipliesBytes(m) && (level == "off" || level == "basic") {
		return p, workerkit.ConfigInvalid("runtime_config.%s is %q: without the level \"extended\" this CPU (%s) computes int8 models wrong", optOptimization, level, cpuClass())
	}
	masked := nameOf(p.inputs, roleMask) != ""
	p.batcher = batcher{tokens: c.Int(optBatchTokens), alone: quantizes(m), padded: masked}
	for _, in := range p.inputs {
		if len(in.Dims) != 2 {
			continue
		}
		switch batch, width := in.Dims[0], in.Dims[1]; {
		case batch > 1:
			return p, workerkit.ArtifactInvalid("the graph's input %v fixes the batch to %d rows; export it with an open batch, or 1", in.Value, batch)
		case batch == 1:
			p.batcher.alone = true
			fallthrough
		default:
			if width > 0 {
				p.width = int(width)
			}
		}
	}
	if p.width > 0 {
		if !masked {
			return p, workerkit.ArtifactInvalid("the graph fixes the length to %d tokens and has no attention mask: shorter rows cannot be told from padding", p.width)
		}
		p.maxTokens = min(p.maxTokens, p.width)
	}
	p.pooling = workerkit.Pooling(c.String(optPooling))
	return p, nil
}

// newSession loads the graph in the file at path.
func newSession(path string, p plan, c workerkit.Config) (*ort.DynamicAdvancedSession, error) {
	o, err := sessionOptions(c)
	if err != nil {
		return nil, loadError(err)
	}
	names := make([]string, len(p.inputs))
	for i, in := range p.inputs {
		names[i] = in.Name
	}
	session, err := ort.NewDynamicAdvancedSession(path, names, []string{p.output.Name}, o)
	if err := errors.Join(err, o.Destroy()); err != nil {
		return nil, loadError(err)
	}
	return session, nil
}

// newEncoder runs the session once and checks what comes out.
func newEncoder(session *ort.DynamicAdvancedSession, p plan) (*encoder, error) {
	width := max(p.width, min(2, p.maxTokens))
	dims, err := probe(session, p, width)
	if err != nil {
		return nil, err
	}
	return &encoder{
		runner:  newRunner(session, p.inputs, p.output, dims),
		batcher: p.batcher,
		width:   p.width,
		desc: workerkit.Description{
			Arch:           "onnx encoder",
			Dims:           dims,
			MaxTokens:      p.maxTokens,
			VocabSize:      p.vocab,
			Poolings:       []workerkit.Pooling{workerkit.PoolingMean, workerkit.PoolingCLS, workerkit.PoolingLast},
			DefaultPooling: p.pooling,
		},
	}, nil
}

// probe runs one row of width tokens and returns the length of a token's hidden
// state. That the output is what the file says is seen here: the library checks
// names and shapes only when it runs.
func probe(session *ort.DynamicAdvancedSession, p plan, width int) (dims int, err error) {
	var pins runtime.Pinner
	defer pins.Unpin()
	in := make([]ort.Value, len(p.inputs))
	out := make([]ort.Value, 1)
	defer func() {
		for _, v := range append(in, out...) {
			if v != nil {
				err = errors.Join(err, v.Destroy())
			}
		}
	}()
	for i, input := range p.inputs {
		b := newNumbers(input.Type)
		b.grow(width, &pins)
		b.fill(input.role, 0, make([]int32, width), width)
		if in[i], err = b.tensor(ort.NewShape(1, int64(width))); err != nil {
			return 0, loadError(err)
		}
	}
	if p.output.Type != onnxfile.Float {
		// The binding cannot take an output of 16-bit floats that the library made,
		// so its shape must be known beforehand; the library checks it.
		if p.dims == 0 {
			return 0, workerkit.ArtifactInvalid("the graph does not say how long its output %v is; export it with that dimension", p.output)
		}
		halves := make([]uint16, width*p.dims)
		pins.Pin(&halves[0])
		shape := ort.NewShape(1, int64(width), int64(p.dims))
		if out[0], err = ort.NewCustomDataTensor(shape, bytesOf(halves), ort.TensorElementDataType(p.output.Type)); err != nil {
			return 0, loadError(err)
		}
	}
	if err := session.Run(in, out); err != nil {
		return 0, loadError(err)
	}
	got := out[0].GetShape()
	if t := onnxfile.Type(out[0].DataType()); t != p.output.Type {
		return 0, workerkit.ArtifactInvalid("the graph's output %v comes as %v", p.output, t)
	}
	if len(got) != 3 || got[0] != 1 || got[1] != int64(width) || got[2] < 1 {
		return 0, workerkit.ArtifactInvalid("one row of %d tokens gives an output %s of shape %v, wanted is [1 %d dims]", width, p.output.Name, got, width)
	}
	return int(got[2]), nil
}
