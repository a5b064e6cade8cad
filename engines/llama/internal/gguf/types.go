package gguf

import "fmt"

// Type is the type of a tensor's elements, enum ggml_type.
type Type uint32

// The types that the engine looks at; [Type.String] knows all.
const (
	F32  Type = 0
	F16  Type = 1
	I32  Type = 26
	BF16 Type = 30
)

// layout is how a type packs its elements: block elements in size bytes.
type layout struct {
	name        string
	block, size int64
}

// layouts are the types that weights are stored in. Types that exist for
// intermediate results only (Q8_1, Q8_K, 8, 16 and 64 bit integers, F64) are not
// in it: no operator of a model's graph takes weights in them, and llama.cpp
// finds out by an abort.
var layouts = map[Type]layout{
	0: {"F32", 1, 4}, 1: {"F16", 1, 2}, 30: {"BF16", 1, 2}, 26: {"I32", 1, 4},
	2: {"Q4_0", 32, 18}, 3: {"Q4_1", 32, 20}, 6: {"Q5_0", 32, 22}, 7: {"Q5_1", 32, 24}, 8: {"Q8_0", 32, 34},
	10: {"Q2_K", 256, 84}, 11: {"Q3_K", 256, 110}, 12: {"Q4_K", 256, 144}, 13: {"Q5_K", 256, 176}, 14: {"Q6_K", 256, 210},
	16: {"IQ2_XXS", 256, 66}, 17: {"IQ2_XS", 256, 74}, 18: {"IQ3_XXS", 256, 98}, 19: {"IQ1_S", 256, 50},
	20: {"IQ4_NL", 32, 18}, 21: {"IQ3_S", 256, 110}, 22: {"IQ2_S", 256, 82}, 23: {"IQ4_XS", 256, 136}, 29: {"IQ1_M", 256, 56},
	34: {"TQ1_0", 256, 54}, 35: {"TQ2_0", 256, 66}, 39: {"MXFP4", 32, 17},
	40: {"NVFP4", 64, 36}, 41: {"Q1_0", 128, 18}, 42: {"Q2_0", 64, 18},
}

func (t Type) String() string {
	if l, ok := layouts[t]; ok {
		return l.name
	}
	return fmt.Sprintf("type %d", uint32(t))
}

// Block is how many elements of the type stand in how many bytes.
func (t Type) Block() (elements, bytes int64) { return layouts[t].block, layouts[t].size }

// Quantized says whether the type holds blocks of elements that share a scale.
func (t Type) Quantized() bool { return layouts[t].block > 1 }

// Kind is the type of a metadata value.
type Kind uint32

// The kinds of the format.
const (
	Uint8 Kind = iota
	Int8
	Uint16
	Int16
	Uint32
	Int32
	Float32
	Bool
	String
	Array
	Uint64
	Int64
	Float64
)

var kindNames = [...]string{"uint8", "int8", "uint16", "int16", "uint32", "int32", "float32", "bool", "string", "array", "uint64", "int64", "float64"}

func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("kind %d", uint32(k))
}

// width is the bytes of a value of the kind; 0 for strings and arrays.
func (k Kind) width() int64 {
	switch k {
	case Uint8, Int8, Bool:
		return 1
	case Uint16, Int16:
		return 2
	case Uint32, Int32, Float32:
		return 4
	case Uint64, Int64, Float64:
		return 8
	default:
		return 0
	}
}
