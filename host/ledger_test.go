package host

import (
	"errors"
	"strings"
	"testing"
	"time"
)

var (
	t0     = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	poison = pair{"sha256:aa", `{"x":1}`}
)

func crashOf(k pair, s Stage) *EngineCrashed {
	return &EngineCrashed{Stage: s, Cause: CauseSignal, Signal: "SIGSEGV", Model: k.model, Config: k.config, LogTail: "boom\n"}
}

func minutes(n int) time.Time { return t0.Add(time.Duration(n) * time.Minute) }

func TestQuarantineAfterCrashesWithinTheWindow(t *testing.T) {
	l := newLedger(DefaultPolicy()) // 3 within 10 minutes
	for _, at := range []int{0, 9, 11} {
		l.crash(minutes(at), crashOf(poison, StageEmbed))
		if _, err := l.admit(minutes(at), poison); err != nil {
			t.Fatalf("minute %d: %v", at, err) // the first has left the window
		}
	}
	l.crash(minutes(12), crashOf(poison, StageEmbed))
	_, err := l.admit(minutes(12), poison)
	var q *Quarantined
	if !errors.As(err, &q) || !q.Since.Equal(minutes(12)) || !q.Until.Equal(minutes(42)) || q.Crashes != 3 || q.Last.LogTail != "boom\n" {
		t.Fatalf("got %+v, %v", q, err)
	}
	for _, say := range []string{"sha256:aa", `{"x":1}`, "2030-01-01T00:12:00Z", "2030-01-01T00:42:00Z", "Reprobe", "SIGSEGV", "boom"} {
		if !strings.Contains(err.Error(), say) {
			t.Errorf("%v does not say %s", err, say)
		}
	}
	for _, other := range []pair{{poison.model, ""}, {"sha256:bb", poison.config}} {
		if _, err := l.admit(minutes(12), other); err != nil {
			t.Errorf("%v suffers for %v: %v", other, poison, err)
		}
	}
}

// Report 44: quarantine ends by the documented route and no other.
func TestReport44_QuarantineEnds(t *testing.T) {
	fresh := func() *ledger {
		l := newLedger(DefaultPolicy())
		for range 3 {
			l.crash(t0, crashOf(poison, StageLoad))
		}
		return l
	}
	t.Run("one trial at a time after the set time", func(t *testing.T) {
		l := fresh()
		if _, err := l.admit(minutes(29), poison); err == nil {
			t.Fatal("a trial before its time")
		}
		if trial, err := l.admit(minutes(30), poison); !trial || err != nil {
			t.Fatalf("no trial when it is due: %v", err)
		}
		if _, err := l.admit(minutes(31), poison); err == nil {
			t.Fatal("a second trial beside the first")
		}
		l.endTrial(poison, true)
		if trial, err := l.admit(minutes(31), poison); trial || err != nil {
			t.Fatalf("success did not clear it: %v", err)
		}
	})
	t.Run("a trial that crashes", func(t *testing.T) {
		l := fresh()
		_, _ = l.admit(minutes(30), poison)
		l.crash(minutes(30), crashOf(poison, StageEmbed))
		_, err := l.admit(minutes(59), poison)
		var q *Quarantined
		if !errors.As(err, &q) || !q.Since.Equal(t0) || !q.Until.Equal(minutes(60)) || q.Crashes != 4 || q.Last.Stage != StageEmbed {
			t.Fatalf("got %+v, %v", q, err)
		}
	})
	t.Run("a trial without an outcome", func(t *testing.T) {
		l := fresh()
		_, _ = l.admit(minutes(30), poison)
		l.endTrial(poison, false)
		if trial, err := l.admit(minutes(30), poison); !trial || err != nil {
			t.Fatalf("the next is no trial: %v", err)
		}
	})
	t.Run("by call", func(t *testing.T) {
		l := fresh()
		if !l.reprobe(minutes(1), poison) || l.reprobe(minutes(1), pair{}) {
			t.Fatal("reprobe knows the wrong pairs")
		}
		if trial, err := l.admit(minutes(1), poison); !trial || err != nil {
			t.Fatalf("no trial after the call: %v", err)
		}
	})
}

func TestCrashesThatCountForNoPair(t *testing.T) {
	l := newLedger(DefaultPolicy())
	for range 9 {
		l.crash(t0, &EngineCrashed{Stage: StageHello, Cause: CauseExit})
		l.crash(t0, crashOf(poison, StageShutdown)) // counts for nothing
	}
	if _, err := l.admit(t0, poison); err != nil || l.degraded(t0) {
		t.Fatalf("nine crashes: degraded %v, %v", l.degraded(t0), err)
	}
	l.crash(t0, &EngineCrashed{Stage: StageIdle, Cause: CauseExit})
	if !l.degraded(minutes(9)) || l.degraded(minutes(10)) {
		t.Fatalf("ten crashes: degraded in the window %v, after it %v", l.degraded(minutes(9)), l.degraded(minutes(10)))
	}
}

func TestLedgerForgets(t *testing.T) {
	l := newLedger(DefaultPolicy())
	for i := range 1000 {
		l.crash(minutes(i), crashOf(pair{"sha256:" + string(rune('a'+i%26)), ""}, StageEmbed))
	}
	if len(l.pairs) > 10 || len(l.lane) > 10 {
		t.Fatalf("%d pairs, %d crashes are kept", len(l.pairs), len(l.lane))
	}
}

func TestBackoff(t *testing.T) {
	p := DefaultPolicy()
	for failures, want := range map[int]time.Duration{
		0: 0, 1: 0, 2: 100 * time.Millisecond, 3: 200 * time.Millisecond, 4: 400 * time.Millisecond,
		10: 25600 * time.Millisecond, 11: 30 * time.Second, 1000: 30 * time.Second,
	} {
		if got := p.backoff(failures, 0); got != want {
			t.Errorf("after %d failures %v, want %v", failures, got, want)
		}
		if got := p.backoff(failures, 0.999); got > want || got < want/2 {
			t.Errorf("after %d failures, shortened: %v of %v", failures, got, want)
		}
	}
}

func TestPolicyIsChecked(t *testing.T) {
	if _, err := (Policy{}).withDefaults(); err != nil {
		t.Fatal(err)
	}
	for field, spoil := range map[string]func(*Policy){
		"PairCrashes":   func(p *Policy) { p.PairCrashes = -1 },
		"PairWindow":    func(p *Policy) { p.PairWindow = 0 },
		"Reprobe":       func(p *Policy) { p.Reprobe = -time.Second },
		"LaneCrashes":   func(p *Policy) { p.LaneCrashes = 0 },
		"LaneWindow":    func(p *Policy) { p.LaneWindow = 0 },
		"BackoffMin":    func(p *Policy) { p.BackoffMin = 0 },
		"BackoffMax":    func(p *Policy) { p.BackoffMax = p.BackoffMin - 1 },
		"StartAttempts": func(p *Policy) { p.StartAttempts = 0 },
		"RefreshEvery":  func(p *Policy) { p.RefreshEvery = 0 },
		"MaxMemory":     func(p *Policy) { p.MaxMemory = -1 },
		"MaxRequests":   func(p *Policy) { p.MaxRequests = -1 },
	} {
		p := DefaultPolicy()
		spoil(&p)
		if _, err := p.withDefaults(); err == nil || !strings.Contains(err.Error(), "Policy."+field+" ") {
			t.Errorf("%s: got %v", field, err)
		}
	}
}
