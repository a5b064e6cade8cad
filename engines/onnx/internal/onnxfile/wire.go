package onnxfile

import (
	"fmt"
	"io"

	"google.golang.org/protobuf/encoding/protowire"
)

// windowBytes is how much of the file is read at once. Field heads lie close
// together but for the weights, which are stepped over unread.
const windowBytes = 64 << 10

// maxHead is the longest head of a field: a tag and a length, ten bytes each.
const maxHead = 20

// maxText bounds a name or another text that is kept. Exporters write a few
// hundred bytes.
const maxText = 64 << 10

// wire reads protobuf fields out of a file of any size in little memory.
type wire struct {
	src    io.ReaderAt
	window []byte // what was read last
	at     int64  // its place in the file
}

// field is one field of a message. What it holds is value, or for a
// length-delimited one the file's bytes start to end.
type field struct {
	num        protowire.Number
	kind       protowire.Type
	value      uint64
	start, end int64
}

// peek returns up to n bytes at pos, less only at the file's end.
func (w *wire) peek(pos int64, n int) ([]byte, error) {
	if pos < w.at || pos+int64(n) > w.at+int64(len(w.window)) {
		w.window = w.window[:cap(w.window)]
		got, err := w.src.ReadAt(w.window, pos)
		if err != nil && err != io.EOF {
			w.window = w.window[:0]
			return nil, fmt.Errorf("read at byte %d: %w", pos, err)
		}
		w.window, w.at = w.window[:got], pos
	}
	b := w.window[pos-w.at:]
	return b[:min(n, len(b))], nil
}

// each calls visit for every field of the message that lies from start to end.
func (w *wire) each(start, end int64, visit func(field) error) error {
	for pos := start; pos < end; {
		head, err := w.peek(pos, int(min(maxHead, end-pos)))
		if err != nil {
			return err
		}
		f, n := parseHead(head)
		if n < 0 {
			return fmt.Errorf("byte %d is no protobuf field: %w", pos, protowire.ParseError(n))
		}
		pos += int64(n)
		if f.kind == protowire.BytesType {
			if f.value > uint64(end-pos) {
				return fmt.Errorf("the field at byte %d has %d bytes, only %d are there: the file is cut or corrupt", pos, f.value, end-pos)
			}
			f.start, f.end = pos, pos+int64(f.value)
			pos = f.end
		}
		if err := visit(f); err != nil {
			return err
		}
	}
	return nil
}

// parseHead reads a field's tag and its value or length. n is negative where
// there is none; groups, which ONNX does not use, count as none.
func parseHead(b []byte) (f field, n int) {
	f.num, f.kind, n = protowire.ConsumeTag(b)
	if n < 0 {
		return f, n
	}
	var m int
	switch f.kind {
	case protowire.VarintType, protowire.BytesType:
		f.value, m = protowire.ConsumeVarint(b[n:])
	case protowire.Fixed64Type:
		f.value, m = protowire.ConsumeFixed64(b[n:])
	case protowire.Fixed32Type:
		var v uint32
		v, m = protowire.ConsumeFixed32(b[n:])
		f.value = uint64(v)
	default:
		_, _, m = protowire.ConsumeField(nil) // the package's own error for bytes that are no field
	}
	if m < 0 {
		return f, m
	}
	return f, n + m
}

// text reads a length-delimited field that is to be kept.
func (w *wire) text(f field) (string, error) {
	b, err := w.bytes(f, maxText)
	return string(b), err
}

// bytes reads a length-delimited field of at most limit bytes. It is valid until
// the next read.
func (w *wire) bytes(f field, limit int64) ([]byte, error) {
	if f.kind != protowire.BytesType {
		return nil, fmt.Errorf("field %d is a number where text is due", f.num)
	}
	if f.end-f.start > limit {
		return nil, fmt.Errorf("the text at byte %d has %d bytes, over the limit of %d", f.start, f.end-f.start, limit)
	}
	n := int(f.end - f.start)
	if n <= cap(w.window) {
		b, err := w.peek(f.start, n)
		if err == nil && len(b) < n {
			err = io.ErrUnexpectedEOF
		}
		return b, err
	}
	b := make([]byte, n)
	if _, err := w.src.ReadAt(b, f.start); err != nil && err != io.EOF {
		return nil, fmt.Errorf("read at byte %d: %w", f.start, err)
	}
	return b, nil
}

// ints reads a repeated integer field, packed or not, and appends it to v, which
// may hold at most limit numbers.
func (w *wire) ints(f field, v []int64, limit int) ([]int64, error) {
	if f.kind == protowire.VarintType {
		if len(v) >= limit {
			return nil, fmt.Errorf("field %d has more than %d numbers", f.num, limit)
		}
		return append(v, int64(f.value)), nil
	}
	b, err := w.bytes(f, int64(limit)*10)
	if err != nil {
		return nil, err
	}
	for len(b) > 0 {
		n, m := protowire.ConsumeVarint(b)
		if m < 0 || len(v) >= limit {
			return nil, fmt.Errorf("the numbers at byte %d are malformed or more than %d", f.start, limit)
		}
		v, b = append(v, int64(n)), b[m:]
	}
	return v, nil
}
