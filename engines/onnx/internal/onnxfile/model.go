// Package onnxfile reads what an ONNX file says of its graph: names, types and
// shapes of inputs, outputs and weights, and how the nodes hang together. It
// never reads the weights, so it is cheap at any size, and it needs no library,
// so what an engine must know beforehand is known before a session is made.
//
// The format is protobuf; field numbers are those of onnx.proto (ONNX, IR
// version 3 and later).
package onnxfile

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"
)

// ErrORTFormat says that the file is ONNX Runtime's own format (.ort), which
// holds an already optimised graph as a flat buffer.
var ErrORTFormat = errors.New("this is a model in ONNX Runtime's own format (.ort), not an ONNX file")

// Limits on what is kept of a file, so that a small hostile file cannot become
// a large structure. The largest real exports stay a factor of ten below.
const (
	maxNodes   = 1 << 20 // nodes, weights, inputs and outputs each
	maxNames   = 1 << 12 // inputs or outputs of one node
	maxDims    = 32
	maxDepth   = 64      // graphs within graphs
	maxContent = 1 << 17 // integers of one constant that are kept
)

// Type is an element type, with ONNX's numbers (TensorProto.DataType), which are
// also ONNX Runtime's.
type Type int32

// The element types that an engine deals with.
const (
	Float    Type = 1
	Uint8    Type = 2
	Int8     Type = 3
	Int32    Type = 6
	Int64    Type = 7
	Bool     Type = 9
	Float16  Type = 10
	BFloat16 Type = 16
)

func (t Type) String() string {
	names := map[Type]string{
		0: "undefined", Float: "float32", Uint8: "uint8", Int8: "int8", 4: "uint16", 5: "int16", Int32: "int32", Int64: "int64",
		8: "string", Bool: "bool", Float16: "float16", 11: "float64", 12: "uint32", 13: "uint64", BFloat16: "bfloat16",
	}
	if s, ok := names[t]; ok {
		return s
	}
	return fmt.Sprintf("type %d", int32(t))
}

// Model is an ONNX file without its weights.
type Model struct {
	Producer string
	Metadata map[string]string

	Inputs  []Value // without those that are weights
	Outputs []Value
	Tensors map[string]Tensor // weights and constants by name
	Nodes   []Node            // of the main graph

	// Ops counts the operators of the main graph, of graphs within it and of the
	// file's own functions.
	Ops map[string]int

	// External holds the names of the files, relative to the model's, in which
	// weights lie.
	External map[string]bool

	producers map[string]int // the index in Nodes by output
	tables    []lookup       // all row-wise look-ups
}

// ExternalNames yields the names of the files in which weights lie, sorted. It
// may be called on nil.
func (m *Model) ExternalNames() iter.Seq[string] {
	if m == nil {
		return slices.Values([]string(nil))
	}
	return slices.Values(slices.Sorted(maps.Keys(m.External)))
}

// Value is an input or output of the graph. A dimension that is not fixed is -1.
type Value struct {
	Name   string
	Tensor bool // false: a sequence, map or other kind
	Type   Type
	Dims   []int64 // nil where the file does not say
}

// maxShown bounds the name of a value in messages.
const maxShown = 64

func (v Value) String() string {
	name := v.Name
	if len(name) > maxShown {
		name = name[:maxShown] + "…"
	}
	name = strings.ToValidUTF8(name, "?")
	if !v.Tensor {
		return name + " (no tensor)"
	}
	return fmt.Sprintf("%s (%s %v)", name, v.Type, v.Dims)
}

// Node is one operation.
type Node struct {
	Op, Domain      string
	Inputs, Outputs []string
	Ints            map[string]int64 // its integer attributes
}

// Read reads the model in src, of size bytes.
func Read(src io.ReaderAt, size int64) (*Model, error) {
	p := &parser{
		wire: wire{src: src, window: make([]byte, 0, windowBytes)},
		model: Model{
			Metadata: map[string]string{}, Tensors: map[string]Tensor{},
			Ops: map[string]int{}, External: map[string]bool{},
		},
	}
	// A flat buffer has its identifier after the four bytes of its root's offset.
	head, err := p.peek(0, 8)
	if err != nil {
		return nil, err
	}
	if len(head) == 8 && string(head[4:]) == "ORTM" {
		return nil, ErrORTFormat
	}
	if size == 0 {
		return nil, errors.New("the file is empty")
	}
	if err := p.readModel(size); err != nil {
		return nil, err
	}
	m := &p.model
	if len(m.Nodes) == 0 && len(m.Outputs) == 0 {
		return nil, errors.New("the file holds no graph")
	}
	inputs := m.Inputs[:0]
	for _, v := range m.Inputs {
		if _, weight := m.Tensors[v.Name]; !weight {
			inputs = append(inputs, v)
		}
	}
	m.Inputs = inputs
	return m, nil
}
