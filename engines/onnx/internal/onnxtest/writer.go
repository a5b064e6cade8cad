// Package onnxtest writes small ONNX files, so that tests have models of every
// kind without a Python tool. Its field numbers are those of onnx.proto.
package onnxtest

import (
	"encoding/binary"
	"math"
	"strconv"

	"github.com/x448/float16"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/synapse-module/workers/engines/onnx/internal/onnxfile"
)

// opset and irVersion are what exporters of 2023 and later write.
const (
	opset     = 17
	irVersion = 8
)

// sidecarBytes is the least size of a weight that goes into the sidecar: the
// library wants operands such as axes in the file itself, and exporters put only
// what is large elsewhere.
const sidecarBytes = 64

// Graph collects the parts of a model.
type Graph struct {
	nodes, tensors, inputs, outputs, metadata []byte

	// Sidecar, where it is set, takes the bytes of weights instead of the file:
	// they become external data in the file of that name.
	Sidecar string
	sidecar []byte
}

// Input declares an input. A dimension of -1 is left open.
func (g *Graph) Input(name string, t onnxfile.Type, dims ...int64) {
	g.inputs = embed(g.inputs, 11, valueInfo(name, t, dims))
}

// Output declares an output.
func (g *Graph) Output(name string, t onnxfile.Type, dims ...int64) {
	g.outputs = embed(g.outputs, 12, valueInfo(name, t, dims))
}

// Node adds an operation of the standard domain.
func (g *Graph) Node(op string, inputs, outputs []string, attrs ...Attr) {
	g.DomainNode("", op, inputs, outputs, attrs...)
}

// DomainNode adds an operation of any domain.
func (g *Graph) DomainNode(domain, op string, inputs, outputs []string, attrs ...Attr) {
	var b []byte
	for _, s := range inputs {
		b = text(b, 1, s)
	}
	for _, s := range outputs {
		b = text(b, 2, s)
	}
	b = text(b, 4, op)
	for _, a := range attrs {
		b = embed(b, 5, a)
	}
	b = text(b, 7, domain)
	g.nodes = embed(g.nodes, 1, b)
}

// Attr is an encoded attribute.
type Attr []byte

// Int is an integer attribute.
func Int(name string, v int64) Attr {
	return number(number(text(nil, 1, name), 3, uint64(v)), 20, 2)
}

// Ints is an attribute of several integers.
func Ints(name string, v ...int64) Attr {
	b := text(nil, 1, name)
	for _, n := range v {
		b = number(b, 8, uint64(n))
	}
	return number(b, 20, 7)
}

// Subgraph is an attribute that holds a graph.
func Subgraph(name string, g *Graph) Attr {
	return number(embed(text(nil, 1, name), 6, g.graph()), 20, 5)
}

// Floats adds a weight of float32 values, stored as t: Float, Float16 or
// BFloat16.
func (g *Graph) Floats(name string, t onnxfile.Type, values []float32, dims ...int64) {
	var raw []byte
	for _, v := range values {
		switch t {
		case onnxfile.Float16:
			raw = binary.LittleEndian.AppendUint16(raw, float16.Fromfloat32(v).Bits())
		case onnxfile.BFloat16:
			raw = binary.LittleEndian.AppendUint16(raw, uint16(math.Float32bits(v)>>16))
		default:
			raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
		}
	}
	g.tensor(name, t, raw, dims)
}

// Int64s adds a weight of integers.
func (g *Graph) Int64s(name string, values []int64, dims ...int64) {
	var raw []byte
	for _, v := range values {
		raw = binary.LittleEndian.AppendUint64(raw, uint64(v))
	}
	g.tensor(name, onnxfile.Int64, raw, dims)
}

// Bytes adds a weight of int8 or uint8 values.
func (g *Graph) Bytes(name string, t onnxfile.Type, values []byte, dims ...int64) {
	g.tensor(name, t, values, dims)
}

func (g *Graph) tensor(name string, t onnxfile.Type, raw []byte, dims []int64) {
	var b []byte
	for _, d := range dims {
		b = number(b, 1, uint64(d))
	}
	b = number(b, 2, uint64(t))
	b = text(b, 8, name)
	if g.Sidecar == "" || len(raw) < sidecarBytes {
		b = embed(b, 9, raw)
	} else {
		for _, e := range [][2]string{
			{"location", g.Sidecar}, {"offset", strconv.Itoa(len(g.sidecar))}, {"length", strconv.Itoa(len(raw))},
		} {
			b = embed(b, 13, text(text(nil, 1, e[0]), 2, e[1]))
		}
		b = number(b, 14, 1)
		g.sidecar = append(g.sidecar, raw...)
	}
	g.tensors = embed(g.tensors, 5, b)
}

// Metadata adds an entry to the model's metadata.
func (g *Graph) Metadata(key, value string) {
	g.metadata = embed(g.metadata, 14, text(text(nil, 1, key), 2, value))
}

func (g *Graph) graph() []byte {
	var b []byte
	for _, part := range [][]byte{g.nodes, g.tensors, g.inputs, g.outputs} {
		b = append(b, part...)
	}
	return text(b, 2, "test")
}

// Model is the whole file.
func (g *Graph) Model() []byte {
	b := number(nil, 1, irVersion)
	b = text(b, 2, "onnxtest")
	b = embed(b, 7, g.graph())
	b = embed(b, 8, number(text(nil, 1, ""), 2, opset))
	b = embed(b, 8, number(text(nil, 1, "com.microsoft"), 2, 1))
	return append(b, g.metadata...)
}

// SidecarBytes is the content of the file Sidecar.
func (g *Graph) SidecarBytes() []byte { return g.sidecar }

func valueInfo(name string, t onnxfile.Type, dims []int64) []byte {
	var shape []byte
	for _, d := range dims {
		var dim []byte
		if d >= 0 {
			dim = number(nil, 1, uint64(d))
		}
		shape = embed(shape, 1, dim)
	}
	tensor := embed(number(nil, 1, uint64(t)), 2, shape)
	return embed(text(nil, 1, name), 2, embed(nil, 1, tensor))
}

func number(b []byte, num protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, num, protowire.VarintType), v)
}

func text(b []byte, num protowire.Number, s string) []byte { return embed(b, num, []byte(s)) }

func embed(b []byte, num protowire.Number, message []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, num, protowire.BytesType), message)
}
