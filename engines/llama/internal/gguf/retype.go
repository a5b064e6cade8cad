package gguf

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// Retyped is a file whose tensors are partly to be written in other types.
type Retyped struct {
	Tensors []Tensor // as they will be
	Changed int      // how many of them are of another type than in the file

	file *File
}

// Convert turns whole blocks of a tensor from its type in the file into another.
// dst is as long as the result.
type Convert func(dst, src []byte, from, to Type) error

// Retype lays the file out anew with each tensor in the type that to names. The
// header keeps its length: a type and an offset are as long in any.
func (f *File) Retype(to func(Tensor) Type) (*Retyped, error) {
	r := &Retyped{file: f, Tensors: make([]Tensor, len(f.Tensors))}
	at := f.DataOffset
	for i, t := range f.Tensors {
		if kind := to(t); kind != t.Type {
			t.Type = kind
			r.Changed++
		}
		var err error
		if t.Bytes, err = t.bytes(math.MaxInt64 - at - f.align); err != nil {
			return nil, err
		}
		t.Offset = at
		at += pad(t.Bytes, f.align)
		r.Tensors[i] = t
	}
	return r, nil
}

// chunk is how many elements are converted at once: a multiple of every type's
// block, and little enough to stay in a cache.
const chunk = 1 << 14

// Write writes the file as it was laid out. It ends early with ctx.
func (r *Retyped) Write(ctx context.Context, w io.Writer, convert Convert) error {
	if err := r.header(w); err != nil {
		return err
	}
	padding := make([]byte, r.file.align)
	for i, t := range r.Tensors {
		from := r.file.Tensors[i]
		var err error
		if from.Type == t.Type {
			err = r.copy(w, from.Offset, from.Bytes)
		} else {
			err = r.convert(ctx, w, from, t, convert)
		}
		if err != nil {
			return err
		}
		if _, err := w.Write(padding[:pad(t.Bytes, r.file.align)-t.Bytes]); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// header copies the header with the tensors' new types and places in it.
func (r *Retyped) header(w io.Writer) error {
	at := int64(0)
	for _, t := range r.Tensors {
		if err := r.copy(w, at, t.typeAt-at); err != nil {
			return err
		}
		place := binary.LittleEndian.AppendUint32(nil, uint32(t.Type))
		place = binary.LittleEndian.AppendUint64(place, uint64(t.Offset-r.file.DataOffset))
		if _, err := w.Write(place); err != nil {
			return err
		}
		at = t.typeAt + int64(len(place))
	}
	return r.copy(w, at, r.file.DataOffset-at)
}

func (r *Retyped) copy(w io.Writer, at, n int64) error {
	_, err := io.Copy(w, &exactReader{io.NewSectionReader(r.file.r, at, n), n})
	return err
}

// exactReader makes an error of an end that comes early.
type exactReader struct {
	r    io.Reader
	left int64
}

func (e *exactReader) Read(p []byte) (int, error) {
	n, err := e.r.Read(p)
	e.left -= int64(n)
	if errors.Is(err, io.EOF) && e.left > 0 {
		err = fmt.Errorf("read the file: %w: it was cut while it was read", io.ErrUnexpectedEOF)
	}
	return n, err
}

func (r *Retyped) convert(ctx context.Context, w io.Writer, from, to Tensor, convert Convert) error {
	fromBlock, fromSize := from.Type.Block()
	toBlock, toSize := to.Type.Block()
	src, dst := make([]byte, chunk/fromBlock*fromSize), make([]byte, chunk/toBlock*toSize)
	for done := int64(0); done < from.Bytes; {
		n := min(int64(len(src)), from.Bytes-done)
		if _, err := io.ReadFull(&exactReader{io.NewSectionReader(r.file.r, from.Offset+done, n), n}, src[:n]); err != nil {
			return fmt.Errorf("read tensor %s: %w", from.Name, err)
		}
		out := dst[:n/fromSize*fromBlock/toBlock*toSize]
		if err := convert(out, src[:n], from.Type, to.Type); err != nil {
			return fmt.Errorf("tensor %s: %w", from.Name, err)
		}
		if _, err := w.Write(out); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		done += n
	}
	return nil
}
