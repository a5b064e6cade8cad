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
	output  onnxfile.Value
	dims    int // values of the output per token

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

func newRunner(s *ort.DynamicAdvancedSession, inputs []input, output onnxfile.Value, dims int) *runner {
	r := &runner{session: s, inputs: inputs, output: output, dims: dims, calls: map[shape]*call{}}
	for _, in := range inputs {
		r.numbers = append(r.numbers, newNumbers(in.Type))
	}
	return r
}

// run computes the rows that batch names, each padded on the right to width, and
// returns the output, len(batch)×width×dims, which is valid until the next run.
func (r *runner) run(rows [][]int32, batch []int, width int) ([]float32, error) {
	s := shape{len(batch), width}
	if err := r.grow(s.batch * s.width); err != nil {
		return nil, err
	}
	for i, in := range r.inputs {
		for k, row := range batch {
			r.numbers[i].fill(in.role, k*width, rows[row], width)
		}
	}
	c, err := r.bind(s)
	if err != nil {
		return nil, err
	}
	if err := r.session.RunWithBinding(c.binding); err != nil {
		return nil, err
	}
	n := s.batch * s.width * r.dims
	switch r.output.Type {
	case onnxfile.Float16:
		for i, h := range r.halves[:n] {
			r.floats[i] = float16.Frombits(h).Float32()
		}
	case onnxfile.BFloat16:
		for i, h := range r.halves[:n] {
			r.floats[i] = math.Float32frombits(uint32(h) << 16)
		}
	}
	return r.floats[:n], nil
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
	v, err := r.outputTensor(ort.NewShape(int64(s.batch), int64(s.width), int64(r.dims)))
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

// close frees the tensors and the session.
func (r *runner) close() error {
	err := errors.Join(r.forget(), r.session.Destroy())
	r.pins.Unpin()
	return err
}

func (c *call) destroy() error {
	errs := []error{c.binding.Destroy()}
	for _, v := range c.values {
		errs = append(errs, v.Destroy())
	}
	return errors.Join(errs...)
}
