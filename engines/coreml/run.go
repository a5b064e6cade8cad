package coreml

import (
	"context"
	"fmt"
	"slices"

	"github.com/synapse-module/workers/engines/coreml/internal/bridge"
)

// batch is rows to run. types is nil where all token types are 0.
type batch struct{ ids, types [][]int32 }

// maxOutputValues bounds what one batch of Core ML's may answer, 256 MiB of
// float32: hidden states of many long rows would take all memory.
const maxOutputValues = 64 << 20

// scratch is memory that is used again by the next request.
type scratch struct {
	lengths []int
	inputs  []int32
	outputs []float32
}

// run computes a batch of any number of rows. visit is called once a row, in no
// order, with what the model gave for it: dims values, or dims for each of the
// row's tokens. They are valid until visit returns.
func (s *session) run(ctx context.Context, b batch, visit func(row int, values []float32)) error {
	s.scratch.lengths = s.scratch.lengths[:0]
	for _, row := range b.ids {
		s.scratch.lengths = append(s.scratch.lengths, len(row))
	}
	return s.runCalls(ctx, split(s.scratch.lengths, s.buckets), b, visit)
}

// runCalls runs the calls of one bucket together, as many as the bound on the
// output allows.
func (s *session) runCalls(ctx context.Context, calls []call, b batch, visit func(row int, values []float32)) error {
	for len(calls) > 0 {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("given up: %w", err)
		}
		bucket := calls[0].bucket
		most := max(1, maxOutputValues/max(1, s.outputValues(bucket)))
		n := 1
		for n < len(calls) && n < most && calls[n].bucket == bucket {
			n++
		}
		if err := s.runBucket(bucket, calls[:n], b, visit); err != nil {
			return err
		}
		calls = calls[n:]
	}
	return nil
}

// outputValues is how many values a call of the bucket answers; 0 before the
// first one was seen.
func (s *session) outputValues(b *bucket) int {
	if s.rank == 3 {
		return b.rows * b.tokens * s.dims
	}
	return b.rows * s.dims
}

func (s *session) runBucket(b *bucket, calls []call, in batch, visit func(row int, values []float32)) error {
	sets := make([][]bridge.Tensor, len(calls))
	s.scratch.inputs = s.scratch.inputs[:0]
	for i, c := range calls {
		sets[i] = s.tensors(b, c, in)
	}
	values, shape, err := b.unit.Predict(sets, s.output, s.scratch.outputs[:0])
	s.scratch.outputs = values[:0]
	if err != nil {
		return err
	}
	if err := s.observe(b, shape); err != nil {
		return err
	}
	if visit == nil {
		return nil
	}
	for _, c := range calls {
		answer := values[:s.outputValues(b)]
		values = values[len(answer):]
		width := len(answer) / b.rows
		for k, row := range c.rows {
			mine := answer[k*width : (k+1)*width]
			if s.rank == 3 {
				mine = mine[:len(in.ids[row])*s.dims] // real tokens only
			}
			visit(row, mine)
		}
	}
	return nil
}

// tensors lays the rows of a call out as the model's inputs. Rows of the bucket
// that are left over repeat the call's first: a row of nothing but padding has no
// mean, and models were seen to answer NaN to it.
func (s *session) tensors(b *bucket, c call, in batch) []bridge.Tensor {
	shape := []int{b.rows, b.tokens}
	pad := int32(max(0, s.meta.padID))
	lay := func(name string, value func(row, column int) int32) bridge.Tensor {
		from := len(s.scratch.inputs)
		s.scratch.inputs = slices.Grow(s.scratch.inputs, b.rows*b.tokens)
		for k := range b.rows {
			row := c.rows[0]
			if k < len(c.rows) {
				row = c.rows[k]
			}
			for column := range b.tokens {
				s.scratch.inputs = append(s.scratch.inputs, value(row, column))
			}
		}
		return bridge.Tensor{Name: name, Shape: shape, Values: s.scratch.inputs[from:]}
	}
	set := []bridge.Tensor{lay(s.roles.ids, func(row, column int) int32 {
		if column < len(in.ids[row]) {
			return in.ids[row][column]
		}
		return pad
	})}
	if s.roles.mask != "" {
		set = append(set, lay(s.roles.mask, func(row, column int) int32 {
			if column < len(in.ids[row]) {
				return 1
			}
			return 0
		}))
	}
	if s.roles.types != "" {
		set = append(set, lay(s.roles.types, func(row, column int) int32 {
			if in.types != nil && column < len(in.types[row]) {
				return in.types[row][column]
			}
			return 0
		}))
	}
	return set
}
