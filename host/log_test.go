//go:build linux || darwin

package host_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/synapse-module/workers/engines/fake"
	"github.com/synapse-module/workers/host"
	"github.com/synapse-module/workers/internal/puppet"
)

// zombie says that a process is dead and not reaped by whoever has it now.
func zombie(pid int) bool {
	stat, err := os.ReadFile(filepath.Join("/proc", itoa(pid), "stat"))
	return err == nil && strings.Contains(string(stat), ") Z ")
}

// Report 46: the last thing that a dying worker says is part of the error.
func TestReport46_LastWords(t *testing.T) {
	w := start(t, fakeSpec(t))
	ref := load(t, w, map[string]any{"fault": "last_words", "fault_bytes": 20 << 10})
	_, err := w.Embed(patient(t), host.EmbedRequest{Model: ref, Rows: [][]int32{{1}}})
	c := wantCrash(t, err, host.StageEmbed, host.CauseSignal)
	if !strings.HasSuffix(strings.TrimRight(c.LogTail, "\n"), fake.LastWords) || len(c.LogTail) < host.LogTailBytes-100 {
		t.Errorf("the tail has %d bytes and ends in %q", len(c.LogTail), c.LogTail[max(0, len(c.LogTail)-100):])
	}
	if !strings.Contains(err.Error(), fake.LastWords) {
		t.Errorf("%v does not end in the last words", err)
	}
}

// Report 46: the tail is cut on the border of a character and safe to print.
func TestReport46_TailIsSafeText(t *testing.T) {
	for name, c := range map[string]struct{ written, ends string }{
		"characters of 3 bytes": {strings.Repeat("€", 4000) + "!", "€!"},
		"characters of 4 bytes": {strings.Repeat("𝄞", 3000), "𝄞"},
		"escape sequences":      {"\x1b[31mred\x07\x00\u009b\n", `\x1b[31mred\x07\x00\x9b` + "\n"},
		"carriage returns":      {"10%\r20%\r\ndone", "10%\n20%\ndone"},
		"text turned round":     {"a\u202eb\u2028", `a\u202eb\u2028`},
		"no UTF-8":              {"a\xff\xfeb\xe2\x82", "a\uFFFD\uFFFDb\uFFFD\uFFFD"},
		"more than the ring":    {strings.Repeat("x", 200<<10) + "end", "xend"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "text")
			if err := os.WriteFile(path, []byte(c.written), 0o600); err != nil {
				t.Fatal(err)
			}
			s := puppetSpec(t, puppet.Script{{Do: "cat", Text: path}, {Do: "die", Text: "exit:1"}})
			_, err := host.Start(patient(t), s)
			tail := crash(t, err).LogTail
			if !utf8.ValidString(tail) || len(tail) > host.LogTailBytes || !strings.HasSuffix(tail, c.ends) {
				t.Errorf("%d bytes ending in %q, want %q", len(tail), tail[max(0, len(tail)-60):], c.ends)
			}
			if len(c.written) > host.LogTailBytes && len(tail) < host.LogTailBytes-utf8.UTFMax {
				t.Errorf("only %d bytes of %d are left", len(tail), len(c.written))
			}
		})
	}
}

// Report 47: a worker that writes 10 MB while it serves is not held up.
func TestReport47_MuchLogWhileServing(t *testing.T) {
	for name, sink := range map[string]func(host.LogLine){"no sink": nil, "a sink that blocks": func(host.LogLine) { time.Sleep(time.Hour) }} {
		t.Run(name, func(t *testing.T) {
			if sink != nil {
				release := make(chan struct{})
				sink = func(host.LogLine) { <-release }
				defer close(release)
			}
			s := fakeSpec(t)
			s.Log = sink
			w := start(t, s)
			ref := load(t, w, map[string]any{"fault": "stderr_flood", "fault_bytes": 10 << 20})
			for range 3 {
				good(t, w, ref)
			}
		})
	}
}

func TestLogLines(t *testing.T) {
	var mu sync.Mutex
	var got []host.LogLine
	s := puppetSpec(t, puppet.Script{{Do: "stderr", Text: "one\ntw"}, {Do: "stderr", Text: "o\r\n\x1b\nlast"}, {Do: "die", Text: "exit:1"}})
	s.ID = "w-7"
	all := make(chan struct{})
	s.Log = func(l host.LogLine) {
		mu.Lock()
		defer mu.Unlock()
		if got = append(got, l); len(got) == 4 {
			close(all)
		}
	}
	_, err := host.Start(patient(t), s)
	pid := crash(t, err).PID
	<-all
	for i, text := range []string{"one", "two", `\x1b`, "last"} {
		if l := got[i]; l.Text != text || l.Worker != "w-7" || l.PID != pid || l.Lost != 0 || l.Time.IsZero() {
			t.Errorf("line %d is %+v, want %q of w-7, pid %d", i, l, text, pid)
		}
	}
}

// A process that left the group and holds the log's other end holds nothing up.
func TestHolderOfTheLogHoldsNothingUp(t *testing.T) {
	w := start(t, puppetSpec(t, puppet.Handshake(puppet.Step{Do: "holder", N: 1000}, puppet.Step{Do: "request"}, puppet.Step{Do: "die", Text: "signal:SIGSEGV"})))
	_, err := w.Ping(patient(t))
	c := wantCrash(t, err, host.StagePing, host.CauseSignal)
	var holder int
	if _, err := fmt.Sscanf(c.LogTail, "holder %d", &holder); err != nil {
		t.Fatalf("%v in %q", err, c.LogTail)
	}
	if err := unix.Kill(holder, unix.SIGKILL); err != nil {
		t.Errorf("the holder did not outlive the worker, so this proves nothing: %v", err)
	}
}
