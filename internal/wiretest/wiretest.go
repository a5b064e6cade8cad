// Package wiretest plays the module's side of the wire by hand, so that tests
// hold a real worker process to the protocol byte by byte. Package host is the
// module's side for everybody else.
package wiretest

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/synapse-module/workers/protocol"
)

// Patience bounds every wait of a test: far over what a loaded machine needs,
// so that only a hang reaches it.
const Patience = 60 * time.Second

var builds sync.Map // package path -> func() (string, error)

// Build compiles a command of this module once a test binary and returns its
// path. pkg is the import path below the module, such as "cmd/worker-fake".
func Build(t testing.TB, pkg string) string {
	t.Helper()
	build, _ := builds.LoadOrStore(pkg, sync.OnceValues(func() (string, error) {
		dir, err := os.MkdirTemp("", "wiretest-")
		if err != nil {
			return "", err
		}
		exe := filepath.Join(dir, filepath.Base(pkg))
		cmd := exec.Command("go", "build", "-o", exe, "github.com/synapse-module/workers/"+pkg)
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", errors.New(err.Error() + "\n" + string(out))
		}
		return exe, nil
	}))
	exe, err := build.(func() (string, error))()
	if err != nil {
		t.Fatalf("build %s: %v", pkg, err)
	}
	return exe
}

// Peer is a started worker and the module's end of its connection.
type Peer struct {
	Conn   *net.UnixConn
	In     *protocol.FrameReader
	Out    *protocol.FrameWriter
	Nonce  string
	Hello  protocol.Hello
	Stderr *Log
	Dir    string // the worker's working directory, its own

	t    testing.TB
	cmd  *exec.Cmd
	exit chan error
	once sync.Once
	err  error
}

// Log is a concurrent buffer.
type Log struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// Spawn starts exe, takes its connection and reads its HELLO. It does not answer.
func Spawn(t testing.TB, exe string, args ...string) *Peer {
	t.Helper()
	p := Start(t, exe, args...)
	p.Expect(&p.Hello)
	return p
}

// Start starts exe and takes its connection. It reads nothing.
func Start(t testing.TB, exe string, args ...string) *Peer {
	t.Helper()
	dir, err := os.MkdirTemp("", "wt") // t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	p := &Peer{t: t, Nonce: hex.EncodeToString([]byte("sixteen bytes :)")), Stderr: &Log{}, Dir: dir, exit: make(chan error, 1)}
	p.cmd = exec.Command(exe, append([]string{"--socket", path, "--nonce", p.Nonce, "--cache-dir", filepath.Join(dir, "cache")}, args...)...)
	p.cmd.Stdout, p.cmd.Stderr = p.Stderr, p.Stderr
	p.cmd.Env = []string{"SYNAPSE_WORKER_ID=wiretest"}
	p.cmd.Dir = dir
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { p.exit <- p.cmd.Wait() }()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // it may have ended
		p.wait()
		if t.Failed() {
			t.Logf("the worker's stderr:\n%.4000s", p.Stderr)
		}
	})
	if err := l.SetDeadline(time.Now().Add(Patience)); err != nil {
		t.Fatal(err)
	}
	if p.Conn, err = l.AcceptUnix(); err != nil {
		t.Fatalf("the worker never connected: %v\n%s", err, p.Stderr)
	}
	t.Cleanup(func() { p.Conn.Close() })
	if err := p.Conn.SetDeadline(time.Now().Add(Patience)); err != nil {
		t.Fatal(err)
	}
	p.In = protocol.NewFrameReader(p.Conn, protocol.HandshakeMaxFrame)
	p.Out = protocol.NewFrameWriter(p.Conn, protocol.HandshakeMaxFrame)
	return p
}

// Accept answers HELLO; maxFrame 0 is the worker's own offer.
func (p *Peer) Accept(maxFrame uint32) *Peer {
	p.t.Helper()
	if maxFrame == 0 {
		maxFrame = p.Hello.MaxFrame
	}
	p.Send(protocol.HelloAck{V: protocol.Version, Accept: true, MaxFrame: maxFrame})
	p.In.SetLimit(maxFrame)
	p.Out.SetLimit(maxFrame)
	return p
}

// Send writes a message, and one raw frame where raw is given.
func (p *Peer) Send(m protocol.Message, raw ...[]byte) {
	p.t.Helper()
	var err error
	if len(raw) == 0 {
		err = p.Out.Write(m)
	} else {
		err = p.Out.WriteRaw(m, raw...)
	}
	if err != nil {
		p.t.Fatalf("send %s: %v", m.MessageType(), err)
	}
}

