package bridge

import (
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"github.com/synapse-module/workers/engines/coreml/internal/objc"
)

// Tensor is an int32 input in C order.
type Tensor struct {
	Name   string
	Shape  []int
	Values []int32
}

// Predict runs the model once for each set of inputs, as one batch of Core ML's,
// and appends the named output's elements in C order to dst, set after set. Every
// set's output has the shape returned: the caller holds it to what it asked,
// since models were seen to answer fewer rows than they were given.
//
// Inputs that the model's description does not allow are an error before Core ML
// is called, because Core ML may answer them with an exception.
func (m *Model) Predict(sets [][]Tensor, output string, dst []float32) (values []float32, shape []int, err error) {
	for _, set := range sets {
		if err := m.check(set, output); err != nil {
			return dst, nil, err
		}
	}
	err = m.b.scope(func() error {
		batch, err := m.b.batch(sets)
		if err != nil {
			return err
		}
		e := new(objc.ID)
		answer := m.b.m.PredictBatch.to(m.model, batch, e)
		if answer == 0 {
			return m.b.error("predict", *e)
		}
		if n := m.b.m.BatchCount.to(answer); n != int64(len(sets)) {
			return fmt.Errorf("%d of %d sets of inputs were answered by Core ML", n, len(sets))
		}
		name := m.b.string(output)
		for i := range sets {
			value := m.b.m.FeatureValue.to(m.b.m.BatchFeatures.to(answer, int64(i)), name)
			array := m.b.m.MultiArrayValue.to(value)
			if array == 0 {
				return fmt.Errorf("output %q: Core ML gave no array", output)
			}
			got := m.b.ints(m.b.m.ArrayShape.to(array))
			if i > 0 && !slices.Equal(got, shape) {
				return fmt.Errorf("output %q: Core ML gave the shapes %v and %v in one batch", output, shape, got)
			}
			shape = got
			if dst, err = m.b.floats(dst, array, shape); err != nil {
				return fmt.Errorf("output %q: %w", output, err)
			}
		}
		return nil
	})
	return dst, shape, err
}

// check holds one set of inputs and the output's name to the model's description.
func (m *Model) check(set []Tensor, output string) error {
	for _, in := range m.Inputs {
		given := slices.ContainsFunc(set, func(t Tensor) bool { return t.Name == in.Name })
		if !given && !in.Optional {
			return fmt.Errorf("the model's input %v is not given", in)
		}
	}
	for _, t := range set {
		i := slices.IndexFunc(m.Inputs, func(f Feature) bool { return f.Name == t.Name })
		total := 1
		for _, n := range t.Shape {
			total *= n
		}
		switch {
		case i < 0:
			return fmt.Errorf("the model has no input %q", t.Name)
		case m.Inputs[i].Type != Int32 || !m.Inputs[i].Takes(t.Shape):
			return fmt.Errorf("the model's input %v does not take int32 %v", m.Inputs[i], t.Shape)
		case total != len(t.Values):
			return fmt.Errorf("input %q has %d values for the shape %v", t.Name, len(t.Values), t.Shape)
		}
	}
	if !slices.ContainsFunc(m.Outputs, func(f Feature) bool { return f.Name == output }) {
		return fmt.Errorf("the model has no output %q", output)
	}
	return nil
}

// batch makes an MLArrayBatchProvider of the sets, autoreleased.
func (b *Bridge) batch(sets [][]Tensor) (objc.ID, error) {
	providers := b.m.NewArray.toClass()
	for _, set := range sets {
		features := b.m.NewDictionary.toClass()
		for _, t := range set {
			array, err := b.int32Array(t)
			if err != nil {
				return 0, fmt.Errorf("input %q: %w", t.Name, err)
			}
			b.m.SetObject.to(features, b.m.ValueOfArray.toClass(array), b.string(t.Name))
		}
		e := new(objc.ID)
		provider := b.m.InitFeatures.to(b.m.AllocFeatures.toClass(), features, e)
		if provider == 0 {
			return 0, b.error("take the inputs", *e)
		}
		b.m.AddObject.to(providers, provider)
		b.m.Release.to(provider)
	}
	return b.m.Autorelease.to(b.m.InitBatch.to(b.m.AllocBatch.toClass(), providers)), nil
}

// int32Array makes an MLMultiArray of a tensor, autoreleased.
func (b *Bridge) int32Array(t Tensor) (objc.ID, error) {
	e := new(objc.ID)
	array := b.m.InitArray.to(b.m.AllocArray.toClass(), b.array(t.Shape), int64(Int32), e)
	if array == 0 {
		return 0, b.error("make an array", *e)
	}
	b.m.Autorelease.to(array)
	err := errHidden
	block := b.rt.MutableBytesBlock(func(bytes unsafe.Pointer, size int, strides objc.ID) {
		err = scatter(memory(bytes, size), t.Shape, b.ints(strides), t.Values)
	})
	defer block.Release()
	b.m.GetMutableBytes.to(array, block.ID) // calls the block before it returns
	return array, err
}

// floats appends an MLMultiArray's elements.
func (b *Bridge) floats(dst []float32, array objc.ID, shape []int) ([]float32, error) {
	strides := b.ints(b.m.ArrayStrides.to(array))
	t := DataType(b.m.ArrayDataType.to(array))
	err := errHidden
	block := b.rt.BytesBlock(func(bytes unsafe.Pointer, size int) {
		dst, err = gather(dst, memory(bytes, size), t, shape, strides)
	})
	defer block.Release()
	b.m.GetBytes.to(array, block.ID) // calls the block before it returns
	return dst, err
}

// errHidden is an array whose handler was not called.
var errHidden = errors.New("the array's memory was not shown by Core ML")

// memory is C's memory as a slice, for as long as C keeps it.
func memory(bytes unsafe.Pointer, size int) []byte {
	if bytes == nil || size <= 0 {
		return nil
	}
	return unsafe.Slice((*byte)(bytes), size)
}
