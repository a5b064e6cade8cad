package bridge

import (
	"context"
	"errors"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/synapse-module/workers/engines/coreml/internal/objc"
	"github.com/synapse-module/workers/engines/coreml/internal/stubcoreml"
)

func TestDescription(t *testing.T) {
	b := open(t)
	m := load(t, b, stubcoreml.Model{
		Inputs: map[string]stubcoreml.Feature{
			"fixed":      stubcoreml.IDs(2, 64),
			"enumerated": {Type: stubcoreml.Int32, Shape: []int{1, 32}, Shapes: [][]int{{1, 32}, {1, 64}}},
			"one_shape":  {Type: stubcoreml.Int32, Shape: []int{1, 8}, Shapes: [][]int{{1, 32}}},
			"range":      {Type: stubcoreml.Int32, Shape: []int{1, 32}, Ranges: [][2]int{{1, 1}, {1, 512}}},
			"no_end":     {Type: stubcoreml.Int32, Shape: []int{1, 32}, Ranges: [][2]int{{1, 1}, {3, 0}}},
			"one_size":   {Type: stubcoreml.Int32, Shape: []int{1, 8}, Ranges: [][2]int{{1, 1}, {16, 16}}},
			"state":      {},
		},
		Outputs:  map[string]stubcoreml.Feature{"embedding": {Type: stubcoreml.Float16, Shape: []int{1, 384}, Optional: true}},
		Metadata: map[string]string{"synapse.pooling": "mean", "note": "a < b & c"},
	})
	want := []Feature{
		{Name: "enumerated", Type: Int32, Shape: []int{1, 32}, Shapes: [][]int{{1, 32}, {1, 64}}},
		{Name: "fixed", Type: Int32, Shape: []int{2, 64}},
		{Name: "no_end", Type: Int32, Shape: []int{1, 32}, Ranges: []Bounds{{1, 1}, {3, 0}}},
		{Name: "one_shape", Type: Int32, Shape: []int{1, 32}},
		{Name: "one_size", Type: Int32, Shape: []int{1, 16}},
		{Name: "range", Type: Int32, Shape: []int{1, 32}, Ranges: []Bounds{{1, 1}, {1, 512}}},
		{Name: "state"},
	}
	if !reflect.DeepEqual(m.Inputs, want) {
		t.Errorf("inputs are\n%v, wanted\n%v", m.Inputs, want)
	}
	if want := []Feature{{Name: "embedding", Type: Float16, Shape: []int{1, 384}, Optional: true}}; !reflect.DeepEqual(m.Outputs, want) {
		t.Errorf("outputs are %v", m.Outputs)
	}
	if m.Metadata["synapse.pooling"] != "mean" || m.Metadata["note"] != "a < b & c" || len(m.Metadata) != 2 {
		t.Errorf("metadata is %v", m.Metadata)
	}
}

func TestTakes(t *testing.T) {
	fixed := Feature{Shape: []int{1, 32}}
	enumerated := Feature{Shape: []int{1, 32}, Shapes: [][]int{{1, 32}, {1, 64}}}
	ranged := Feature{Shape: []int{1, 32}, Ranges: []Bounds{{1, 1}, {8, 64}}}
	open := Feature{Shape: []int{1, 32}, Ranges: []Bounds{{1, 1}, {8, 0}}}
	for _, c := range []struct {
		f     Feature
		shape []int
		want  bool
	}{
		{fixed, []int{1, 32}, true},
		{fixed, []int{1, 31}, false},
		{fixed, []int{32}, false},
		{enumerated, []int{1, 64}, true},
		{enumerated, []int{1, 33}, false},
		{ranged, []int{1, 8}, true},
		{ranged, []int{1, 64}, true},
		{ranged, []int{1, 7}, false},
		{ranged, []int{1, 65}, false},
		{ranged, []int{2, 8}, false},
		{ranged, []int{8}, false},
		{open, []int{1, 1 << 20}, true},
	} {
		if got := c.f.Takes(c.shape); got != c.want {
			t.Errorf("%v takes %v: %v", c.f, c.shape, got)
		}
	}
}

