//go:build cgo

package onnx

import (
	"errors"
	"runtime"

	ort "github.com/yalue/onnxruntime_go"

	"github.com/synapse-module/workers/engines/onnx/internal/onnxfile"
	"github.com/synapse-module/workers/workerkit"
)

// newSession loads the graph in the file at path.
func newSession(path string, inputs, outputs []string, c workerkit.Config) (*ort.DynamicAdvancedSession, error) {
	o, err := sessionOptions(c)
	if err != nil {
		return nil, err
	}
	return createSession(path, inputs, outputs, o)
}

// createSession makes a session and frees the options that it was made with.
func createSession(path string, inputs, outputs []string, o *ort.SessionOptions) (*ort.DynamicAdvancedSession, error) {
	session, err := ort.NewDynamicAdvancedSession(path, inputs, outputs, o)
	if err := errors.Join(err, o.Destroy()); err != nil {
		return nil, loadError(err)
	}
	return session, nil
}

// names are the inputs' and outputs' of a session for the plan, in order.
func (p plan) names() (inputs, outputs []string) {
	for _, in := range p.inputs {
		inputs = append(inputs, in.Name)
	}
	return inputs, []string{p.output.Name}
}

// newModel runs the session once, checks what comes out, and makes the model
// that the output is for.
func newModel(session *ort.DynamicAdvancedSession, p plan) (workerkit.Model, error) {
	dims, err := probe(session, p)
	if err != nil {
		return nil, err
	}
	r := newRunner(session, p, dims)
	desc := workerkit.Description{Arch: p.arch, MaxTokens: p.maxTokens, VocabSize: p.vocab, Placement: p.placement}
	var m workerkit.Model
	if p.output.kind == logits {
		m, err = newReranker(r, p, desc)
	} else {
		m, err = newEncoder(r, p, desc)
	}
	if err != nil {
		return nil, errors.Join(err, r.release())
	}
	return m, nil
}

// probe runs one short row and returns the length of the output's last
// dimension. That the output is what the file says is seen here: the library
// checks names and shapes only when it runs.
func probe(session *ort.DynamicAdvancedSession, p plan) (dims int, err error) {
	row := make([]int32, min(2, p.maxTokens))
	width := max(p.width, len(row))
	r := newRunner(session, p, max(1, p.dims))
	defer func() { err = errors.Join(err, r.release()) }()
	if err := r.grow(width); err != nil {
		return 0, loadError(err)
	}
	r.fill(rows{ids: [][]int32{row}}, []int{0}, width)
	in := make([]ort.Value, len(p.inputs))
	out := make([]ort.Value, 1)
	defer func() {
		for _, v := range append(in, out...) {
			if v != nil {
				err = errors.Join(err, v.Destroy())
			}
		}
	}()
	for i := range in {
		if in[i], err = r.numbers[i].tensor(ort.NewShape(1, int64(width))); err != nil {
			return 0, loadError(err)
		}
	}
	if p.output.Type != onnxfile.Float {
		// The binding cannot take an output of 16-bit floats that the library made,
		// so its shape must be known beforehand; the library checks it.
		if p.dims == 0 {
			return 0, workerkit.ArtifactInvalid("the graph does not say how long its output %v is; export it with that dimension", p.output.Value)
		}
		if out[0], err = r.outputTensor(r.outputShape(shape{1, width})); err != nil {
			return 0, loadError(err)
		}
	}
	if err := session.Run(in, out); err != nil {
		return 0, loadError(err)
	}
	runtime.KeepAlive(r)
	return checkOutput(out[0], p, width)
}

// checkOutput holds what one row of width tokens gave to what the file says.
func checkOutput(v ort.Value, p plan, width int) (dims int, err error) {
	if t := onnxfile.Type(v.DataType()); t != p.output.Type {
		return 0, workerkit.ArtifactInvalid("the graph's output %v comes as %v", p.output.Value, t)
	}
	got := v.GetShape()
	k := p.output.kind.rank()
	if len(got) != k || got[0] != 1 || (k == 3 && got[1] != int64(width)) || got[k-1] < 1 {
		return 0, workerkit.ArtifactInvalid("one row of %d tokens gives an output %v of shape %v, wanted are %v", width, p.output.Value, got, p.output.kind)
	}
	return int(got[k-1]), nil
}
