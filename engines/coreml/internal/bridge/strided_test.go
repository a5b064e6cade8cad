package bridge

import (
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"testing"
)

func bytesOf[T any](values ...T) []byte {
	b, err := binary.Append(nil, binary.LittleEndian, values)
	if err != nil {
		panic(err)
	}
	return b
}

func TestGather(t *testing.T) {
	nan := math.Float32frombits(0x7fc00000)
	padded := bytesOf[float32](1, 2, 3, nan, nan, 4, 5, 6, nan, nan)
	for name, c := range map[string]struct {
		bytes          []byte
		t              DataType
		shape, strides []int
		want           []float32
	}{
		"contiguous":       {bytesOf[float32](1, 2, 3, 4), Float32, []int{2, 2}, []int{2, 1}, []float32{1, 2, 3, 4}},
		"padded rows":      {padded, Float32, []int{2, 3}, []int{5, 1}, []float32{1, 2, 3, 4, 5, 6}},
		"padded elements":  {bytesOf[float32](1, nan, 2, nan, 3), Float32, []int{1, 3}, []int{99, 2}, []float32{1, 2, 3}},
		"transposed":       {bytesOf[float32](1, 2, 3, 4, 5, 6), Float32, []int{3, 2}, []int{1, 3}, []float32{1, 4, 2, 5, 3, 6}},
		"one value":        {bytesOf[float32](7), Float32, []int{}, []int{}, []float32{7}},
		"three dimensions": {bytesOf[float32](0, 1, 2, 3, 4, 5, 6, 7), Float32, []int{2, 2, 2}, []int{4, 2, 1}, []float32{0, 1, 2, 3, 4, 5, 6, 7}},
		"repeated":         {bytesOf[float32](1, 2), Float32, []int{2, 2}, []int{0, 1}, []float32{1, 2, 1, 2}},
		"float64":          {bytesOf[float64](0.5, -3), Float64, []int{2}, []int{1}, []float32{0.5, -3}},
		"float16":          {bytesOf[uint16](0x3c00, 0xc000, 0x3555, 0x0001, 0x8000, 0x7bff), Float16, []int{6}, []int{1}, []float32{1, -2, 0.333251953125, 5.9604644775390625e-8, float32(math.Copysign(0, -1)), 65504}},
		"float16 infinite": {bytesOf[uint16](0x7c00, 0xfc00), Float16, []int{2}, []int{1}, []float32{float32(math.Inf(1)), float32(math.Inf(-1))}},
	} {
		got, err := gather(nil, c.bytes, c.t, c.shape, c.strides)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, %v; want %v", name, got, err, c.want)
		}
	}
	if got, err := gather(nil, bytesOf[uint16](0x7e00), Float16, []int{1}, []int{1}); err != nil || got[0] == got[0] {
		t.Errorf("NaN in float16 became %v, %v", got, err)
	}
}

func TestGatherStaysWithinItsMemory(t *testing.T) {
	four := bytesOf[float32](1, 2, 3, 4)
	for name, c := range map[string]struct{ shape, strides []int }{
		"a row too many":      {[]int{3, 2}, []int{2, 1}},
		"a stride too wide":   {[]int{2, 2}, []int{3, 1}},
		"a negative stride":   {[]int{2}, []int{-1}},
		"no elements":         {[]int{0}, []int{1}},
		"a negative size":     {[]int{-1}, []int{1}},
		"overflow by a size":  {[]int{math.MaxInt, 2}, []int{1, 1}},
		"overflow by stride":  {[]int{2, 2}, []int{math.MaxInt, 1}},
		"overflow by product": {[]int{4, 4}, []int{math.MaxInt / 2, 1}},
		"too few strides":     {[]int{2, 2}, []int{1}},
		"a bomb of repeats":   {[]int{4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4}, make([]int, 16)},
	} {
		if got, err := gather(nil, four, Float32, c.shape, c.strides); err == nil || len(got) != 0 {
			t.Errorf("%s: got %v", name, got)
		}
	}
	if _, err := gather(nil, nil, Float32, nil, nil); err == nil {
		t.Error("a value was read from no memory")
	}
	if _, err := gather(nil, four, Int32, []int{1}, []int{1}); err == nil || !strings.Contains(err.Error(), "int32") {
		t.Errorf("int32: %v", err)
	}
	if _, err := gather(nil, four, DataType(0x20008), []int{1}, []int{1}); err == nil || !strings.Contains(err.Error(), "0x20008") {
		t.Errorf("an unknown type: %v", err)
	}
}

func TestScatter(t *testing.T) {
	memory := bytesOf[int32](-1, -1, -1, -1, -1, -1)
	if err := scatter(memory, []int{2, 2}, []int{3, 1}, []int32{1, 2, 3, 4}); err != nil {
		t.Fatal(err)
	}
	if want := bytesOf[int32](1, 2, -1, 3, 4, -1); !slices.Equal(memory, want) {
		t.Fatalf("got %v", memory)
	}
	if err := scatter(memory, []int{2, 2}, []int{5, 1}, []int32{1, 2, 3, 4}); err == nil {
		t.Fatal("wrote outside of the memory")
	}
}
