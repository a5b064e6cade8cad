package protocol_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"

	"github.com/synapse-module/workers/protocol"
)

// recorder takes vectored writes and keeps what each call was given.
type recorder struct {
	calls [][][]byte
	bytes.Buffer
}

func (r *recorder) WriteBuffers(b *net.Buffers) (int64, error) {
	r.calls = append(r.calls, append([][]byte{}, *b...))
	return b.WriteTo(&r.Buffer)
}

// counter counts plain writes.
type counter struct {
	writes int
	bytes.Buffer
}

func (c *counter) Write(p []byte) (int, error) {
	c.writes++
	return c.Buffer.Write(p)
}

var (
	ping    = protocol.Ping{ReqID: "7"}
	vectors = protocol.Vectors{ReqID: "7", Dims: 2, N: 2}
)

const (
	pingJSON    = `{"type":"PING","req_id":7}`
	vectorsJSON = `{"type":"VECTORS","req_id":7,"dims":2,"n":2}`
)

func TestVectoredWriteIsOneCallAndLendsMemory(t *testing.T) {
	var w recorder
	out := protocol.NewFrameWriter(&w, 1<<10)
	rows := [][]float32{{1, 2}, {3, 4}}
	var parts [][]byte
	for _, row := range rows {
		parts = append(parts, protocol.Bytes(row))
	}
	if err := out.WriteRaw(vectors, parts...); err != nil {
		t.Fatal(err)
	}
	if len(w.calls) != 1 || len(w.calls[0]) != 1+len(rows) {
		t.Fatalf("%d calls, the first with %d pieces", len(w.calls), len(w.calls[0]))
	}
	for i, row := range rows {
		if unsafe.Pointer(unsafe.SliceData(w.calls[0][1+i])) != unsafe.Pointer(unsafe.SliceData(row)) {
			t.Errorf("row %d was copied", i)
		}
	}
	want := append(frame(vectorsJSON), frame("\x00\x00\x80\x3f\x00\x00\x00\x40\x00\x00\x40\x40\x00\x00\x80\x40")...)
	if !bytes.Equal(w.Bytes(), want) {
		t.Errorf("sent %x, want %x", w.Bytes(), want)
	}
	for i := range parts {
		if parts[i] == nil {
			t.Errorf("the caller's slice of parts was emptied")
		}
	}
}

func TestZeroLengthRawFrame(t *testing.T) {
	for name, parts := range map[string][][]byte{"no parts": nil, "an empty part": {{}}} {
		var vectored recorder
		var plain bytes.Buffer
		for _, w := range []io.Writer{&vectored, &plain} {
			if err := protocol.NewFrameWriter(w, 1<<10).WriteRaw(ping, parts...); err != nil {
				t.Fatal(err)
			}
		}
		want := append(frame(pingJSON), 0, 0, 0, 0)
		if !bytes.Equal(vectored.Bytes(), want) || !bytes.Equal(plain.Bytes(), want) {
			t.Errorf("%s: sent %x and %x, want %x", name, vectored.Bytes(), plain.Bytes(), want)
		}
	}
}

// A named pipe has no vectored write: small rows are gathered, large ones are
// not copied through a buffer, and a message costs no new one.
func TestPlainWriterGathers(t *testing.T) {
	var w counter
	out := protocol.NewFrameWriter(&w, 1<<20)
	parts := make([][]byte, 1000)
	for i := range parts {
		parts[i] = []byte("abcd")
	}
	if err := out.WriteRaw(vectors, parts...); err != nil {
		t.Fatal(err)
	}
	if want := append(frame(vectorsJSON), frame(strings.Repeat("abcd", 1000))...); !bytes.Equal(w.Bytes(), want) {
		t.Error("other bytes than the parts were sent")
	}
	if w.writes != 1 {
		t.Errorf("%d writes for one small message", w.writes)
	}
	if got := allocated(func() { _ = out.Write(ping) }); got > 8<<10 {
		t.Errorf("a PING takes %d bytes of memory", got)
	}
}

