package onnxfile

import (
	"encoding/binary"
	"fmt"
	"io"
	"strconv"
)

// Tensor is a weight or a constant. Ints holds its content where that is
// integers and not many.
type Tensor struct {
	Type     Type
	Dims     []int64
	Ints     []int64
	External *External // where the content lies, if not in the file itself
}

// External says where a tensor's content lies.
type External struct {
	Location       string // a file's path from the model's folder
	Offset, Length int64  // Length is 0 for all that follows
}

// set takes one entry of external_data.
func (x *External) set(key, value string) (err error) {
	switch key {
	case "location":
		x.Location = value
	case "offset":
		x.Offset, err = strconv.ParseInt(value, 10, 64)
	case "length":
		x.Length, err = strconv.ParseInt(value, 10, 64)
	}
	if err != nil || x.Offset < 0 || x.Length < 0 {
		return fmt.Errorf("external data with the %s %.32q", key, value)
	}
	return nil
}

// countable says that the content is integers of which all may be kept.
func (t *Tensor) countable() bool {
	n := int64(1)
	for _, d := range t.Dims {
		if d < 0 || d > maxContent {
			return false
		}
		if n *= d; n > maxContent {
			return false
		}
	}
	return t.Type == Int32 || t.Type == Int64
}

// decode reads the content, stored as raw bytes, little-endian.
func (t *Tensor) decode(b []byte) {
	width := 8
	if t.Type == Int32 {
		width = 4
	}
	for ; len(b) >= width; b = b[width:] {
		if width == 4 {
			t.Ints = append(t.Ints, int64(int32(binary.LittleEndian.Uint32(b))))
		} else {
			t.Ints = append(t.Ints, int64(binary.LittleEndian.Uint64(b)))
		}
	}
}

// ReadExternal reads the integers of small tensors that lie outside: the numbers
// of positions may be among them. open gives a file of [Model.ExternalNames].
func (m *Model) ReadExternal(open func(location string) (io.ReaderAt, error)) error {
	for name, t := range m.Tensors {
		if t.External == nil || !t.countable() || t.Ints != nil || t.External.Length > maxContent*8 {
			continue
		}
		file, err := open(t.External.Location)
		if err != nil {
			return err
		}
		b := make([]byte, t.External.Length)
		if _, err := file.ReadAt(b, t.External.Offset); err != nil {
			return fmt.Errorf("the weights of %.64q in %.128q: %w", name, t.External.Location, err)
		}
		t.decode(b)
		m.Tensors[name] = t
	}
	return nil
}
