package workerkit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/alecthomas/kong"

	"github.com/synapse-module/workers/internal/buildinfo"
	"github.com/synapse-module/workers/protocol"
)

// IDVariable is the environment variable that carries the worker's id.
const IDVariable = "SYNAPSE_WORKER_ID"

// handshakeTimeout bounds the wait for HELLO_ACK. The module answers at once or
// is broken; its own deadline for a start is shorter.
const handshakeTimeout = 30 * time.Second

// Worker is what a worker binary is made of.
type Worker struct {
	Name string // "worker-onnx"
	Lib  string // directory of the native libraries under lib/ beside the binary; empty for none
	Open Open

	// WrapConn, where it is set, stands between the socket and the protocol. Only
	// worker-fake uses it, to break the stream on purpose.
	WrapConn func(net.Conn) net.Conn
}

type flags struct {
	Socket       string   `placeholder:"PATH" help:"Socket (or \\\\.\\pipe\\NAME) that the module listens on."`
	Nonce        string   `placeholder:"HEX" help:"The spawn nonce, said back in HELLO."`
	EngineLib    string   `placeholder:"DIR" help:"Directory of the engine's native libraries, instead of the one beside this binary."`
	CacheDir     string   `placeholder:"DIR" help:"Directory for private copies of artifacts. Default: the user's cache directory."`
	CacheLimit   int64    `placeholder:"BYTES" default:"${cache_limit}" help:"What unpacked artifacts may take there, and compiled models as much again; the longest unused go first."`
	MaxFrame     uint32   `placeholder:"BYTES" default:"${max_frame}" help:"Largest frame offered to the module."`
	Sandbox      string   `enum:"auto,off,require" default:"auto" help:"What this process gives up before it serves: ${enum}. See docs/supervision.md."`
	ArtifactRoot []string `placeholder:"DIR" sep:"none" help:"Read artifacts only below this directory; may be given more than once. Default: anywhere."`
	Version      bool     `help:"Print engine, library versions and build flags as JSON, and exit."`
}

// Main is a worker's main function. It does not return.
func Main(w Worker) {
	os.Exit(w.run(os.Args[1:], os.Stdout, os.Stderr))
}

// run returns the exit status; see the constants protocol.Exit....
func (w Worker) run(args []string, stdout, stderr io.Writer) int {
	var f flags
	parser, err := kong.New(&f, kong.Name(w.Name), kong.Writers(stdout, stderr),
		kong.Description("A Synapse engine worker. A module starts it; it is of no use by hand but for --version."),
		kong.Vars{"max_frame": fmt.Sprint(protocol.DefaultMaxFrame), "cache_limit": fmt.Sprint(DefaultCacheLimit)})
	if err != nil {
		panic(err) // the flags struct above is wrong
	}
	if _, err := parser.Parse(args); err != nil {
		return usage(w.Name, stderr, err)
	}
	log := slog.New(slog.NewJSONHandler(stderr, nil)).With("worker", w.Name)
	if id := os.Getenv(IDVariable); id != "" {
		log = log.With("id", id)
	}
	if !f.Version {
		switch {
		case f.Socket == "" || f.Nonce == "":
			return usage(w.Name, stderr, errors.New("--socket and --nonce are needed: a module starts this program"))
		case f.MaxFrame < protocol.MinMaxFrame || f.MaxFrame > protocol.MaxMaxFrame:
			return usage(w.Name, stderr, fmt.Errorf("--max-frame is %d, allowed is %d to %d", f.MaxFrame, protocol.MinMaxFrame, protocol.MaxMaxFrame))
		}
		if f.CacheLimit < 0 {
			return usage(w.Name, stderr, fmt.Errorf("--cache-limit is %d, the least is 0", f.CacheLimit))
		}
		if err := protocol.CheckSocketPath(f.Socket); err != nil {
			return usage(w.Name, stderr, err)
		}
	}
	store, err := newStore(f.CacheDir, f.CacheLimit, log)
	if err != nil {
		fmt.Fprintf(stderr, "%s: cannot use the cache directory: %v\n", w.Name, err)
		return protocol.ExitIO
	}
	libDir, err := w.libDir(f.EngineLib)
	if err == nil {
		var engine Engine
		if engine, err = w.Open(Setup{LibDir: libDir, CacheDir: store.dir, CacheLimit: f.CacheLimit, Log: log}); err == nil {
			if f.Version {
				info := engine.Info()
				info.BuildFlags = append(slices.Clone(info.BuildFlags), sandboxOffer())
				return w.printVersion(stdout, info)
			}
			return w.serve(f, engine, libDir, store, log)
		}
	}
	fmt.Fprintf(stderr, "%s: %v\n", w.Name, err)
	return protocol.ExitEngine
}

func usage(name string, stderr io.Writer, err error) int {
	fmt.Fprintf(stderr, "%s: %v (see --help)\n", name, err)
	return protocol.ExitUsage
}

