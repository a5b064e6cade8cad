package fake

import (
	"bytes"
	"math"
	"os"
	"strings"
	"time"

	"github.com/synapse-module/workers/workerkit"
)

// Faults are the values of runtime_config.fault.
var Faults = []string{
	"none",
	"sleep",        // answer after fault_ms
	"hang",         // never come back from the call; PING is not answered either
	"error",        // a failure that the engine reports: ERR engine_failed
	"abort",        // SIGABRT, as a failed assertion does
	"segv",         // SIGSEGV
	"ill",          // SIGILL, as a CPU variant does that the system has not enabled
	"exit",         // exit with the status fault_code
	"panic",        // a Go panic: exit status 2 with goroutines on stderr
	"wrong_dims",   // embed: every vector one value short
	"fewer_rows",   // embed: one vector less than rows
	"nan",          // embed: a NaN in the last row
	"garbage",      // fault_bytes bytes of 0xA5 on the socket in place of the answer
	"short_frame",  // half of the answer, then the connection closes
	"drip",         // the answer a byte at a time, fault_ms between two bytes
	"eof",          // the connection closes in place of the answer
	"stderr_flood", // fault_bytes bytes of lines on stderr, then the answer
	"allocate",     // fault_bytes of memory asked for: oom where they are not there, else taken and kept
	"last_words",   // fault_bytes bytes on stderr, a last line, then SIGABRT
}

var faultOptions = []workerkit.Option{
	{Name: "fault", Kind: workerkit.KindEnum, Default: "none", Enum: Faults, Help: "What goes wrong."},
	{Name: "fault_stage", Kind: workerkit.KindEnum, Default: "embed", Enum: []string{"load", "embed", "rerank", "generate", "unload"}, Help: "Which request meets the fault."},
	{Name: "fault_after", Kind: workerkit.KindInt, Default: 0, Min: 0, Max: 1 << 30, Help: "How many such requests pass before the fault."},
	{Name: "fault_ms", Kind: workerkit.KindInt, Default: 100, Min: 0, Max: 1 << 30, Help: "Duration of sleep and pause of drip, milliseconds."},
	{Name: "fault_bytes", Kind: workerkit.KindInt, Default: 1 << 20, Min: 0, Max: 1 << 62, Help: "Size of garbage, stderr_flood, allocate and last_words, bytes."},
	{Name: "fault_code", Kind: workerkit.KindInt, Default: 3, Min: 0, Max: 255, Help: "Status of exit."},
}

// LastWords is the last line on stderr of the fault last_words.
const LastWords = "fake: assertion failed: these are the last words"

// script is a model's fault and how many requests have met its stage.
type script struct {
	fault, stage string
	after        int
	pause        time.Duration
	bytes        int
	code         int
	stream       *Stream
	seen         int
	hoard        []byte // what allocate took
}

func newScript(c workerkit.Config, stream *Stream) *script {
	return &script{
		fault: c.String("fault"), stage: c.String("fault_stage"), after: c.Int("fault_after"),
		pause: time.Duration(c.Int("fault_ms")) * time.Millisecond, bytes: c.Int("fault_bytes"),
		code: c.Int("fault_code"), stream: stream,
	}
}

// due counts a request of a stage and says whether it meets the fault.
func (s *script) due(stage string) bool {
	if stage != s.stage {
		return false
	}
	s.seen++
	return s.seen > s.after
}

// meet lets a request of a stage meet the fault, if that is due. It returns the
// errors that an engine would report; most faults do not come back.
func (s *script) meet(stage string) error {
	if !s.due(stage) {
		return nil
	}
	switch s.fault {
	case "sleep":
		time.Sleep(s.pause)
	case "hang":
		select {}
	case "error":
		return workerkit.EngineFailed("the scripted failure of the fake engine")
	case "abort", "segv", "ill":
		die(s.fault)
	case "exit":
		os.Exit(s.code)
	case "panic":
		panic("the scripted panic of the fake engine")
	case "stderr_flood":
		flood(s.bytes)
	case "last_words":
		flood(s.bytes)
		os.Stderr.WriteString(LastWords + "\n")
		die("abort")
	case "allocate":
		if err := workerkit.CheckMemory(uint64(s.bytes), "the fake model's hoard"); err != nil {
			return err
		}
		s.hoard = bytes.Repeat([]byte{1}, s.bytes) // written, so it is resident
	case "garbage", "short_frame", "drip", "eof":
		s.stream.arm(s.fault, s.bytes, s.pause)
	}
	return nil
}

// bend spoils an embedding's answer where the fault says so.
func (s *script) bend(vectors [][]float32) [][]float32 {
	if s.stage != "embed" || s.seen <= s.after {
		return vectors
	}
	switch s.fault {
	case "wrong_dims":
		for i, v := range vectors {
			vectors[i] = v[:len(v)-1]
		}
	case "fewer_rows":
		vectors = vectors[:len(vectors)-1]
	case "nan":
		last := vectors[len(vectors)-1]
		last[len(last)-1] = float32(math.NaN())
	}
	return vectors
}

func flood(n int) {
	line := strings.Repeat("x", 99) + "\n"
	for ; n > 0; n -= len(line) {
		os.Stderr.WriteString(line)
	}
}
