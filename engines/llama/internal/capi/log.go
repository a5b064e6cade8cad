package capi

import (
	"bytes"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"
)

// Level is enum ggml_log_level.
type Level int32

// The log levels of ggml.h. A continuation has the level of what it continues.
const (
	LevelDebug    Level = 1
	LevelInfo     Level = 2
	LevelWarn     Level = 3
	LevelError    Level = 4
	levelContinue Level = 5
)

// maxLogLine bounds one line of llama.cpp's log: it prints whole vocabularies
// and templates of models that it does not like.
const maxLogLine = 2 << 10

// logSink puts llama.cpp's pieces of text together to lines.
type logSink struct {
	mu    sync.Mutex
	emit  func(Level, string)
	level Level
	line  []byte
}

func (s *logSink) write(level Level, text []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if level != levelContinue {
		s.flush()
		s.level = level
	}
	for len(text) > 0 {
		line, rest, ended := bytes.Cut(text, []byte("\n"))
		s.line = append(s.line, line[:min(len(line), maxLogLine-len(s.line))]...)
		if ended {
			s.flush()
		}
		text = rest
	}
}

func (s *logSink) flush() {
	if line := bytes.TrimSpace(s.line); len(line) > 0 && s.emit != nil {
		s.emit(s.level, string(bytes.ToValidUTF8(line, []byte("?"))))
	}
	s.line = s.line[:0]
}

// sink is the process's one log: llama.cpp keeps its callback in a global.
var sink logSink

// logCallback is made once, since purego never frees a callback.
var logCallback = sync.OnceValue(func() uintptr {
	return purego.NewCallback(func(level int32, text *byte, _ uintptr) uintptr {
		if text != nil {
			sink.write(Level(level), unsafe.Slice(text, cStringLen(text)))
		}
		return 0
	})
})

func cStringLen(p *byte) int {
	n := 0
	for *(*byte)(unsafe.Add(unsafe.Pointer(p), n)) != 0 {
		n++
	}
	return n
}
