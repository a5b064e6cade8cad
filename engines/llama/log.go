package llama

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/synapse-module/workers/engines/llama/internal/capi"
)

// maxReason bounds how much of the library's log an error quotes.
const maxReason = 600

// libraryLog passes llama.cpp's log on, and keeps the complaints since begin: the
// library's functions return no reasons.
type libraryLog struct {
	log *slog.Logger

	mu         sync.Mutex
	complaints []string
	unlocked   bool // memory that was to be locked was not
}

// notLocked are the calls by which the library says, in a warning, that it could
// not lock memory. It goes on without.
var notLocked = []string{"mlock", "VirtualLock"}

func newLibraryLog(log *slog.Logger) *libraryLog {
	return &libraryLog{log: log.With("from", "llama.cpp")}
}

// write is called from any of the library's threads. What llama.cpp calls
// information is a page for every model, so it is for debugging here.
func (l *libraryLog) write(level capi.Level, line string) {
	to := slog.LevelDebug
	switch level {
	case capi.LevelWarn:
		to = slog.LevelWarn
		if slices.ContainsFunc(notLocked, func(call string) bool { return strings.Contains(line, call) }) {
			l.mu.Lock()
			l.unlocked = true
			l.mu.Unlock()
		}
	case capi.LevelError:
		to = slog.LevelError
		l.mu.Lock()
		l.complaints = append(l.complaints, line)
		l.mu.Unlock()
	}
	l.log.Log(context.Background(), to, line)
}

func (l *libraryLog) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.complaints, l.unlocked = nil, false
}

// locked says whether all memory was locked since begin that was to be.
func (l *libraryLog) locked() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.unlocked
}

// reason is what the library complained of since begin. The first line is
// nearest to the cause.
func (l *libraryLog) reason() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.complaints) == 0 {
		return "it gave no reason"
	}
	all := strings.Join(l.complaints, "; ")
	return strings.ToValidUTF8(all[:min(len(all), maxReason)], "")
}
