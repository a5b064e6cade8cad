package bridge

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/synapse-module/workers/engines/coreml/internal/stubcoreml"
)

// meanOf is what the stub's encoder answers for a row.
func meanOf(ids []int32, dims int) []float32 {
	v := make([]float32, dims)
	for j := range v {
		var sum float64
		for _, id := range ids {
			sum += stubcoreml.State(id, 0, j)
		}
		v[j] = float32(sum / float64(len(ids)))
	}
	return v
}

// Batches from several goroutines, in float16 with gaps: every value is right and
// nothing is left behind.
func TestPredict(t *testing.T) {
	b := open(t)
	m, err := b.Load(soon(t), stubcoreml.WriteCompiled(t, t.TempDir(), "m.mlmodelc", encoder()), Configuration{Units: CPUAndNeuralEngine})
	if err != nil {
		t.Fatal(err)
	}
	sets := [][]Tensor{
		{row("input_ids", 5, 9, 0, 0), row("attention_mask", 1, 1, 0, 0)},
		{row("input_ids", 3, 1, 4, 1), row("attention_mask", 1, 1, 1, 1)},
	}
	want := fmt.Sprint(append(meanOf([]int32{5, 9}, 6), meanOf([]int32{3, 1, 4, 1}, 6)...))
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 100 {
				got, shape, err := m.Predict(sets, "embedding", nil)
				if err != nil || fmt.Sprint(got) != want || !slices.Equal(shape, []int{1, 6}) {
					t.Errorf("got %v, %v; want %s", got, err, want)
					return
				}
			}
		})
	}
	all.Wait()
	m.Close()
	noneLive(t)
}

func TestPredictAppends(t *testing.T) {
	m := load(t, open(t), encoder())
	got, _, err := m.Predict([][]Tensor{{row("input_ids", 5, 9, 0, 0), row("attention_mask", 1, 1, 0, 0)}}, "embedding", []float32{42})
	if err != nil || len(got) != 7 || got[0] != 42 {
		t.Fatalf("got %v, %v", got, err)
	}
}

func TestHiddenStatesInEveryFloatType(t *testing.T) {
	b := open(t)
	for _, kind := range []int{stubcoreml.Float16, stubcoreml.Float32, stubcoreml.Float64} {
		model := encoder()
		model.Outputs = map[string]stubcoreml.Feature{"last_hidden_state": {Type: kind, Shape: []int{1, 4, 3}}}
		got, _, err := load(t, b, model).Predict([][]Tensor{{row("input_ids", 5, 9, 7, 2), row("attention_mask", 1, 1, 1, 1)}}, "last_hidden_state", nil)
		if err != nil {
			t.Fatal(err)
		}
		for i, id := range []int32{5, 9, 7, 2} {
			for j := range 3 {
				if want := float32(stubcoreml.State(id, 0, j)); got[i*3+j] != want {
					t.Fatalf("%v: state %d,%d is %v, want %v", DataType(kind), i, j, got[i*3+j], want)
				}
			}
		}
	}
}

// What Core ML might answer with an exception is found before it is called.
func TestInputsAreCheckedBeforeCoreMLIsCalled(t *testing.T) {
	model := encoder()
	model.Fault = "predict_kill" // a call that got through would end the test
	model.Inputs["floats"] = stubcoreml.Feature{Type: stubcoreml.Float16, Shape: []int{1, 1}, Optional: true}
	m := load(t, open(t), model)
	ids, mask := row("input_ids", 1, 2, 3, 4), row("attention_mask", 1, 1, 1, 1)
	for want, c := range map[string]struct {
		set    []Tensor
		output string
	}{
		`input attention_mask (int32 [1 4]) is not given`:         {[]Tensor{ids}, "embedding"},
		`the model has no input "token_type_ids"`:                 {[]Tensor{ids, mask, row("token_type_ids", 0, 0, 0, 0)}, "embedding"},
		`input input_ids (int32 [1 4]) does not take int32 [1 3]`: {[]Tensor{row("input_ids", 1, 2, 3), mask}, "embedding"},
		`input floats (float16 [1 1]) does not take int32 [1 1]`:  {[]Tensor{ids, mask, row("floats", 1)}, "embedding"},
		`input "input_ids" has 3 values for the shape [1 4]`:      {[]Tensor{{"input_ids", []int{1, 4}, []int32{1, 2, 3}}, mask}, "embedding"},
		`the model has no output "pooled"`:                        {[]Tensor{ids, mask}, "pooled"},
	} {
		if _, _, err := m.Predict([][]Tensor{c.set}, c.output, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// What comes back is held to what was asked for.
func TestAnswersAreChecked(t *testing.T) {
	b := open(t)
	for fault, want := range map[string]string{
		"predict_error":  "Core ML could not predict: Unable to compute the prediction. (com.apple.CoreML 0)",
		"predict_nil":    "Core ML could not predict and gave no reason",
		"shapes_differ":  `Core ML gave the shapes [2 6] and [1 6] in one batch`,
		"fewer_sets":     "1 of 2 sets of inputs were answered",
		"missing_output": `output "embedding": Core ML gave no array`,
		"short_memory":   "does not fit its memory of 1 elements",
		"hidden_memory":  "the array's memory was not shown",
		"wrong_type":     "an array of int32 is none of floats",
	} {
		model := encoder()
		model.Inputs = map[string]stubcoreml.Feature{"input_ids": stubcoreml.IDs(2, 2)}
		model.Outputs["embedding"] = stubcoreml.Feature{Type: stubcoreml.Float16, Shape: []int{2, 6}}
		model.Fault = fault
		m, err := b.Load(soon(t), stubcoreml.WriteCompiled(t, t.TempDir(), "m.mlmodelc", model), Configuration{})
		if err != nil {
			t.Fatal(err)
		}
		set := []Tensor{{"input_ids", []int{2, 2}, []int32{1, 2, 3, 4}}}
		if _, _, err := m.Predict([][]Tensor{set, set}, "embedding", nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", fault, err)
		}
		m.Close()
	}
	noneLive(t)
}

// Core ML is asked from threads that come and go; pools and blocks must not
// depend on which.
func TestThreads(t *testing.T) {
	m := load(t, open(t), encoder())
	set := []Tensor{row("input_ids", 1, 2, 3, 4), row("attention_mask", 1, 1, 1, 1)}
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
			if _, _, err := m.Predict([][]Tensor{set}, "embedding", nil); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

func BenchmarkPredict(b *testing.B) {
	bridge := open(b)
	model := encoder()
	model.Inputs = map[string]stubcoreml.Feature{"input_ids": stubcoreml.IDs(1, 128), "attention_mask": stubcoreml.IDs(1, 128)}
	model.Outputs["embedding"] = stubcoreml.Feature{Type: stubcoreml.Float16, Shape: []int{1, 384}}
	m := load(b, bridge, model)
	ones := make([]int32, 128)
	for i := range ones {
		ones[i] = 1
	}
	set := [][]Tensor{{row("input_ids", ones...), row("attention_mask", ones...)}}
	var dst []float32
	for b.Loop() {
		var err error
		if dst, _, err = m.Predict(set, "embedding", dst[:0]); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkMessage(b *testing.B) {
	bridge := open(b)
	number := bridge.m.Retain.to(bridge.m.NumberOf.toClass(1 << 40))
	for b.Loop() {
		if bridge.m.LongLongValue.to(number) != 1<<40 {
			b.Fatal("another number")
		}
	}
}
