// Package safetensors reads small weight files in the format of that name: a
// length (u64, little-endian), a JSON header, and the tensors' bytes.
package safetensors

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/go-json-experiment/json"
	"github.com/x448/float16"
)

// lengthBytes is the size of the header's length at the file's start.
const lengthBytes = 8

// Tensor is a weight, converted to float32, row-major.
type Tensor struct {
	Shape  []int64
	Values []float32
}

type entry struct {
	DType   string   `json:"dtype"`
	Shape   []int64  `json:"shape"`
	Offsets [2]int64 `json:"data_offsets"`
}

// Read reads the named tensors of a whole file. A name that the file does not
// have is left out of the answer.
func Read(file []byte, names ...string) (map[string]Tensor, error) {
	if len(file) < lengthBytes {
		return nil, fmt.Errorf("a file of %d bytes is no safetensors file", len(file))
	}
	n := binary.LittleEndian.Uint64(file)
	if n > uint64(len(file)-lengthBytes) {
		return nil, fmt.Errorf("the header has %d bytes, the file %d: it is cut or corrupt", n, len(file))
	}
	data := file[lengthBytes+n:]
	var entries map[string]entry
	if err := json.Unmarshal(file[lengthBytes:lengthBytes+n], &entries); err != nil {
		return nil, fmt.Errorf("the header: %w", err)
	}
	found := map[string]Tensor{}
	for _, name := range names {
		e, ok := entries[name]
		if !ok {
			continue
		}
		t, err := e.tensor(data)
		if err != nil {
			return nil, fmt.Errorf("tensor %s: %w", name, err)
		}
		found[name] = t
	}
	return found, nil
}

func (e entry) tensor(data []byte) (Tensor, error) {
	width, ok := map[string]int64{"F32": 4, "F16": 2, "BF16": 2}[e.DType]
	if !ok {
		return Tensor{}, fmt.Errorf("dtype %.16q is none of F32, F16, BF16", e.DType)
	}
	begin, end := e.Offsets[0], e.Offsets[1]
	if begin < 0 || end < begin || end > int64(len(data)) {
		return Tensor{}, fmt.Errorf("bytes %d to %d lie outside the file", begin, end)
	}
	count := int64(1)
	for _, d := range e.Shape {
		if d < 0 || (d > 0 && count > int64(len(data))/d) {
			return Tensor{}, fmt.Errorf("the shape %v does not fit the file", e.Shape)
		}
		count *= d
	}
	if count*width != end-begin {
		return Tensor{}, fmt.Errorf("the shape %v of %s needs %d bytes, there are %d", e.Shape, e.DType, count*width, end-begin)
	}
	t := Tensor{Shape: e.Shape, Values: make([]float32, count)}
	raw := data[begin:end]
	for i := range t.Values {
		switch e.DType {
		case "F32":
			t.Values[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
		case "F16":
			t.Values[i] = float16.Frombits(binary.LittleEndian.Uint16(raw[2*i:])).Float32()
		case "BF16":
			t.Values[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(raw[2*i:])) << 16)
		}
	}
	return t, nil
}
