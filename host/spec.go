package host

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/synapse-module/workers/protocol"
)

// envWorkerID is the environment variable that tells a worker its id.
const envWorkerID = "SYNAPSE_WORKER_ID"

// maxIDBytes bounds Spec.ID: it stands in every log line and error.
const maxIDBytes = 128

// Spec says how to start a worker. The zero value of a field is its documented
// default.
type Spec struct {
	// Path is the worker's executable. It is not looked up in PATH. A relative
	// path is taken from the module's working directory.
	Path string

	// Args are given to the worker besides --socket and --nonce. The worker runs
	// in another directory, so paths in them should be absolute.
	Args []string

	// Env is the worker's whole environment, as "NAME=value", besides
	// SYNAPSE_WORKER_ID (and SYSTEMROOT on Windows). Nothing of the module's own
	// environment reaches the worker by accident.
	Env []string

	// ID names the worker in logs and errors. Default: the executable's name and
	// a random suffix.
	ID string

	// RuntimeDir is where the socket's private directory is made, under
	// synapse/workers. Default: XDG_RUNTIME_DIR, else a directory of the user's
	// own in the system's directory for temporary files. Not used on Windows,
	// whose pipes have no directory.
	RuntimeDir string

	// ArtifactRoots are the directories below which the worker may read artifacts.
	// Default: anywhere. It is the worker's sandbox that keeps to it.
	ArtifactRoots []string

	// Sandbox is the worker's --sandbox. Default: [SandboxAuto].
	Sandbox Sandbox

	// MaxFrame is the largest frame that the module takes, in bytes. Default:
	// protocol.DefaultMaxFrame.
	MaxFrame uint32

	// Deadlines bounds requests whose context has no deadline.
	Deadlines Deadlines

	// Observers see each request begin and end. See package metrics.
	Observers []Observer

	// Admit, where it is not nil, is asked before each LOAD. Where it returns an
	// error nothing is sent, and the load fails with a [*NotAdmitted]. Package
	// certified has one that wants a certificate.
	Admit func(context.Context, Admission) error

	// Log, where it is not nil, is given each line that the worker writes to
	// stdout or stderr. It is called from one goroutine a worker. A slow Log
	// loses lines, counted in [LogLine.Lost]; it never holds the worker up.
	Log func(LogLine)
}

// Admission is a LOAD that a worker is about to be sent.
type Admission struct {
	Worker string          // the worker's executable, an absolute path
	Args   []string        // Spec.Args
	Engine protocol.Engine // as in the worker's HELLO
	Digest protocol.Digest // of the artifact, which the worker will hold it to
	Format string
	Config jsontext.Value // runtime_config, canonical JSON; nil for the engine's defaults
}

// Sandbox says how much a worker gives up before it serves. What it gave up is in
// the build flags of its HELLO ("sandbox=landlock-v7+seccomp").
type Sandbox string

// The sandboxes.
const (
	SandboxAuto    Sandbox = "auto"    // as much as the worker's system has
	SandboxOff     Sandbox = "off"     // nothing
	SandboxRequire Sandbox = "require" // all of it, or the start fails
)

// LogLine is one line of a worker's output.
type LogLine struct {
	Time   time.Time // when the line's end arrived
	Worker string    // the worker's id
	PID    int
	Text   string // without the line's end, safe to print
	Lost   int    // lines lost just before this one because Log was slow
}

// withDefaults checks the spec and fills in its defaults.
func (s Spec) withDefaults() (Spec, error) {
	if s.Path == "" {
		return s, fmt.Errorf("host: Spec.Path is empty: name the worker's executable")
	}
	path, err := filepath.Abs(s.Path)
	if err != nil {
		return s, fmt.Errorf("host: Spec.Path: %w", err)
	}
	s.Path = path
	for _, kv := range s.Env {
		if i := strings.IndexByte(kv, '='); i < 1 || strings.IndexByte(kv, 0) >= 0 {
			return s, fmt.Errorf("host: Spec.Env holds %q: each entry is NAME=value without a NUL byte", kv)
		}
	}
	if s.ID == "" {
		s.ID = strings.TrimSuffix(filepath.Base(s.Path), ".exe") + "-" + randomHex(4)
	}
	if len(s.ID) > maxIDBytes || strings.ContainsFunc(s.ID, func(r rune) bool { return !unicode.IsGraphic(r) }) {
		return s, fmt.Errorf("host: Spec.ID %q: at most %d bytes of printable characters", s.ID, maxIDBytes)
	}
	if s.RuntimeDir == "" {
		s.RuntimeDir = defaultRuntimeDir()
	}
	if s.RuntimeDir, err = filepath.Abs(s.RuntimeDir); err != nil {
		return s, fmt.Errorf("host: Spec.RuntimeDir: %w", err)
	}
	s.ArtifactRoots = slices.Clone(s.ArtifactRoots)
	for i, root := range s.ArtifactRoots {
		if s.ArtifactRoots[i], err = filepath.Abs(root); err != nil {
			return s, fmt.Errorf("host: Spec.ArtifactRoots: %w", err)
		}
	}
	switch s.Sandbox {
	case "", SandboxAuto, SandboxOff, SandboxRequire:
	default:
		return s, fmt.Errorf("host: Spec.Sandbox is %q, allowed are %q, %q and %q", s.Sandbox, SandboxAuto, SandboxOff, SandboxRequire)
	}
	if s.MaxFrame == 0 {
		s.MaxFrame = protocol.DefaultMaxFrame
	}
	if s.MaxFrame < protocol.MinMaxFrame || s.MaxFrame > protocol.MaxMaxFrame {
		return s, fmt.Errorf("host: Spec.MaxFrame is %d bytes, legal is %d to %d", s.MaxFrame, protocol.MinMaxFrame, protocol.MaxMaxFrame)
	}
	s.Deadlines, err = s.Deadlines.withDefaults()
	return s, err
}

// defaultRuntimeDir names the user in a directory that all users share, where
// otherwise the first of them would own the name for all.
func defaultRuntimeDir() string {
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		return dir
	}
	return filepath.Join(os.TempDir(), fmt.Sprintf("synapse-%d", os.Geteuid()))
}

// randomHex returns n random bytes as hex digits.
func randomHex(n int) string {
	b := make([]byte, n)
	rand.Read(b) // never fails: it ends the process instead
	return hex.EncodeToString(b)
}

// arguments are the worker's, for a rendezvous and a nonce.
func (s Spec) arguments(socket, nonce string) []string {
	args := []string{"--socket", socket, "--nonce", nonce}
	if s.Sandbox != "" { // a worker in another language may not know the flag
		args = append(args, "--sandbox="+string(s.Sandbox))
	}
	for _, root := range s.ArtifactRoots {
		args = append(args, "--artifact-root", root)
	}
	return append(args, s.Args...)
}
