package gguf

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

var le = binary.LittleEndian

// readAhead is the buffer of a decoder: a header is a few MiB of short reads.
const readAhead = 64 << 10

// decoder reads the header from front to back and knows where it is, so that no
// length is believed that the rest of the file could not hold.
type decoder struct {
	r    *bufio.Reader
	at   int64
	size int64
	buf  [8]byte
}

func newDecoder(r io.ReaderAt, at, size int64) *decoder {
	return &decoder{r: bufio.NewReaderSize(io.NewSectionReader(r, at, size-at), readAhead), at: at, size: size}
}

func (d *decoder) rest() int64 { return d.size - d.at }

// raw reads n bytes, 8 at most.
func (d *decoder) raw(what string, n int64) ([]byte, error) {
	if n > d.rest() {
		return nil, fmt.Errorf("the file ends at byte %d, inside %s", d.size, what)
	}
	b := d.buf[:n]
	if _, err := io.ReadFull(d.r, b); err != nil {
		return nil, d.broken(what, err)
	}
	d.at += n
	return b, nil
}

func (d *decoder) skip(what string, n int64) error {
	if n > d.rest() {
		return fmt.Errorf("the file ends at byte %d, inside %s", d.size, what)
	}
	for left := n; left > 0; {
		step := min(left, 1<<30)
		if _, err := d.r.Discard(int(step)); err != nil {
			return d.broken(what, err)
		}
		left -= step
	}
	d.at += n
	return nil
}

func (d *decoder) broken(what string, err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("the file became shorter while it was read, inside %s", what)
	}
	return fmt.Errorf("read %s: %w", what, err)
}

func (d *decoder) u32(what string) (uint32, error) {
	b, err := d.raw(what, 4)
	if err != nil {
		return 0, err
	}
	return le.Uint32(b), nil
}

func (d *decoder) u64(what string) (uint64, error) {
	b, err := d.raw(what, 8)
	if err != nil {
		return 0, err
	}
	return le.Uint64(b), nil
}

// length reads a string's length and holds it to limit and to the file.
func (d *decoder) length(what string, limit int64) (int64, error) {
	n, err := d.u64(what)
	if err != nil {
		return 0, err
	}
	if n > uint64(limit) {
		return 0, fmt.Errorf("%s is %d bytes long, at most %d are taken", what, n, limit)
	}
	if int64(n) > d.rest() {
		return 0, fmt.Errorf("%s is %d bytes long, but only %d follow in the file", what, n, d.rest())
	}
	return int64(n), nil
}

func (d *decoder) text(what string, limit int64) (string, error) {
	n, err := d.length(what, limit)
	if err != nil {
		return "", err
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(d.r, b); err != nil {
		return "", d.broken(what, err)
	}
	d.at += n
	return string(b), nil
}

// name reads a key or a tensor's name.
func (d *decoder) name(what string, limit int64) (string, error) {
	s, err := d.text(what, limit)
	if err != nil {
		return "", err
	}
	if s == "" || !utf8.ValidString(s) {
		return "", fmt.Errorf("%s %q is empty or no UTF-8", what, s)
	}
	for i := range len(s) {
		if s[i] < ' ' {
			return "", fmt.Errorf("%s %q holds a control character", what, s)
		}
	}
	return s, nil
}

// value reads a metadata value. An array of arrays is refused, as llama.cpp
// does: walking one is a recursion that the file decides the depth of.
func (d *decoder) value(key string) (value, error) {
	k, err := d.u32(key)
	if err != nil {
		return value{}, err
	}
	v := value{kind: Kind(k)}
	switch {
	case v.kind == String:
		v.text, err = d.text(key, maxString)
		return v, err
	case v.kind == Array:
		return d.array(key)
	case v.kind.width() == 0:
		return v, fmt.Errorf("%s is of the unknown kind %d", key, k)
	}
	b, err := d.raw(key, v.kind.width())
	if err != nil {
		return v, err
	}
	v.bits = scalarBits(v.kind, b)
	if v.kind == Bool && v.bits > 1 {
		return v, fmt.Errorf("%s is a bool of value %d", key, v.bits)
	}
	return v, nil
}

func (d *decoder) array(key string) (value, error) {
	k, err := d.u32(key)
	if err != nil {
		return value{}, err
	}
	n, err := d.u64(key)
	if err != nil {
		return value{}, err
	}
	v := value{kind: Array, element: Kind(k), count: int64(n), offset: d.at}
	switch width := v.element.width(); {
	case n > maxElements:
		return v, fmt.Errorf("%s has %d elements, at most %d are taken", key, n, maxElements)
	case v.element == String:
		for range n {
			size, err := d.length(key, maxElement)
			if err != nil {
				return v, err
			}
			if err := d.skip(key, size); err != nil {
				return v, err
			}
		}
		return v, nil
	case width == 0:
		return v, fmt.Errorf("%s is an array of %s, which is not taken", key, v.element)
	default:
		return v, d.skip(key, width*v.count)
	}
}

// scalarBits is a number's bits, sign-extended to 64.
func scalarBits(k Kind, b []byte) uint64 {
	switch k {
	case Uint8, Bool:
		return uint64(b[0])
	case Int8:
		return uint64(int64(int8(b[0])))
	case Uint16:
		return uint64(le.Uint16(b))
	case Int16:
		return uint64(int64(int16(le.Uint16(b))))
	case Uint32, Float32:
		return uint64(le.Uint32(b))
	case Int32:
		return uint64(int64(int32(le.Uint32(b))))
	default:
		return le.Uint64(b)
	}
}
