package suites

import (
	"slices"
	"testing"

	"github.com/synapse-module/workers/certify/suite"
	"github.com/synapse-module/workers/internal/assets"
)

// Every shipped suite loads, its data fits it, and its artifacts are assets: on
// every platform, whatever engine an artifact is for.
func TestShippedSuitesAreSound(t *testing.T) {
	lock, err := assets.LoadLock("../../" + assets.LockName)
	if err != nil {
		t.Fatal(err)
	}
	known := func(name string) bool {
		return slices.ContainsFunc(lock.Assets, func(a assets.Asset) bool { return a.Name == name })
	}
	tasks := map[suite.Task]bool{}
	for _, name := range Names() {
		s, err := Load(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		tasks[s.Task] = true
		if s.Name != name {
			t.Errorf("the folder %s holds the suite %s", name, s.Name)
		}
		if s.People != nil && !known(s.People.Asset) {
			t.Errorf("%s: no asset %s", name, s.People.Asset)
		}
		for _, a := range s.Artifacts {
			if !known(a.Name) {
				t.Errorf("%s: no asset %s", name, a.Name)
			}
			for _, w := range a.WrongLoads {
				if w.Artifact != "" && !known(w.Artifact) {
					t.Errorf("%s: %s: no asset %s", name, w.Name, w.Artifact)
				}
			}
			if s.GatesFor(a).Placement == nil && a.Engine == "coreml" {
				t.Errorf("%s: %s is not held to the Neural Engine", name, a.Name)
			}
		}
	}
	for _, task := range []suite.Task{suite.Embed, suite.Rerank, suite.Generate} {
		if !tasks[task] {
			t.Errorf("no suite for the task %s", task)
		}
	}
}
