package protocol

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"net"
	"slices"
	"testing"
	"unsafe"
)

// onBigEndian runs f as it runs where memory has not the wire's byte order.
func onBigEndian(t *testing.T, f func()) {
	t.Helper()
	native := nativeLittle
	nativeLittle = false
	defer func() { nativeLittle = native }()
	f()
}

var (
	someIDs    = []int32{0, 1, -1, math.MaxInt32, math.MinInt32, 0x01020304}
	someFloats = []float32{0, float32(math.Copysign(0, -1)), 1, -1, math.MaxFloat32, math.SmallestNonzeroFloat32, float32(math.Inf(1))}
)

// le is the wire's form of some numbers, made without package unsafe.
func le[T Element](v []T) []byte {
	b := []byte{}
	for _, x := range v {
		switch x := any(x).(type) {
		case int32:
			b = binary.LittleEndian.AppendUint32(b, uint32(x))
		case float32:
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
		}
	}
	return b
}

func roundTrip[T Element](t *testing.T, v []T) {
	t.Helper()
	wire := Bytes(v)
	if !bytes.Equal(wire, le(v)) {
		t.Errorf("%v is %x on the wire, want %x", v, wire, le(v))
	}
	// Every alignment, as a payload in a larger buffer may have.
	for offset := range elemBytes {
		buf := append(make([]byte, offset, offset+len(wire)), wire...)
		got, err := View[T](buf[offset:])
		if err != nil || !slices.Equal(got, v) {
			t.Errorf("at offset %d: %v, %v, want %v", offset, got, err, v)
		}
		if at := uintptr(unsafe.Pointer(unsafe.SliceData(got))); at%elemBytes != 0 {
			t.Errorf("at offset %d: the view is not aligned, which some machines cannot read", offset)
		}
	}
}

func TestTensorsRoundTrip(t *testing.T) {
	roundTrip(t, someIDs)
	roundTrip(t, someFloats)
	onBigEndian(t, func() {
		roundTrip(t, someIDs)
		roundTrip(t, someFloats)
	})
}

// A NaN's payload is bits, not a number to be mended.
func TestNaNKeepsItsBits(t *testing.T) {
	wire := binary.LittleEndian.AppendUint32(nil, 0x7FA00001)
	check := func() {
		v, err := View[float32](wire)
		if err != nil || !bytes.Equal(Bytes(v), wire) {
			t.Errorf("%x came back as %x, %v", wire, Bytes(v), err)
		}
	}
	check()
	onBigEndian(t, check)
}

func TestTensorsAreViews(t *testing.T) {
	if !nativeLittle {
		t.Skip("only a little-endian machine lends its memory; the copies are tested above")
	}
	v := []float32{1, 2}
	b := Bytes(v)
	if unsafe.Pointer(unsafe.SliceData(b)) != unsafe.Pointer(unsafe.SliceData(v)) {
		t.Error("Bytes copied")
	}
	back, err := View[float32](b)
	if err != nil || unsafe.SliceData(back) != unsafe.SliceData(v) || cap(back) != len(v) {
		t.Errorf("View copied, or reaches over its end: cap %d, %v", cap(back), err)
	}
}

func TestCopiesAreCopies(t *testing.T) {
	onBigEndian(t, func() {
		v := []int32{1, 2}
		Bytes(v)[0] = 9
		b := le(v)
		view, err := View[int32](b)
		if err != nil {
			t.Fatal(err)
		}
		view[1] = 9
		if v[0] != 1 || b[4] != 2 {
			t.Error("a converted copy shares memory with what it was made of")
		}
	})
}

func TestOddLengthsAreRefused(t *testing.T) {
	for n := range 9 {
		_, err := View[int32](make([]byte, n))
		var refusal *Error
		if odd := n%elemBytes != 0; errors.As(err, &refusal) != odd || (odd && refusal.Code != CodeRequestInvalid) {
			t.Errorf("%d bytes: error %v", n, err)
		}
	}
}

func TestEmptyTensors(t *testing.T) {
	for _, b := range [][]byte{nil, {}} {
		if v, err := View[float32](b); err != nil || len(v) != 0 {
			t.Errorf("%v, %v", v, err)
		}
	}
	for _, v := range [][]int32{nil, {}} {
		if b := Bytes(v); len(b) != 0 {
			t.Errorf("%v", b)
		}
	}
}

// The writer must not keep a lent tensor alive after the write.

func TestWriterForgetsTheTensors(t *testing.T) {
	out := NewFrameWriter(sink{}, 1<<10)
	if err := out.WriteRaw(Vectors{ReqID: "1"}, []byte("abcd"), []byte("efgh")); err != nil {
		t.Fatal(err)
	}
	for i, p := range out.parts[:cap(out.parts)] {
		if p != nil {
			t.Errorf("piece %d is still held", i)
		}
	}
}

// sink takes vectored writes, drops them and leaves the pieces where they are.
type sink struct{}

func (sink) Write(p []byte) (int, error)              { return len(p), nil }
func (sink) WriteBuffers(*net.Buffers) (int64, error) { return 0, nil }
