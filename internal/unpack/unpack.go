// Package unpack writes the file in a zstd stream, or the directory in a tar
// archive in one, to the disk. What it reads may be anybody's: it takes no memory
// and no disk that the input does not pay for, writes nowhere but where it is told
// to, and refuses what systems would unpack in different ways.
//
// A [*WriteError] is the disk's fault, any other error the input's.
package unpack

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/klauspost/compress/zstd"

	"github.com/synapse-module/workers/internal/diskcache"
	"github.com/synapse-module/workers/protocol"
)

// Modes of what is unpacked: nobody else may read weights or swap them.
const (
	privateDir  fs.FileMode = 0o700
	privateFile fs.FileMode = 0o600
)

// WriteError says that what was unpacked could not be written.
type WriteError struct{ Err error }

func (e *WriteError) Error() string { return "what is unpacked cannot be written: " + e.Err.Error() }

func (e *WriteError) Unwrap() error { return e.Err }

// File writes what the zstd stream of size packed bytes in src holds to a new file
// at dst. Its digest is of the bytes as they were decompressed.
func File(dst string, src io.Reader, packed int64) (diskcache.Content, error) {
	r, err := decompress(src, packed)
	if err != nil {
		return diskcache.Content{}, err
	}
	defer r.Close()
	w, err := os.OpenFile(dst, os.O_WRONLY|os.O_CREATE|os.O_EXCL, privateFile)
	if err != nil {
		return diskcache.Content{}, &WriteError{err}
	}
	return store(w, r)
}

// store writes r to its end into w, and closes w.
func store(w *os.File, r io.Reader) (c diskcache.Content, err error) {
	defer func() {
		if closing := w.Close(); closing != nil && err == nil {
			c, err = diskcache.Content{}, &WriteError{closing}
		}
	}()
	h := sha256.New()
	if c.Bytes, err = io.Copy(io.MultiWriter(h, writer{w}), r); err != nil {
		return diskcache.Content{}, err
	}
	c.Digest, err = protocol.ParseDigest("sha256:" + hex.EncodeToString(h.Sum(nil)))
	return c, err
}

// writer marks the errors of writing as such.
type writer struct{ w io.Writer }

func (w writer) Write(p []byte) (int, error) {
	n, err := w.w.Write(p)
	if err != nil {
		err = &WriteError{err}
	}
	return n, err
}

// HeadBytes of a zstd stream tell its [Window].
const HeadBytes = zstd.HeaderMaxSize

// Window is the memory, in bytes, that unpacking the stream takes which begins with
// head, as far as its first frame tells: at most 128 MiB, 0 where head is no zstd.
func Window(head []byte) uint64 {
	var h zstd.Header
	if err := h.Decode(head); err != nil {
		return 0
	}
	if h.SingleSegment {
		return min(h.FrameContentSize, maxWindow)
	}
	return min(h.WindowSize, maxWindow)
}

// stream is what a zstd stream decompresses to, within its bounds.
type stream struct {
	d     *zstd.Decoder
	left  int64
	limit int64
}

func decompress(src io.Reader, packed int64) (*stream, error) {
	limit := min(max(maxRatio*packed, freeBytes), maxBytes)
	d, err := zstd.NewReader(src, zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderMaxMemory(maxBytes), zstd.WithDecoderLowmem(true), zstd.WithDecoderConcurrency(0))
	if err != nil {
		return nil, fmt.Errorf("zstd: %w", err)
	}
	return &stream{d, limit, limit}, nil
}

func (s *stream) Close() { s.d.Close() }

func (s *stream) Read(p []byte) (int, error) {
	if int64(len(p)) > s.left+1 { // one more tells a stream that ends there from one that does not
		p = p[:s.left+1]
	}
	n, err := s.d.Read(p)
	if int64(n) > s.left {
		return 0, fmt.Errorf("it unpacks to more than %d MiB, which is over %d times its size or over %d GiB: no model does", s.limit>>20, maxRatio, int64(maxBytes)>>30)
	}
	s.left -= int64(n)
	switch {
	case err == nil || errors.Is(err, io.EOF):
		return n, err
	case errors.Is(err, zstd.ErrWindowSizeExceeded):
		return n, fmt.Errorf("zstd: it was compressed with a window of over %d MiB: compress it with --long=27 at most", maxWindow>>20)
	}
	return n, fmt.Errorf("zstd: %w", err)
}
