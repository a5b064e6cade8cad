package host

import (
	"bytes"
	"fmt"
	"os"
	"sync"
	"time"
	"unicode/utf8"
)

const (
	// LogTailBytes bounds [EngineCrashed.LogTail]: what a person reads to see why
	// a worker died, and a module can attach to an answer.
	LogTailBytes = 8 << 10

	// logRingBytes bounds what is kept of a worker's output. It is larger than
	// the tail because making it safe to print may drop bytes at its front.
	logRingBytes = 64 << 10

	// logGrace bounds the wait for the end of the log once the worker's whole
	// group is dead. Only a process that left the group can hold the log longer,
	// and it must not hold the module up.
	logGrace = 250 * time.Millisecond
)

// workerLog takes what one worker writes to stdout and stderr. It always reads,
// so a worker that writes much is never stalled, and keeps a bounded end.
type workerLog struct {
	r    *os.File
	done chan struct{} // closed when nothing reads any more

	mu   sync.Mutex
	ring []byte // the last bytes written, at most logRingBytes; oldest first from at
	at   int
}

// newWorkerLog returns the log and the descriptor for the worker to write to.
func newWorkerLog() (*workerLog, *os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, nil, fmt.Errorf("host: make the log pipe: %w", err)
	}
	return &workerLog{r: r, done: make(chan struct{})}, w, nil
}

// drain reads until every writer has closed, or until finish gives up.
func (l *workerLog) drain(lines *lineFeed) {
	defer close(l.done)
	defer lines.close()
	buf := make([]byte, 32<<10)
	for {
		n, err := l.r.Read(buf)
		l.keep(buf[:n])
		lines.add(buf[:n])
		if err != nil {
			return
		}
	}
}

// finish waits for what the dead worker had still written, within logGrace.
func (l *workerLog) finish() {
	grace := time.NewTimer(logGrace)
	defer grace.Stop()
	select {
	case <-l.done:
	case <-grace.C:
	}
	l.r.Close() // ends a drain that a stranger's open descriptor holds up
	<-l.done
}

func (l *workerLog) keep(p []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(p) >= logRingBytes {
		l.ring, l.at = append(l.ring[:0], p[len(p)-logRingBytes:]...), 0
		return
	}
	if room := logRingBytes - len(l.ring); room > 0 {
		n := min(room, len(p))
		l.ring = append(l.ring, p[:n]...)
		p = p[n:]
	}
	for len(p) > 0 {
		n := copy(l.ring[l.at:], p)
		l.at = (l.at + n) % logRingBytes
		p = p[n:]
	}
}

// tail is the end of the log, at most LogTailBytes, safe to print.
func (l *workerLog) tail() string {
	l.mu.Lock()
	all := append(bytes.Clone(l.ring[l.at:]), l.ring[:l.at]...)
	l.mu.Unlock()
	if len(all) > LogTailBytes {
		all = all[len(all)-LogTailBytes-utf8.UTFMax:] // enough to find the border of a character
	}
	return lastBytes(printable(all), LogTailBytes)
}