// More rows than one system call takes (IOV_MAX is 1024), over a real socket.
func TestManyRowsOverASocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dialled, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer dialled.Close()
	accepted, err := l.AcceptUnix()
	if err != nil {
		t.Fatal(err)
	}
	defer accepted.Close()

	const n, dims = 5000, 16
	parts, want := make([][]byte, n), make([]float32, 0, n*dims)
	for i := range parts {
		row := make([]float32, dims)
		for j := range row {
			row[j] = float32(i*dims + j)
		}
		parts[i], want = protocol.Bytes(row), append(want, row...)
	}
	sent := make(chan error, 1)
	go func() {
		out := protocol.NewFrameWriter(dialled, protocol.DefaultMaxFrame)
		err := out.WriteRaw(protocol.Vectors{ReqID: "1", Dims: dims, N: n}, parts...)
		sent <- errors.Join(err, out.Write(ping))
	}()
	in := protocol.NewFrameReader(accepted, protocol.DefaultMaxFrame)
	if _, err := in.ReadControl(nil); err != nil {
		t.Fatal(err)
	}
	raw, err := in.ReadRawExact(nil, 4*n*dims)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(raw, protocol.Bytes(want)) {
		t.Error("the rows arrived as others")
	}
	if got, err := in.ReadControl(nil); err != nil || string(got) != pingJSON {
		t.Errorf("behind the rows: %q, %v", got, err)
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}
}

func TestWhatCannotBeSentLeavesTheStreamInStep(t *testing.T) {
	long := protocol.Text{ReqID: "7", Text: strings.Repeat("x", 100)}
	for name, c := range map[string]struct {
		limit uint32
		send  func(*protocol.FrameWriter) error
		over  uint64 // length that the OversizeError carries, 0 for an EncodeError
	}{
		"control over the limit": {uint32(len(pingJSON)), func(w *protocol.FrameWriter) error { return w.Write(long) }, 178},
		"raw over the limit":     {uint32(len(vectorsJSON)), func(w *protocol.FrameWriter) error { return w.WriteRaw(vectors, make([]byte, 40), make([]byte, 10)) }, 50},
		"text that is not UTF-8": {1 << 10, func(w *protocol.FrameWriter) error { return w.Write(protocol.Text{ReqID: "7", Text: "a\xff"}) }, 0},
		"id that is not JSON":    {1 << 10, func(w *protocol.FrameWriter) error { return w.Write(protocol.Ping{ReqID: `"`}) }, 0},
	} {
		for kind, w := range map[string]interface {
			io.Writer
			Bytes() []byte
		}{"vectored": new(recorder), "plain": new(bytes.Buffer)} {
			out := protocol.NewFrameWriter(w, c.limit)
			err := c.send(out)
			var over *protocol.OversizeError
			var encode *protocol.EncodeError
			switch {
			case c.over > 0 && (!errors.As(err, &over) || over.Length != c.over || over.Limit != c.limit):
				t.Errorf("%s, %s: error %v", name, kind, err)
			case c.over == 0 && !errors.As(err, &encode):
				t.Errorf("%s, %s: error %v", name, kind, err)
			case isViolation(err):
				t.Errorf("%s, %s: what was not sent is nobody's violation", name, kind)
			}
			if len(w.Bytes()) != 0 {
				t.Errorf("%s, %s: %q was sent", name, kind, w.Bytes())
			}
			if err := out.Write(ping); err != nil || !bytes.Equal(w.Bytes(), frame(pingJSON)) {
				t.Errorf("%s, %s: the next message is %q, %v", name, kind, w.Bytes(), err)
			}
		}
	}
}

func TestFramesAtTheLimitAreSent(t *testing.T) {
	var w bytes.Buffer
	out := protocol.NewFrameWriter(&w, uint32(len(vectorsJSON)))
	if err := out.WriteRaw(vectors, make([]byte, len(vectorsJSON))); err != nil {
		t.Fatal(err)
	}
	out.SetLimit(uint32(len(vectorsJSON)) - 1)
	var over *protocol.OversizeError
	if err := out.WriteRaw(vectors, nil); !errors.As(err, &over) {
		t.Fatalf("error %v", err)
	}
}

// A stream that broke stays broken: half of a message may be on its way.
func TestBrokenStreamStaysBroken(t *testing.T) {
	broken := errors.New("broken")
	w := &failing{err: broken}
	out := protocol.NewFrameWriter(w, 1<<10)
	for range 2 {
		if err := out.Write(ping); !errors.Is(err, broken) {
			t.Fatalf("error %v", err)
		}
		w.err = nil
	}
}

type failing struct{ err error }

func (f *failing) Write([]byte) (int, error) { return 0, f.err }
