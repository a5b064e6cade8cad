package bridge

import (
	"maps"
	"strings"
	"testing"

	"github.com/synapse-module/workers/engines/coreml/internal/stubcoreml"
)

type op = stubcoreml.Op

func planOf(t *testing.T, m stubcoreml.Model, c Configuration) (Plan, error) {
	t.Helper()
	b := open(t)
	p, err := b.Plan(soon(t), stubcoreml.WriteCompiled(t, t.TempDir(), "m.mlmodelc", m), c)
	noneLive(t)
	return p, err
}

func program(ops ...op) stubcoreml.Model {
	return stubcoreml.Model{Program: map[string][]op{"main": ops}, PlanUnits: 3}
}

var onEngine = Configuration{Units: CPUAndNeuralEngine}

// The rows of the edge-case table that a compute plan can show.
func TestPlan(t *testing.T) {
	linear := op{Name: "ios16.linear", Device: "N", Supported: "CN", Cost: "0.5"}
	for name, c := range map[string]struct {
		model        stubcoreml.Model
		want         Plan
		dispatchable int
	}{
		"const has no usage and is no work": {
			program(op{Name: "const"}, op{Name: "const"}, linear),
			Plan{On: map[DeviceKind]int{NeuralEngine: 1}, Constants: 2, NESupported: 1, Cost: 0.5, NECost: 0.5, Costed: 1},
			1,
		},
		"no usage for any operation": {
			program(op{Name: "const"}, op{Name: "ios18.linear"}, op{Name: "ios18.gelu"}),
			Plan{Constants: 1, NoUsage: 2},
			0,
		},
		"usage, and no cost": {
			program(op{Name: "ios16.linear", Device: "N", Supported: "N"}, op{Name: "ios16.gather", Device: "C", Supported: "C"}),
			Plan{On: map[DeviceKind]int{NeuralEngine: 1, CPU: 1}, NESupported: 1, OffEngine: map[string]int{"ios16.gather": 1}},
			2,
		},
		"constexpr has usage on the CPU and is no work": {
			program(op{Name: "ios16.constexpr_lut_to_dense", Device: "C", Supported: "C"}, op{Name: "constexpr_cast", Device: "C"}, linear),
			Plan{On: map[DeviceKind]int{NeuralEngine: 1}, Constants: 2, NESupported: 1, Cost: 0.5, NECost: 0.5, Costed: 1},
			1,
		},
		"a tiny model: supported by the Neural Engine, preferred on the CPU": {
			program(op{Name: "ios16.matmul", Device: "C", Supported: "CN", Cost: "0.25"}),
			Plan{On: map[DeviceKind]int{CPU: 1}, NESupported: 1, Cost: 0.25, Costed: 1, OffEngine: map[string]int{"ios16.matmul": 1}},
			1,
		},
		"no preferred device, and one of an unknown class, count against the share": {
			program(linear, op{Name: "cond", Device: "?", Supported: "N"}, op{Name: "cond", Device: "X", Supported: "X"}),
			Plan{On: map[DeviceKind]int{NeuralEngine: 1, UnknownDevice: 2}, NESupported: 2, Cost: 0.5, NECost: 0.5, Costed: 1, OffEngine: map[string]int{"cond": 2}},
			3,
		},
		"nested blocks are walked": {
			program(op{Name: "cond", Device: "C", Blocks: [][]op{{linear, {Name: "const"}}, {{Name: "softmax", Device: "G"}, {Name: "while_loop", Blocks: [][]op{{linear}}}}}}),
			Plan{On: map[DeviceKind]int{NeuralEngine: 2, GPU: 1, CPU: 1}, NoUsage: 1, Constants: 1, NESupported: 2, Cost: 1, NECost: 1, Costed: 2, OffEngine: map[string]int{"cond": 1, "softmax": 1}},
			4,
		},
		"a neural network": {
			stubcoreml.Model{Network: []op{{Name: "innerProduct", Device: "N", Supported: "N"}, {Name: "embedding", Device: "C"}, {Name: "permute"}}},
			Plan{On: map[DeviceKind]int{NeuralEngine: 1, CPU: 1}, NoUsage: 1, NESupported: 1, OffEngine: map[string]int{"embedding": 1}},
			2,
		},
		"a pipeline is the sum of its models": {
			stubcoreml.Model{Pipeline: []stubcoreml.Model{program(linear), {Network: []op{{Name: "softmax", Device: "C"}}}, {Pipeline: []stubcoreml.Model{program(linear)}}}},
			Plan{On: map[DeviceKind]int{NeuralEngine: 2, CPU: 1}, NESupported: 2, Cost: 1, NECost: 1, Costed: 2, OffEngine: map[string]int{"softmax": 1}},
			3,
		},
		"an empty program": {program(), Plan{}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := planOf(t, c.model, onEngine)
			if err != nil {
				t.Fatal(err)
			}
			if !maps.Equal(got.On, c.want.On) || !maps.Equal(got.OffEngine, c.want.OffEngine) {
				t.Errorf("on %v, off the engine %v; want %v, %v", got.On, got.OffEngine, c.want.On, c.want.OffEngine)
			}
			got.On, got.OffEngine = c.want.On, c.want.OffEngine
			if got.NoUsage != c.want.NoUsage || got.Constants != c.want.Constants || got.NESupported != c.want.NESupported ||
				got.Cost != c.want.Cost || got.NECost != c.want.NECost || got.Costed != c.want.Costed || got.Dispatchable() != c.dispatchable {
				t.Errorf("got %+v of %d, want %+v of %d", got, got.Dispatchable(), c.want, c.dispatchable)
			}
		})
	}
}

func TestPlanOfAFunction(t *testing.T) {
	m := stubcoreml.Model{Program: map[string][]op{
		"s32": {{Name: "a", Device: "N"}}, "s64": {{Name: "a", Device: "N"}, {Name: "b", Device: "C"}},
	}}
	p, err := planOf(t, m, Configuration{Units: CPUAndNeuralEngine, Function: "s64"})
	if err != nil || p.On[NeuralEngine] != 1 || p.On[CPU] != 1 {
		t.Errorf("plan of s64 is %+v, %v", p, err)
	}
	if _, err := planOf(t, m, onEngine); err == nil || !strings.Contains(err.Error(), `no function "main"`) {
		t.Errorf("plan of no function: %v", err)
	}
}

// The plan is of the units that are served with: another plan would be a share of
// something else.
func TestPlanIsOfTheUnitsServedWith(t *testing.T) {
	if _, err := planOf(t, program(op{Name: "a", Device: "N"}), Configuration{Units: AllUnits}); err == nil || !strings.Contains(err.Error(), "compute units") {
		t.Errorf("got %v", err)
	}
}

func TestPlanOfNothing(t *testing.T) {
	if _, err := planOf(t, stubcoreml.Model{Metadata: map[string]string{}}, onEngine); err == nil || !strings.Contains(err.Error(), "no program, neural network or pipeline") {
		t.Errorf("got %v", err)
	}
}
