//go:build cgo

package onnx

import (
	"errors"
	"math"
	"runtime"

	"github.com/x448/float16"
	ort "github.com/yalue/onnxruntime_go"

	"github.com/synapse-module/workers/engines/onnx/internal/onnxfile"
)

// maxCalls bounds how many shapes keep their tensors. A shape costs a few
// hundred bytes; requests of one kind use a few dozen.
const maxCalls = 256

// runner feeds batches of rows to a session through memory that stays: a call of
// a shape that was seen before allocates nothing.
type runner struct {
	session *ort.DynamicAdvancedSession
	inputs  []input
	output  output
	dims    int // values of the output, per token or per row

	firstPosition int // of a row's first token

	capacity int // tokens that the buffers hold
	numbers  []numbers
	floats   []float32 // the output, where it is float32, or its conversion
	halves   []uint16  // the output, where it is float16 or bfloat16
	pins     runtime.Pinner
	calls    map[shape]*call
}

// shape is a call's: rows, and tokens a row with padding.
type shape struct{ batch, width int }

// call is a shape's tensors, bound to the session.
type call struct {
	binding *ort.IoBinding
	values  []ort.Value
}

func newRunner(s *ort.DynamicAdvancedSession, p plan, dims int) *runner {
	r := &runner{
		session: s, inputs: p.inputs, output: p.output, dims: dims,
		firstPosition: p.firstPosition, calls: map[shape]*call{},
	}
	for _, in := range p.inputs {
		r.numbers = append(r.numbers, newNumbers(in.Type))
	}
	return r
}

// rows are token ids, and token types where they are not all 0.
type rows struct{ ids, types [][]int32 }

// run computes the rows that batch names, each padded on the right to width, and
// returns the output, which is valid until the next run: len(batch)×width×dims
// hidden states, or len(batch)×dims of another kind.
func (r *runner) run(in rows, batch []int, width int) ([]float32, error) {
	s := shape{len(batch), width}
	if err := r.grow(s.batch * s.width); err != nil {
		return nil, err
	}
	r.fill(in, batch, width)
	c, err := r.bind(s)
	if err != nil {
		return nil, err
	}
	if err := r.session.RunWithBinding(c.binding); err != nil {
		return nil, err
	}
	out := r.floats[:r.outputShape(s).FlattenedSize()]
	switch r.output.Type {
	case onnxfile.Float16:
		for i := range out {
			out[i] = float16.Frombits(r.halves[i]).Float32()
		}
	case onnxfile.BFloat16:
		for i := range out {
			out[i] = math.Float32frombits(uint32(r.halves[i]) << 16)
		}
	}
	return out, nil
}

// fill writes the inputs. Padding is 0 everywhere: every vocabulary has that id,
// and the mask hides it.
func (r *runner) fill(in rows, batch []int, width int) {
	for i, input := range r.inputs {
		for k, row := range batch {
			at, n := k*width, len(in.ids[row])
			switch input.role {
			case roleIDs:
				r.numbers[i].copy(at, width, in.ids[row])
			case roleMask:
				r.numbers[i].count(at, width, n, 1, 0)
			case rolePositions:
				r.numbers[i].count(at, width, n, r.firstPosition, 1)
			case roleTypes:
				if in.types == nil {
					r.numbers[i].count(at, width, n, 0, 0)
				} else {
					r.numbers[i].copy(at, width, in.types[row])
				}
			}
		}
	}
}

// outputShape is the output's for a call of the shape.
func (r *runner) outputShape(s shape) ort.Shape {
	if r.output.kind == hiddenStates {
		return ort.Shape{int64(s.batch), int64(s.width), int64(r.dims)}
	}
	return ort.Shape{int64(s.batch), int64(r.dims)}
}

// grow makes room for tokens. Tensors point into the buffers, so those of all
// shapes go.
func (r *runner) grow(tokens int) error {
	if tokens <= r.capacity {
		return nil
	}
	if err := r.forget(); err != nil {
		return err
	}
	r.pins.Unpin()
	r.capacity = max(tokens, 2*r.capacity)
	for _, b := range r.numbers {
		b.grow(r.capacity, &r.pins)
	}
	r.floats = make([]float32, r.capacity*r.dims)
	r.pins.Pin(&r.floats[0])
	if r.output.Type != onnxfile.Float {
		r.halves = make([]uint16, r.capacity*r.dims)
		r.pins.Pin(&r.halves[0])
	}
	return nil
}

// bind returns the tensors of a shape, made on its first use.
func (r *runner) bind(s shape) (*call, error) {
	if c, ok := r.calls[s]; ok {
		return c, nil
	}
	if len(r.calls) >= maxCalls {
		if err := r.forget(); err != nil {
			return nil, err
		}
	}
	binding, err := r.session.CreateIoBinding()
	if err != nil {
		return nil, err
	}
	c := &call{binding: binding}
	if err := r.fillCall(c, s); err != nil {
		return nil, errors.Join(err, c.destroy())
	}
	r.calls[s] = c
	return c, nil
}

func (r *runner) fillCall(c *call, s shape) error {
	for i, in := range r.inputs {
		v, err := r.numbers[i].tensor(ort.NewShape(int64(s.batch), int64(s.width)))
		if err != nil {
			return err
		}
		c.values = append(c.values, v)
		if err := c.binding.BindInput(in.Name, v); err != nil {
			return err
		}
	}
	v, err := r.outputTensor(r.outputShape(s))
	if err != nil {
		return err
	}
	c.values = append(c.values, v)
	return c.binding.BindOutput(r.output.Name, v)
}

func (r *runner) outputTensor(s ort.Shape) (ort.Value, error) {
	n := s.FlattenedSize()
	if r.output.Type == onnxfile.Float {
		return ort.NewTensor(s, r.floats[:n])
	}
	return ort.NewCustomDataTensor(s, bytesOf(r.halves[:n]), ort.TensorElementDataType(r.output.Type))
}

// forget frees the tensors of all shapes.
func (r *runner) forget() error {
	var errs []error
	for s, c := range r.calls {
		errs = append(errs, c.destroy())
		delete(r.calls, s)
	}
	return errors.Join(errs...)
}

// release frees the tensors and their memory.
func (r *runner) release() error {
	err := r.forget()
	r.pins.Unpin()
	return err
}

// close frees everything, the session with it.
func (r *runner) close() error {
	err := errors.Join(r.release(), r.session.Destroy())
	trim()
	return err
}

func (c *call) destroy() error {
	errs := []error{c.binding.Destroy()}
	for _, v := range c.values {
		errs = append(errs, v.Destroy())
	}
	return errors.Join(errs...)
}
