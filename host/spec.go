package host

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode"

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

	// MaxFrame is the largest frame that the module takes, in bytes. Default:
	// protocol.DefaultMaxFrame.
	MaxFrame uint32

	// Deadlines bounds requests whose context has no deadline.
	Deadlines Deadlines

	// Log, where it is not nil, is given each line that the worker writes to
	// stdout or stderr. It is called from one goroutine a worker. A slow Log
	// loses lines, counted in [LogLine.Lost]; it never holds the worker up.
	Log func(LogLine)
}

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
