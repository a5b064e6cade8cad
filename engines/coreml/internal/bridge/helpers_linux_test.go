package bridge

import (
	"context"
	"testing"
	"time"

	"github.com/synapse-module/workers/engines/coreml/internal/objc"
	"github.com/synapse-module/workers/engines/coreml/internal/stubcoreml"
)

// leakPatience is how long an object may live on after its call: completion
// handlers' threads free theirs within microseconds.
const leakPatience = 10 * time.Second

// patience bounds the waits that must end: far over what a loaded machine needs.
const patience = time.Minute

func runtimeOf(t testing.TB) objc.Runtime {
	t.Helper()
	rt, err := objc.Open(stubcoreml.Dir(t))
	if err != nil {
		t.Fatal(err)
	}
	return rt
}

func open(t testing.TB) *Bridge {
	t.Helper()
	b, err := Open(runtimeOf(t))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func soon(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// encoder is a model of pooled float16 vectors that are spread in memory as the
// Neural Engine's are.
func encoder() stubcoreml.Model {
	return stubcoreml.Model{
		Inputs:  map[string]stubcoreml.Feature{"input_ids": stubcoreml.IDs(1, 4), "attention_mask": stubcoreml.IDs(1, 4)},
		Outputs: map[string]stubcoreml.Feature{"embedding": {Type: stubcoreml.Float16, Shape: []int{1, 6}, Gap: 32}},
	}
}

func load(t testing.TB, b *Bridge, m stubcoreml.Model) *Model {
	t.Helper()
	loaded, err := b.Load(soon(t), stubcoreml.WriteCompiled(t, t.TempDir(), "m.mlmodelc", m), Configuration{Units: CPUAndNeuralEngine})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(loaded.Close)
	return loaded
}

func row(name string, values ...int32) Tensor {
	return Tensor{Name: name, Shape: []int{1, len(values)}, Values: values}
}

// forgotten are the blocks of calls that were given up, which are leaked on
// purpose.
var forgotten int

func forgetBlocks() { forgotten = objc.LiveBlocks() }

// noneLive fails the test where anything of Core ML's or a block outlived it.
func noneLive(t *testing.T) {
	t.Helper()
	var live stubcoreml.Live
	for deadline := time.Now().Add(leakPatience); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if live, _ = stubcoreml.Counters(t); live == (stubcoreml.Live{}) && objc.LiveBlocks() == forgotten {
			return
		}
	}
	t.Fatalf("left behind: %+v, %d blocks", live, objc.LiveBlocks()-forgotten)
}
