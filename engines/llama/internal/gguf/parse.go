package gguf

import (
	"fmt"
	"io"
)

const (
	magic = "GGUF"

	// The versions whose counts are 64 bits wide. Version 1 was in use for weeks
	// in 2023 and llama.cpp reads it no more.
	minVersion = 2
	maxVersion = 3
)

// Parse reads and checks the header of a GGUF file of size bytes.
func Parse(r io.ReaderAt, size int64) (*File, error) {
	d := newDecoder(r, 0, size)
	nTensors, nPairs, err := preamble(d)
	if err != nil {
		return nil, err
	}
	f := &File{Size: size, r: r, values: map[string]value{}, byName: map[string]int{}}
	for range nPairs {
		key, err := d.name("a key", maxKey)
		if err != nil {
			return nil, err
		}
		if _, twice := f.values[key]; twice {
			return nil, fmt.Errorf("the key %s stands there twice", key)
		}
		if f.values[key], err = d.value(key); err != nil {
			return nil, err
		}
	}
	align, err := f.Int("general.alignment", defaultAlign)
	if err != nil {
		return nil, err
	}
	if align < 1 || align > maxAlign || align&(align-1) != 0 {
		return nil, fmt.Errorf("general.alignment is %d, a power of two up to %d is due", align, maxAlign)
	}
	for range nTensors {
		if err := f.tensor(d); err != nil {
			return nil, err
		}
	}
	f.align = align
	return f, f.place(pad(d.at, align))
}

func preamble(d *decoder) (nTensors, nPairs uint64, err error) {
	b, err := d.raw("the magic number", 4)
	if err != nil {
		return 0, 0, err
	}
	if string(b) != magic {
		return 0, 0, fmt.Errorf("the file begins with %q, not with %q: it is no GGUF file", b, magic)
	}
	version, err := d.u32("the version")
	if err != nil {
		return 0, 0, err
	}
	if version < minVersion || version > maxVersion {
		if version&0xffff == 0 {
			return 0, 0, fmt.Errorf("the file is of a big-endian machine: convert it for little-endian ones")
		}
		return 0, 0, fmt.Errorf("the file is GGUF version %d, versions %d and %d are taken", version, minVersion, maxVersion)
	}
	if nTensors, err = d.u64("the number of tensors"); err != nil {
		return 0, 0, err
	}
	if nPairs, err = d.u64("the number of metadata pairs"); err != nil {
		return 0, 0, err
	}
	if nTensors == 0 || nTensors > maxTensors {
		return 0, 0, fmt.Errorf("the file has %d tensors, 1 to %d are taken", nTensors, maxTensors)
	}
	if nPairs > maxPairs {
		return 0, 0, fmt.Errorf("the file has %d metadata pairs, at most %d are taken", nPairs, maxPairs)
	}
	return nTensors, nPairs, nil
}

// tensor reads one tensor's name, shape, type and offset. The offset is still
// relative; place makes it absolute.
func (f *File) tensor(d *decoder) error {
	name, err := d.name("a tensor's name", maxName)
	if err != nil {
		return err
	}
	if _, twice := f.byName[name]; twice {
		return fmt.Errorf("the tensor %s stands there twice", name)
	}
	n, err := d.u32(name)
	if err != nil {
		return err
	}
	if n < 1 || n > maxDims {
		return fmt.Errorf("tensor %s has %d dimensions, 1 to %d are taken", name, n, maxDims)
	}
	t := Tensor{Name: name, Dims: make([]int64, n)}
	for i := range t.Dims {
		v, err := d.u64(name)
		if err != nil {
			return err
		}
		if v < 1 || v > maxDim {
			return fmt.Errorf("tensor %s has a dimension of %d, 1 to %d are taken", name, v, int64(maxDim))
		}
		t.Dims[i] = int64(v)
	}
	t.typeAt = d.at
	kind, err := d.u32(name)
	if err != nil {
		return err
	}
	t.Type = Type(kind)
	offset, err := d.u64(name)
	if err != nil {
		return err
	}
	if offset > uint64(f.Size) {
		return fmt.Errorf("tensor %s begins %d bytes into the data of a file of %d", name, offset, f.Size)
	}
	t.Offset = int64(offset)
	if t.Bytes, err = t.bytes(f.Size); err != nil {
		return err
	}
	f.byName[name] = len(f.Tensors)
	f.Tensors = append(f.Tensors, t)
	return nil
}

// bytes is the length of the tensor's data, at most limit.
func (t Tensor) bytes(limit int64) (int64, error) {
	l, ok := layouts[t.Type]
	if !ok {
		return 0, fmt.Errorf("tensor %s is of %s, in which weights are not stored", t.Name, t.Type)
	}
	if t.Dims[0]%l.block != 0 {
		return 0, fmt.Errorf("tensor %s has rows of %d elements, %s comes in blocks of %d", t.Name, t.Dims[0], t.Type, l.block)
	}
	n := t.Dims[0] / l.block * l.size
	for _, dim := range t.Dims[1:] {
		if n > limit/dim {
			return 0, fmt.Errorf("tensor %s, %v of %s, is larger than the file's %d bytes", t.Name, t.Dims, t.Type, limit)
		}
		n *= dim
	}
	if n > limit {
		return 0, fmt.Errorf("tensor %s, %v of %s, is larger than the file's %d bytes", t.Name, t.Dims, t.Type, limit)
	}
	return n, nil
}

// place checks that the tensors stand one after another behind the header, each
// at the next multiple of the alignment, and end inside the file.
func (f *File) place(start int64) error {
	f.DataOffset = start
	due := int64(0)
	for i := range f.Tensors {
		t := &f.Tensors[i]
		if t.Offset != due {
			return fmt.Errorf("tensor %s begins at %d in the data, the one before it makes %d due", t.Name, t.Offset, due)
		}
		t.Offset += start
		if t.Bytes > f.Size-t.Offset {
			return fmt.Errorf("tensor %s ends at byte %d, the file at %d: it was cut off", t.Name, t.Offset+t.Bytes, f.Size)
		}
		due = pad(due+t.Bytes, f.align)
	}
	return nil
}

func pad(n, align int64) int64 { return (n + align - 1) &^ (align - 1) }