// libDir is the absolute directory of the engine's libraries: told, or beside
// the binary. The system's search path is never used: it finds other versions.
func (w Worker) libDir(told string) (string, error) {
	if told != "" {
		return filepath.Abs(told)
	}
	if w.Lib == "" {
		return "", nil
	}
	exe, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("cannot tell where this program lies: %w; name the libraries with --engine-lib", err)
	}
	if exe, err = filepath.EvalSymlinks(exe); err != nil {
		return "", err
	}
	return filepath.Join(filepath.Dir(exe), "lib", w.Lib), nil
}

func (w Worker) printVersion(stdout io.Writer, info Info) int {
	enc := json.NewEncoder(stdout)
	enc.SetIndent("", "  ")
	err := enc.Encode(struct {
		Worker   string          `json:"worker"`
		Version  string          `json:"version"`
		Commit   string          `json:"commit,omitempty"`
		Protocol int             `json:"protocol"`
		Engine   protocol.Engine `json:"engine"`
	}{w.Name, buildinfo.Version(), buildinfo.Commit(), protocol.Version, wireEngine(info)})
	if err != nil {
		return protocol.ExitIO
	}
	return protocol.ExitOK
}

func wireEngine(i Info) protocol.Engine {
	if i.BuildFlags == nil {
		i.BuildFlags = []string{}
	}
	return protocol.Engine{Name: i.Name, Version: i.Version, BuildFlags: i.BuildFlags}
}

// serve connects, enters the sandbox, shakes hands and runs the worker loop.
func (w Worker) serve(f flags, engine Engine, libDir string, store *store, log *slog.Logger) int {
	conn, err := dial(f.Socket)
	if err != nil {
		log.Error("cannot connect to the module", "socket", f.Socket, "error", err)
		return protocol.ExitIO
	}
	// conn is closed by the process's end and not before: a panic must reach stderr
	// with its own exit status, not as a connection that broke under the reader.
	if w.WrapConn != nil {
		conn = w.WrapConn(conn)
	}
	info := engine.Info()
	sandbox, err := enterSandbox(f.Sandbox, confinement{readable: f.ArtifactRoot, libs: libDir, cache: store.dir}, log)
	if err != nil {
		log.Error("no sandbox", "error", err)
		return protocol.ExitUsage
	}
	info.BuildFlags = append(slices.Clone(info.BuildFlags), sandbox)
	in, out, maxFrame, err := handshake(conn, f, info)
	if err != nil {
		log.Error("no handshake", "error", err)
		return statusOf(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s := &server{
		in: newInbox(in), out: out, maxFrame: maxFrame,
		engine: engine, info: info, models: newRegistry(), store: store, log: log,
	}
	err = s.loop(ctx, func(err error) {
		// The engine may never come back from its call: no orderly end can be waited for.
		cancel()
		log.Error("the module is gone with a request in hand", "error", err)
		os.Exit(statusOf(err))
	})
	if err != nil {
		log.Error("the stream ended", "error", err)
	}
	return statusOf(err)
}

// handshake says HELLO and waits to be accepted.
func handshake(conn net.Conn, f flags, info Info) (in *protocol.FrameReader, out *protocol.FrameWriter, maxFrame uint32, err error) {
	in = protocol.NewFrameReader(conn, protocol.HandshakeMaxFrame)
	out = protocol.NewFrameWriter(conn, protocol.HandshakeMaxFrame)
	if err := conn.SetDeadline(time.Now().Add(handshakeTimeout)); err != nil {
		return nil, nil, 0, err
	}
	hello := protocol.Hello{V: protocol.Version, Nonce: f.Nonce, Engine: wireEngine(info), PID: os.Getpid(), MaxFrame: f.MaxFrame}
	if err := out.Write(hello); err != nil {
		return nil, nil, 0, refusal(err)
	}
	payload, err := in.ReadControl(nil)
	if err != nil {
		return nil, nil, 0, refusal(err)
	}
	header, err := protocol.Parse(payload)
	if err != nil {
		return nil, nil, 0, err
	}
	var ack protocol.HelloAck
	if err := header.Decode(&ack); err != nil {
		return nil, nil, 0, &protocol.ViolationError{Reason: "the answer to HELLO", Err: err}
	}
	if err := protocol.CheckHelloAck(ack, f.MaxFrame); err != nil {
		return nil, nil, 0, err
	}
	in.SetLimit(ack.MaxFrame)
	out.SetLimit(ack.MaxFrame)
	return in, out, ack.MaxFrame, conn.SetDeadline(time.Time{})
}

// refusal reads a connection that ends where HELLO_ACK is due as what it is: the
// module wants no such worker. A silent module and a broken frame are neither.
func refusal(err error) error {
	var violation *protocol.ViolationError
	if errors.As(err, &violation) || errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	return &protocol.RefusedError{Reason: "it closed the connection after HELLO"}
}

// statusOf turns the error that ended a worker into its exit status.
func statusOf(err error) int {
	var violation *protocol.ViolationError
	var refused *protocol.RefusedError
	switch {
	case err == nil:
		return protocol.ExitOK
	case errors.As(err, &refused):
		return protocol.ExitRefused
	case errors.As(err, &violation):
		return protocol.ExitViolation
	}
	return protocol.ExitIO
}
