package protocol_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"testing"
	"testing/iotest"
	"time"

	"github.com/synapse-module/workers/protocol"
)

// frame is a payload behind its length.
func frame(payload string) []byte {
	return append(binary.LittleEndian.AppendUint32(nil, uint32(len(payload))), payload...)
}

// announced is a length with nothing behind it.
func announced(n uint32) []byte { return binary.LittleEndian.AppendUint32(nil, n) }

// isViolation says whether the peer is at fault, and not the stream's end or a
// failing socket.
func isViolation(err error) bool {
	var v *protocol.ViolationError
	return errors.As(err, &v)
}

func TestWhereTheStreamEnds(t *testing.T) {
	const limit = 8
	readControl := func(r *protocol.FrameReader) ([]byte, error) { return r.ReadControl(nil) }
	readRaw := func(r *protocol.FrameReader) ([]byte, error) { return r.ReadRaw(nil) }
	readExact := func(r *protocol.FrameReader) ([]byte, error) { return r.ReadRawExact(nil, 2) }
	discard := func(r *protocol.FrameReader) ([]byte, error) { return nil, r.DiscardRaw() }
	for name, c := range map[string]struct {
		read      func(*protocol.FrameReader) ([]byte, error)
		stream    []byte
		want      string
		end       bool // io.EOF
		violation bool
	}{
		"control":                      {read: readControl, stream: frame("{}"), want: "{}"},
		"control at the limit":         {read: readControl, stream: frame("12345678"), want: "12345678"},
		"control over the limit":       {read: readControl, stream: frame("123456789"), violation: true},
		"control of length 0":          {read: readControl, stream: announced(0), violation: true},
		"control at the boundary":      {read: readControl, stream: nil, end: true},
		"control inside its length":    {read: readControl, stream: []byte{2, 0, 0}, violation: true},
		"control before its payload":   {read: readControl, stream: announced(2), violation: true},
		"control inside its payload":   {read: readControl, stream: append(announced(2), '{'), violation: true},
		"control, length of 4 GiB":     {read: readControl, stream: announced(0xFFFFFFFF), violation: true},
		"raw":                          {read: readRaw, stream: frame("abc"), want: "abc"},
		"raw of length 0":              {read: readRaw, stream: announced(0), want: ""},
		"raw over the limit":           {read: readRaw, stream: frame("123456789"), violation: true},
		"raw at the boundary":          {read: readRaw, stream: nil, violation: true},
		"raw inside its length":        {read: readRaw, stream: []byte{2}, violation: true},
		"raw inside its payload":       {read: readRaw, stream: append(announced(2), 'a'), violation: true},
		"exact":                        {read: readExact, stream: frame("ab"), want: "ab"},
		"exact, longer":                {read: readExact, stream: announced(3), violation: true},
		"exact, shorter":               {read: readExact, stream: announced(0), violation: true},
		"exact at the boundary":        {read: readExact, stream: nil, violation: true},
		"discarded":                    {read: discard, stream: frame("abc")},
		"discarded of length 0":        {read: discard, stream: announced(0)},
		"discarded over the limit":     {read: discard, stream: announced(9), violation: true},
		"discarded at the boundary":    {read: discard, stream: nil, violation: true},
		"discarded inside its payload": {read: discard, stream: append(announced(3), 'a'), violation: true},
	} {
		t.Run(name, func(t *testing.T) {
			for _, arrive := range []func(io.Reader) io.Reader{
				func(r io.Reader) io.Reader { return r }, iotest.OneByteReader, iotest.DataErrReader,
			} {
				got, err := c.read(protocol.NewFrameReader(arrive(bytes.NewReader(c.stream)), limit))
				if errors.Is(err, io.EOF) != c.end || isViolation(err) != c.violation || (err == nil) != (!c.end && !c.violation) {
					t.Fatalf("error %v", err)
				}
				if err == nil && string(got) != c.want {
					t.Fatalf("read %q, want %q", got, c.want)
				}
			}
		})
	}
}

func TestOversizeCarriesBothLengths(t *testing.T) {
	_, err := protocol.NewFrameReader(bytes.NewReader(announced(0xFFFFFFFF)), 1<<20).ReadControl(nil)
	var over *protocol.OversizeError
	if !isViolation(err) || !errors.As(err, &over) || over.Length != 0xFFFFFFFF || over.Limit != 1<<20 {
		t.Fatalf("error %v", err)
	}
}

func TestLimitChangesBetweenFrames(t *testing.T) {
	stream := append(frame("1234"), frame("12345")...)
	for limit, wantErr := range map[uint32]bool{4: true, 5: false} {
		r := protocol.NewFrameReader(bytes.NewReader(stream), 4)
		if _, err := r.ReadControl(nil); err != nil {
			t.Fatal(err)
		}
		r.SetLimit(limit) // the next frame's bytes are in the reader's buffer by now
		if _, err := r.ReadControl(nil); (err != nil) != wantErr {
			t.Errorf("limit %d: error %v", limit, err)
		}
	}
}

