package bridge

import (
	"strings"
	"testing"

	"github.com/synapse-module/workers/engines/coreml/internal/objc"
)

// altered is a runtime of another macOS: with messages missing or of other types.
type altered struct {
	objc.Runtime
	version   string
	missing   string            // a selector
	encodings map[string]string // by selector
	selectors map[objc.Selector]string
}

func alter(t *testing.T, version string) *altered {
	return &altered{Runtime: runtimeOf(t), version: version, selectors: map[objc.Selector]string{}}
}

func (a *altered) System() objc.System {
	s := a.Runtime.System()
	s.Version = a.version
	return s
}

func (a *altered) Selector(name string) objc.Selector {
	s := a.Runtime.Selector(name)
	a.selectors[s] = name
	return s
}

func (a *altered) Encoding(class objc.ID, s objc.Selector, classMethod bool) (string, bool) {
	name := a.selectors[s]
	if name == a.missing {
		return "", false
	}
	if e, ok := a.encodings[name]; ok {
		return e, true
	}
	return a.Runtime.Encoding(class, s, classMethod)
}

func TestMissingMessageIsAnErrorThatNamesIt(t *testing.T) {
	rt := alter(t, "15.1")
	rt.missing = "predictionsFromBatch:error:"
	_, err := Open(rt)
	if err == nil || !strings.Contains(err.Error(), "-[MLModel predictionsFromBatch:error:] is missing; it came with macOS 10.14") {
		t.Fatalf("got %v", err)
	}
}

func TestMessageOfOtherTypesIsAWarning(t *testing.T) {
	rt := alter(t, "15.1")
	rt.encodings = map[string]string{"weight": "f16@0:8"}
	b, err := Open(rt)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range b.Differences() {
		if d.String() == "-[MLComputePlanCost weight] has the types f@:, expected are d@:" {
			return
		}
	}
	t.Fatalf("differences are %v", b.Differences())
}

func TestNewerMessagesAreNotNeeded(t *testing.T) {
	for _, c := range []struct {
		version, missing string
		plan, choose     bool
	}{
		{"13.0", "loadContentsOfURL:configuration:completionHandler:", false, false},
		{"14.3.1", "modelStructure", false, false},
		{"14.4", "setFunctionName:", true, false},
		{"15.0", "", true, true},
		{"26.0.1", "", true, true},
	} {
		rt := alter(t, c.version)
		if c.version == "13.0" {
			// One selector of two classes: only the plan's is newer than this macOS.
			rt.missing = "estimatedCostOfMLProgramOperation:"
		} else {
			rt.missing = c.missing
		}
		b, err := Open(rt)
		if err != nil {
			t.Errorf("macOS %s: %v", c.version, err)
			continue
		}
		if b.CanPlan() != c.plan || b.CanSelect() != c.choose {
			t.Errorf("macOS %s: plans %v, functions %v", c.version, b.CanPlan(), b.CanSelect())
		}
	}
}

func TestOldMacOSIsRefused(t *testing.T) {
	_, err := Open(alter(t, "12.7.6"))
	if err == nil || !strings.Contains(err.Error(), "this is macOS 12.7.6") || !strings.Contains(err.Error(), "update macOS") {
		t.Fatalf("got %v", err)
	}
}

func TestOlder(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"14.4", "14.10", true},
		{"14.10", "14.4", false},
		{"15", "15.0", false},
		{"15.0", "15", false},
		{"10.13", "13", true},
		{"26.1", "15.5", false},
		{"14.4", "14.4.1", true},
	} {
		if got := Older(c.a, c.b); got != c.want {
			t.Errorf("Older(%s, %s) is %v", c.a, c.b, got)
		}
	}
}

func TestDevices(t *testing.T) {
	devices := open(t).Devices()
	if len(devices) != 2 || devices[0].Kind != CPU || devices[1] != (Device{NeuralEngine, 16}) {
		t.Fatalf("devices are %v", devices)
	}
	b, err := Open(alter(t, "13.6"))
	if err != nil || b.Devices() != nil {
		t.Fatalf("macOS 13 does not tell its devices: %v, %v", b.Devices(), err)
	}
}

func TestOpenWithoutAStub(t *testing.T) {
	if _, err := objc.Open(""); err == nil || !strings.Contains(err.Error(), "run worker-ane on a Mac") {
		t.Errorf("got %v", err)
	}
	if _, err := objc.Open(t.TempDir()); err == nil || !strings.Contains(err.Error(), objc.StubLibrary) {
		t.Errorf("got %v", err)
	}
}
