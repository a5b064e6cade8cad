// Command pipeprobe is a module for one conversation under wine: it serves a named
// pipe with blocking calls (wine 8's overlapped ConnectNamedPipe, which the
// listener of package host uses, never returns), starts a worker, loads a model,
// embeds rows, and prints the vectors as JSON.
package main

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/sys/windows"

	"github.com/synapse-module/workers/protocol"
)

// probe is as tools/release writes it.
type probe struct {
	Worker string          `json:"worker"`
	Path   string          `json:"path"`
	Digest protocol.Digest `json:"digest"`
	Format string          `json:"format"`
	Config jsontext.Value  `json:"config"`
	Rows   [][]int32       `json:"rows"`
}

// pipeBuffer is what package host gives its pipes.
const pipeBuffer = 64 << 10

func main() {
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "pipeprobe:", err)
		os.Exit(1)
	}
}

func run(file string) error {
	raw, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var q probe
	if err := json.Unmarshal(raw, &q); err != nil {
		return err
	}
	nonce := make([]byte, protocol.NonceBytes)
	rand.Read(nonce)
	address := `\\.\pipe\pipeprobe-` + hex.EncodeToString(nonce)
	name, err := windows.UTF16PtrFromString(address)
	if err != nil {
		return err
	}
	pipe, err := windows.CreateNamedPipe(name, windows.PIPE_ACCESS_DUPLEX|windows.FILE_FLAG_FIRST_PIPE_INSTANCE,
		windows.PIPE_TYPE_BYTE|windows.PIPE_WAIT|windows.PIPE_REJECT_REMOTE_CLIENTS, 1, pipeBuffer, pipeBuffer, 0, nil)
	if err != nil {
		return fmt.Errorf("CreateNamedPipe: %w", err)
	}
	defer windows.CloseHandle(pipe)
	worker := exec.Command(q.Worker, "--socket", address, "--nonce", hex.EncodeToString(nonce))
	worker.Stderr = os.Stderr
	if err := worker.Start(); err != nil {
		return err
	}
	defer worker.Process.Kill()
	if err := windows.ConnectNamedPipe(pipe, nil); err != nil && !errors.Is(err, windows.ERROR_PIPE_CONNECTED) {
		return fmt.Errorf("ConnectNamedPipe: %w", err)
	}
	c := &conversation{protocol.NewFrameReader(handle(pipe), protocol.HandshakeMaxFrame), protocol.NewFrameWriter(handle(pipe), protocol.HandshakeMaxFrame)}
	vectors, err := c.embed(q, hex.EncodeToString(nonce))
	if err != nil {
		return err
	}
	if err := c.out.Write(protocol.Shutdown{}); err != nil {
		return err
	}
	if err := worker.Wait(); err != nil {
		return fmt.Errorf("after SHUTDOWN: %w", err)
	}
	return json.NewEncoder(os.Stdout).Encode(vectors)
}

// conversation is the module's end of the pipe.
type conversation struct {
	in  *protocol.FrameReader
	out *protocol.FrameWriter
}

func (c *conversation) embed(q probe, nonce string) ([][]float32, error) {
	var hello protocol.Hello
	if err := c.expect(&hello, protocol.TypeHello); err != nil {
		return nil, err
	}
	if err := protocol.CheckHello(hello, nonce); err != nil {
		return nil, err
	}
	if err := c.out.Write(protocol.HelloAck{V: protocol.Version, Accept: true, MaxFrame: hello.MaxFrame}); err != nil {
		return nil, err
	}
	c.in.SetLimit(hello.MaxFrame)
	c.out.SetLimit(hello.MaxFrame)
	load := protocol.Load{ReqID: "1", ArtifactPath: q.Path, ArtifactDigest: q.Digest, Format: q.Format, RuntimeConfig: q.Config}
	if err := c.out.Write(load); err != nil {
		return nil, err
	}
	var loaded protocol.Loaded
	if err := c.expect(&loaded, protocol.TypeLoaded); err != nil {
		return nil, err
	}
	batch := protocol.EmbedBatch{ReqID: "2", ModelRef: loaded.ModelRef, Normalize: true}
	var ids [][]byte
	for _, row := range q.Rows {
		batch.Items = append(batch.Items, protocol.Item{NTokens: len(row)})
		ids = append(ids, protocol.Bytes(row))
	}
	if err := c.out.WriteRaw(batch, ids...); err != nil {
		return nil, err
	}
	var answer protocol.Vectors
	if err := c.expect(&answer, protocol.TypeVectors); err != nil {
		return nil, err
	}
	raw, err := c.in.ReadRawExact(nil, uint64(answer.N)*uint64(answer.Dims)*4)
	if err != nil {
		return nil, err
	}
	values, err := protocol.View[float32](raw)
	if err != nil {
		return nil, err
	}
	var vectors [][]float32
	for i := range answer.N {
		vectors = append(vectors, values[i*answer.Dims:(i+1)*answer.Dims])
	}
	return vectors, nil
}

// expect reads the one message that is due.
func (c *conversation) expect(m protocol.Message, due protocol.Type) error {
	payload, err := c.in.ReadControl(nil)
	if err != nil {
		return err
	}
	h, err := protocol.Parse(payload)
	if err != nil {
		return err
	}
	if h.Type != due {
		return fmt.Errorf("%s came, due is %s: %s", h.Type, due, payload)
	}
	return h.Decode(m)
}

// handle is a blocking pipe.
type handle windows.Handle

func (h handle) Read(p []byte) (int, error) {
	var n uint32
	err := windows.ReadFile(windows.Handle(h), p, &n, nil)
	if errors.Is(err, windows.ERROR_BROKEN_PIPE) {
		return 0, io.EOF
	}
	return int(n), err
}

func (h handle) Write(p []byte) (int, error) {
	var n uint32
	err := windows.WriteFile(windows.Handle(h), p, &n, nil)
	return int(n), err
}