func TestCompile(t *testing.T) {
	b := open(t)
	path := stubcoreml.WritePackage(t, t.TempDir(), "a b.mlpackage", encoder())
	compiled, err := b.Compile(soon(t), path)
	if err != nil {
		t.Fatal(err)
	}
	if filepath.Ext(compiled) != ".mlmodelc" {
		t.Errorf("compiled to %s", compiled)
	}
	m, err := b.Load(soon(t), compiled, Configuration{})
	if err != nil {
		t.Fatal(err)
	}
	m.Close()
	noneLive(t)
}

func TestFunctions(t *testing.T) {
	b := open(t)
	model := encoder()
	model.Functions = map[string]stubcoreml.Model{"s8": {Inputs: map[string]stubcoreml.Feature{"input_ids": stubcoreml.IDs(1, 8)}}}
	path := stubcoreml.WriteCompiled(t, t.TempDir(), "m.mlmodelc", model)
	m, err := b.Load(soon(t), path, Configuration{Function: "s8"})
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Inputs) != 1 || m.Inputs[0].Shape[1] != 8 {
		t.Errorf("inputs of the function are %v", m.Inputs)
	}
	m.Close()
	if _, err := b.Load(soon(t), path, Configuration{Function: "s9"}); err == nil {
		t.Error("a function that is not there was loaded")
	}
	noneLive(t)
}

func TestFailuresCarryCoreMLsWords(t *testing.T) {
	b := open(t)
	for fault, want := range map[string]string{
		"load_error":    "Core ML could not load: Failed to build the model execution plan. (com.apple.CoreML 0)",
		"load_nil":      "Core ML could not load and gave no reason",
		"compile_error": "Core ML could not compile: Unable to parse the model. (com.apple.CoreML 3)",
		"plan_error":    "Core ML could not make a compute plan: E5RT: Failed to PropagateInputTensorShapes. (com.apple.CoreML 0)",
		"plan_nil":      "Core ML could not make a compute plan and gave no reason",
	} {
		model := encoder()
		model.Fault = fault
		path := stubcoreml.WriteCompiled(t, t.TempDir(), "m.mlmodelc", model)
		var err error
		switch {
		case strings.HasPrefix(fault, "load"):
			_, err = b.Load(soon(t), path, Configuration{})
		case strings.HasPrefix(fault, "compile"):
			_, err = b.Compile(soon(t), path)
		default:
			_, err = b.Plan(soon(t), path, Configuration{})
		}
		var typed *Error
		if !errors.As(err, &typed) || err.Error() != want {
			t.Errorf("%s: %v", fault, err)
		}
	}
	noneLive(t)
}

// A handler that never comes: the call ends with its context, and the block that
// Core ML may yet call is kept.
func TestNoAnswer(t *testing.T) {
	b := open(t)
	for fault, call := range map[string]func(context.Context, string) error{
		"load_hang": func(ctx context.Context, path string) error {
			_, err := b.Load(ctx, path, Configuration{})
			return err
		},
		"plan_hang": func(ctx context.Context, path string) error {
			_, err := b.Plan(ctx, path, Configuration{})
			return err
		},
	} {
		model := encoder()
		model.Fault = fault
		path := stubcoreml.WriteCompiled(t, t.TempDir(), "m.mlmodelc", model)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		before := objc.LiveBlocks()
		err := call(ctx, path)
		if !errors.Is(err, ErrNoAnswer) || !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", fault, err)
		}
		if objc.LiveBlocks() != before+1 {
			t.Errorf("%s: the block was released, Core ML may still call it", fault)
		}
	}
	forgetBlocks()
	noneLive(t)
}

func TestNilDescription(t *testing.T) {
	model := encoder()
	model.Fault = "nil_description"
	m := load(t, open(t), model)
	if len(m.Inputs) != 0 || len(m.Outputs) != 0 || len(m.Metadata) != 0 {
		t.Fatalf("a model without a description has %v, %v, %v", m.Inputs, m.Outputs, m.Metadata)
	}
}
