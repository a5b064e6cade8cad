package protocol

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"net"
)

// lengthBytes is the size of a frame's length prefix.
const lengthBytes = 4

// FrameReader reads frames from a stream. It is not safe for concurrent use.
type FrameReader struct {
	r     *bufio.Reader
	limit uint32
	head  [lengthBytes]byte // the length being read: a local one would be an allocation a frame
}

// NewFrameReader reads frames of at most limit bytes from r.
func NewFrameReader(r io.Reader, limit uint32) *FrameReader {
	return &FrameReader{r: bufio.NewReaderSize(r, readBuffer), limit: limit}
}

// SetLimit changes the largest frame accepted, as HELLO_ACK does.
func (f *FrameReader) SetLimit(limit uint32) { f.limit = limit }

// ReadControl reads a frame that must hold a control message, using buf's memory
// where it suffices. io.EOF means that the peer ended the stream between two
// frames; every other error ends the stream as well, and is a [ViolationError]
// where the peer is at fault.
func (f *FrameReader) ReadControl(buf []byte) ([]byte, error) {
	n, err := f.length()
	if err != nil {
		return buf, err
	}
	if n == 0 {
		return buf, Violation("a control frame of length 0")
	}
	return f.payload(buf, n)
}

// ReadRaw reads the raw frame that is due after a control frame, using buf's
// memory where it suffices. A length of 0 is legal. The end of the stream here
// is a [ViolationError]: the control frame promised more.
func (f *FrameReader) ReadRaw(buf []byte) ([]byte, error) {
	n, err := f.length()
	if err != nil {
		return buf, midMessage(err)
	}
	return f.payload(buf, n)
}

// ReadRawExact is ReadRaw for a frame whose length the header has fixed: any
// other length is a [ViolationError], seen before a byte of it is read.
func (f *FrameReader) ReadRawExact(buf []byte, want uint64) ([]byte, error) {
	n, err := f.length()
	if err != nil {
		return buf, midMessage(err)
	}
	if uint64(n) != want {
		return buf, Violation("a raw frame of %d bytes where its header fixes %d", n, want)
	}
	return f.payload(buf, n)
}

// DiscardRaw reads a raw frame and drops it without holding it in memory.
func (f *FrameReader) DiscardRaw() error {
	n, err := f.length()
	if err != nil {
		return midMessage(err)
	}
	if _, err := io.CopyN(io.Discard, f.r, int64(n)); err != nil {
		return cut("a frame's payload", err)
	}
	return nil
}

// length reads a frame's length and holds it to the limit.
func (f *FrameReader) length() (uint32, error) {
	if _, err := io.ReadFull(f.r, f.head[:]); err != nil {
		if errors.Is(err, io.EOF) {
			return 0, io.EOF
		}
		return 0, cut("a frame's length", err)
	}
	n := binary.LittleEndian.Uint32(f.head[:])
	if n > f.limit {
		return 0, &ViolationError{Reason: "oversized frame", Err: &OversizeError{Length: uint64(n), Limit: f.limit}}
	}
	return n, nil
}

// payload reads n bytes into buf's memory, growing it with the bytes that have
// in fact arrived.
func (f *FrameReader) payload(buf []byte, n uint32) ([]byte, error) {
	size, got := int(n), 0
	buf = buf[:cap(buf)]
	for got < size {
		if got == len(buf) {
			grown := make([]byte, min(size, max(growStep, 2*got)))
			copy(grown, buf[:got])
			buf = grown
		}
		m, err := io.ReadFull(f.r, buf[got:min(size, len(buf))])
		got += m
		if err != nil {
			return buf[:0], cut("a frame's payload", err)
		}
	}
	return buf[:size], nil
}

// midMessage turns an end of stream into the violation that it is between a
// control frame and its raw frame.
func midMessage(err error) error {
	if errors.Is(err, io.EOF) {
		return cut("the raw frame that is due", io.ErrUnexpectedEOF)
	}
	return err
}

// cut says what was being read when the stream broke. A peer that closed in the
// middle of a frame broke the protocol; a failing socket is nobody's violation.
func cut(what string, err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return &ViolationError{Reason: "the stream ended inside " + what, Err: io.ErrUnexpectedEOF}
	}
	return &net.OpError{Op: "read " + what, Net: "synapse", Err: err}
}

// BuffersWriter is a stream that takes a message's pieces in one call, as
// [net.Buffers.WriteTo] does for a socket. A wrapper of a connection implements
// it to keep vectored writes.
type BuffersWriter interface {
	WriteBuffers(*net.Buffers) (int64, error)
}

// FrameWriter writes messages to a stream, each with its raw frame in one
// vectored write where the stream has such. It is not safe for concurrent use.
type FrameWriter struct {
	vector func(*net.Buffers) (int64, error) // nil where the stream has none
	gather *bufio.Writer                     // nil where it has
	limit  uint32
	head   []byte
	parts  net.Buffers
}

// NewFrameWriter writes frames of at most limit bytes to w.
func NewFrameWriter(w io.Writer, limit uint32) *FrameWriter {
	f := &FrameWriter{limit: limit}
	switch v := w.(type) {
	case *net.UnixConn, *net.TCPConn:
		f.vector = func(b *net.Buffers) (int64, error) { return b.WriteTo(w) }
	case BuffersWriter:
		f.vector = v.WriteBuffers
	default:
		f.gather = bufio.NewWriterSize(w, growStep)
	}
	return f
}

// SetLimit changes the largest frame that is sent, as HELLO_ACK does.
func (f *FrameWriter) SetLimit(limit uint32) { f.limit = limit }

// Write sends a message that no raw frame follows. An [OversizeError] and an
// [EncodeError] mean that nothing was sent; any other error ends the stream.
func (f *FrameWriter) Write(m Message) error {
	return f.send(m, nil, false)
}

// WriteRaw sends a message and, in the same write, one raw frame whose payload
// is parts in order. The parts are handed to the kernel as they are, so they
// must not change until WriteRaw returns. Its errors are those of Write.
func (f *FrameWriter) WriteRaw(m Message, parts ...[]byte) error {
	return f.send(m, parts, true)
}

func (f *FrameWriter) send(m Message, raw [][]byte, hasRaw bool) error {
	head := f.head[:0]
	head, err := appendMessage(append(head, 0, 0, 0, 0), m)
	if err != nil {
		return err
	}
	control := uint64(len(head) - lengthBytes)
	if control > uint64(f.limit) {
		return &OversizeError{Length: control, Limit: f.limit}
	}
	binary.LittleEndian.PutUint32(head, uint32(control))
	if hasRaw {
		var size uint64
		for _, p := range raw {
			size += uint64(len(p))
		}
		if size > uint64(f.limit) {
			return &OversizeError{Length: size, Limit: f.limit}
		}
		head = binary.LittleEndian.AppendUint32(head, uint32(size))
	}
	if cap(head) <= MaxRetainedBuffer {
		f.head = head
	}
	if f.vector == nil {
		return f.sequential(head, raw)
	}
	f.parts = append(append(f.parts[:0], head), raw...)
	pending := f.parts // WriteTo consumes the slice that it is called on
	_, err = f.vector(&pending)
	clear(f.parts) // a lent tensor must not be kept alive by the writer
	return err
}

// sequential serves streams without vectored writes (named pipes): pieces are
// gathered so that a batch of small rows is not a system call a row.
func (f *FrameWriter) sequential(head []byte, raw [][]byte) error {
	if _, err := f.gather.Write(head); err != nil {
		return err
	}
	for _, p := range raw {
		if _, err := f.gather.Write(p); err != nil {
			return err
		}
	}
	return f.gather.Flush()
}
