package host

import (
	"bytes"
	"strings"
	"time"
)

const (
	// logQueueLines is how far Spec.Log may lag before lines are dropped: a burst
	// of an engine's load messages.
	logQueueLines = 1024

	// logLineBytes bounds one line given to Spec.Log; a longer one is given in
	// pieces.
	logLineBytes = 4 << 10
)

// lineFeed cuts a worker's output into lines for Spec.Log, on a goroutine of its
// own behind a bounded queue.
type lineFeed struct {
	queue   chan LogLine
	tag     func() LogLine // a line's worker and pid
	partial []byte
	lost    int
}

// newLineFeed returns a feed to sink, or one that drops everything where sink is
// nil.
func newLineFeed(sink func(LogLine), tag func() LogLine) *lineFeed {
	if sink == nil {
		return &lineFeed{}
	}
	f := &lineFeed{queue: make(chan LogLine, logQueueLines), tag: tag}
	go func() {
		for line := range f.queue {
			sink(line)
		}
	}()
	return f
}

func (f *lineFeed) add(p []byte) {
	if f.queue == nil {
		return
	}
	f.partial = append(f.partial, p...)
	for {
		line, rest, whole := bytes.Cut(f.partial, []byte("\n"))
		if !whole && len(line) < logLineBytes {
			break
		}
		if len(line) > logLineBytes {
			line, rest = f.partial[:logLineBytes], f.partial[logLineBytes:]
		}
		f.send(line)
		f.partial = rest
	}
	f.partial = bytes.Clone(f.partial)
}

// send queues a line, or counts it as lost. Only the drain sends, so room that is
// seen is still there when it is used.
func (f *lineFeed) send(line []byte) {
	if len(f.queue) == cap(f.queue) {
		f.lost++
		return
	}
	l := f.tag()
	l.Time, l.Text, l.Lost = time.Now(), strings.TrimRight(printable(line), "\n"), f.lost
	f.queue <- l
	f.lost = 0
}

func (f *lineFeed) close() {
	if f.queue == nil {
		return
	}
	if len(f.partial) > 0 {
		f.send(f.partial)
	}
	close(f.queue)
}