// A socket that fails is nobody's violation, and a deadline stays recognisable.
func TestFailingSocketIsNoViolation(t *testing.T) {
	ours, theirs := net.Pipe()
	defer ours.Close()
	defer theirs.Close()
	if err := ours.SetDeadline(time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	reader := protocol.NewFrameReader(ours, 8)
	if _, err := reader.ReadControl(nil); isViolation(err) || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("in the length: %v", err)
	}
	reader = protocol.NewFrameReader(io.MultiReader(bytes.NewReader(announced(3)), ours), 8)
	if _, err := reader.ReadControl(nil); isViolation(err) || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("in the payload: %v", err)
	}
}

// allocated is how many bytes f takes from the heap, dead or alive.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// Report 40: what a length announces costs nothing, only what arrives does.
func TestReport40_MemoryFollowsArrival(t *testing.T) {
	const slack = 16 << 10 // errors, the test's own
	for name, c := range map[string]struct {
		length  uint32
		arrives int
		most    uint64
	}{
		"over the limit":        {0xFFFFFFFF, 0, slack},
		"1 GiB, nothing":        {protocol.MaxMaxFrame, 0, 64<<10 + slack},
		"1 GiB, 10 bytes":       {protocol.MaxMaxFrame, 10, 64<<10 + slack},
		"1 GiB, 1 MiB":          {protocol.MaxMaxFrame, 1 << 20, 4<<20 + slack},
		"1 MiB, all of it":      {1 << 20, 1 << 20, 2<<20 + slack},
		"1 GiB, dropped, 1 MiB": {protocol.MaxMaxFrame, -1 << 20, slack},
	} {
		t.Run(name, func(t *testing.T) {
			arrives, drop := c.arrives, false
			if arrives < 0 {
				arrives, drop = -arrives, true
			}
			stream := io.MultiReader(bytes.NewReader(announced(c.length)), bytes.NewReader(make([]byte, arrives)))
			r := protocol.NewFrameReader(stream, protocol.MaxMaxFrame)
			var err error
			got := allocated(func() {
				if drop {
					err = r.DiscardRaw()
				} else {
					_, err = r.ReadControl(nil)
				}
			})
			if whole := uint32(arrives) == c.length; isViolation(err) == whole {
				t.Fatalf("error %v", err)
			}
			if got > c.most {
				t.Errorf("%d bytes taken for %d that arrived, want at most %d", got, arrives, c.most)
			}
		})
	}
}

func TestBufferIsReused(t *testing.T) {
	one := append(frame("a control frame"), frame("and its raw frame")...)
	var src bytes.Reader
	r := protocol.NewFrameReader(&src, 1<<10)
	control, raw := make([]byte, 0, 64), make([]byte, 0, 64)
	first := &control[:1][0]
	var err error
	perRun := testing.AllocsPerRun(100, func() {
		src.Reset(one)
		if control, err = r.ReadControl(control); err != nil {
			t.Fatal(err)
		}
		if raw, err = r.ReadRaw(raw); err != nil {
			t.Fatal(err)
		}
	})
	if &control[0] != first || string(raw) != "and its raw frame" {
		t.Errorf("another buffer, or %q", raw)
	}
	if perRun > 0 {
		t.Errorf("%v allocations a message", perRun)
	}
	// A frame that does not fit gets a new buffer, and the old bytes do not leak in.
	src.Reset(frame("longer than the seven bytes given"))
	if got, err := r.ReadControl(make([]byte, 7)); err != nil || string(got) != "longer than the seven bytes given" {
		t.Errorf("%q, %v", got, err)
	}
}

// Frames of every size round the reader's own buffer and growth steps come out as
// they went in, however the stream is cut into pieces.
func TestFramesOfAllSizes(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var stream []byte
	var want [][]byte
	for _, n := range []int{1, 3, 4, 16<<10 - 5, 16<<10 - 4, 16 << 10, 64<<10 - 1, 64 << 10, 64<<10 + 1, 128<<10 + 1, 300 << 10, 2} {
		payload := make([]byte, n)
		for i := range payload {
			payload[i] = byte(rnd.Uint32())
		}
		stream = append(append(stream, announced(uint32(n))...), payload...)
		want = append(want, payload)
	}
	r := protocol.NewFrameReader(&pieces{rnd, bytes.NewReader(stream)}, 1<<20)
	var buf []byte
	for i, w := range want {
		var err error
		if buf, err = r.ReadControl(buf); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(buf, w) {
			t.Fatalf("frame %d of %d bytes is another one", i, len(w))
		}
	}
	if _, err := r.ReadControl(buf); !errors.Is(err, io.EOF) {
		t.Fatalf("at the end: %v", err)
	}
}

// pieces hands out a stream in pieces of random length.
type pieces struct {
	rnd *rand.Rand
	r   io.Reader
}

func (p *pieces) Read(b []byte) (int, error) {
	return p.r.Read(b[:min(len(b), 1+p.rnd.IntN(70_000))])
}