// SendBytes writes bytes as they are; use it to break the protocol.
func (p *Peer) SendBytes(b []byte) {
	p.t.Helper()
	if _, err := p.Conn.Write(b); err != nil {
		p.t.Fatalf("send: %v", err)
	}
}

// Header reads a control frame.
func (p *Peer) Header() protocol.Header {
	p.t.Helper()
	payload, err := p.In.ReadControl(nil)
	if err != nil {
		p.t.Fatalf("read: %v", err)
	}
	h, err := protocol.Parse(payload)
	if err != nil {
		p.t.Fatalf("read: %v", err)
	}
	return h
}

// Expect reads a control frame into m, which it must be.
func (p *Peer) Expect(m protocol.Message) {
	p.t.Helper()
	h := p.Header()
	if h.Type == protocol.TypeErr && m.MessageType() != protocol.TypeErr {
		p.t.Fatalf("wanted %s, got ERR: %v", m.MessageType(), h.DecodeErr())
	}
	if err := h.Decode(m); err != nil {
		p.t.Fatalf("wanted %s: %v", m.MessageType(), err)
	}
}

// ExpectErr reads an ERR of the given code and returns it.
func (p *Peer) ExpectErr(code protocol.Code) protocol.Err {
	p.t.Helper()
	var e protocol.Err
	p.Expect(&e)
	if e.Code != code {
		p.t.Fatalf("wanted ERR %s, got %s: %s", code, e.Code, e.Msg)
	}
	return e
}

// Floats reads a raw frame of f32.
func (p *Peer) Floats() []float32 {
	p.t.Helper()
	b, err := p.In.ReadRaw(nil)
	if err != nil {
		p.t.Fatalf("read: %v", err)
	}
	v, err := protocol.View[float32](b)
	if err != nil {
		p.t.Fatal(err)
	}
	return v
}

// Load loads an artifact and returns its model_ref.
func (p *Peer) Load(m protocol.Load) string {
	p.t.Helper()
	if m.ReqID == "" {
		m.ReqID = protocol.StringID("load")
	}
	p.Send(m)
	var l protocol.Loaded
	p.Expect(&l)
	return l.ModelRef
}

// Embed embeds rows with the model's own pooling and returns one vector a row.
func (p *Peer) Embed(ref string, normalize bool, rows ...[]int32) [][]float32 {
	p.t.Helper()
	p.Send(EmbedBatch(ref, "", normalize, rows...))
	return p.Vectors()
}

// Vectors reads an answer to EMBED_BATCH.
func (p *Peer) Vectors() [][]float32 {
	p.t.Helper()
	var v protocol.Vectors
	p.Expect(&v)
	flat := p.Floats()
	if len(flat) != v.N*v.Dims {
		p.t.Fatalf("VECTORS says %d×%d, the raw frame holds %d values", v.N, v.Dims, len(flat))
	}
	out := make([][]float32, v.N)
	for i := range out {
		out[i] = flat[i*v.Dims : (i+1)*v.Dims]
	}
	return out
}

// EmbedBatch makes an EMBED_BATCH and its raw frame, in the form of Send.
func EmbedBatch(ref, pooling string, normalize bool, rows ...[]int32) (protocol.Message, []byte) {
	m := protocol.EmbedBatch{ReqID: protocol.StringID("embed"), ModelRef: ref, Pooling: pooling, Normalize: normalize, Items: []protocol.Item{}}
	var ids []int32
	for i, r := range rows {
		m.Items = append(m.Items, protocol.Item{ID: protocol.NumberID(uint64(i)), NTokens: len(r)})
		ids = append(ids, r...)
	}
	return m, protocol.Bytes(ids)
}

// Exit waits for the worker's end and returns its exit status, or -1 where a
// signal ended it.
func (p *Peer) Exit() int {
	p.t.Helper()
	p.wait()
	return p.cmd.ProcessState.ExitCode()
}

func (p *Peer) wait() {
	p.once.Do(func() {
		select {
		case p.err = <-p.exit:
		case <-time.After(Patience):
			p.t.Errorf("the worker does not end")
			_ = p.cmd.Process.Kill()
			p.err = <-p.exit
		}
	})
}

// ExpectEOF reads to the end of the stream and fails on anything before it.
func (p *Peer) ExpectEOF() {
	p.t.Helper()
	if b, err := p.In.ReadControl(nil); err == nil || !errors.Is(err, io.EOF) {
		p.t.Fatalf("wanted the end of the stream, got %q, %v", b, err)
	}
}
