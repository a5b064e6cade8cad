package coreml

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/synapse-module/workers/engines/coreml/internal/stubcoreml"
	"github.com/synapse-module/workers/protocol"
)

type op = stubcoreml.Op

// planned gives a model a compute plan.
func planned(m stub, ops ...op) stub {
	m.Program = map[string][]op{"main": ops}
	return m
}

var (
	onEngine = op{Name: "ios16.linear", Device: "N", Supported: "CN", Cost: "0.6"}
	onCPU    = op{Name: "ios16.gather", Device: "C", Supported: "C", Cost: "0.2"}
)

func TestPlacementRecord(t *testing.T) {
	r := newRig(t)
	got := r.must(planned(pooled(1, 8), op{Name: "const"}, onEngine, onEngine, onCPU, op{Name: "cast", Device: "C"}, op{Name: "softmax", Device: "G", Cost: "0.6"}, op{Name: "shape"}), "").Describe().Placement
	cost := 1.2 / 2
	want := &protocol.Placement{
		Share: 2.0 / 5, CostShare: &cost, Coverage: 5.0 / 6, NeuralEngine: 2, GPU: 1, CPU: 2, NoUsage: 1,
		ComputeUnits: "cpu_and_neural_engine", OS: "macOS 15.1 (24B83)", Chip: "stub", OffEngine: []string{"cast", "ios16.gather", "softmax"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("got %+v, want %+v", got, want)
	}
}

func TestPlacementOfAllOnTheEngine(t *testing.T) {
	got := newRig(t).must(planned(pooled(1, 8), onEngine), "").Describe().Placement
	if got == nil || got.Share != 1 || got.Coverage != 1 || got.OffEngine == nil || len(got.OffEngine) != 0 {
		t.Fatalf("got %+v", got)
	}
}

// A known share of nothing on the engine is 0; no cost is no cost share.
func TestPlacementOfATinyModel(t *testing.T) {
	got := newRig(t).must(planned(pooled(1, 8), op{Name: "matmul", Device: "C", Supported: "CN"}), "").Describe().Placement
	if got == nil || got.Share != 0 || got.CostShare != nil {
		t.Fatalf("got %+v", got)
	}
}

// Buckets of functions and of packages are summed.
func TestPlacementSumsTheUnits(t *testing.T) {
	functions := with(pooled(1, 8), keyFunctions, "s8,s16")
	functions.Functions = map[string]stub{"s8": {}, "s16": {Inputs: pooled(1, 16).Inputs}}
	functions.Program = map[string][]op{"s8": {onEngine, onCPU}, "s16": {onEngine, onEngine}}
	r := newRig(t)
	if got := r.must(functions, "").Describe().Placement; got == nil || got.Share != 0.75 || got.Function != "s8,s16" {
		t.Errorf("functions: %+v", got)
	}
	dir := t.TempDir()
	stubcoreml.WritePackage(t, dir, "s8.mlpackage", planned(pooled(1, 8), onEngine, onCPU))
	stubcoreml.WritePackage(t, dir, "s16.mlpackage", planned(pooled(1, 16), onEngine, onEngine))
	m, err := r.load(dir, formatPackage, "")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if got := m.Describe().Placement; got == nil || got.Share != 0.75 || got.Function != "" {
		t.Errorf("packages: %+v", got)
	}
}

// Where the share is not known it is absent, the log says why, and the model
// serves; unless a least share was asked for.
func TestPlacementUnknown(t *testing.T) {
	onCPUOnly := planned(pooled(1, 8), onEngine)
	for name, c := range map[string]struct {
		model  stub
		config string
		why    string
	}{
		"no usage for any operation": {planned(pooled(1, 8), op{Name: "const"}, op{Name: "linear"}), `{`, "tells a device for none of the operations"},
		"the plan fails":             {failing(onCPUOnly, "plan_error"), `{`, "Failed to PropagateInputTensorShapes"},
		"the plan is nil":            {failing(onCPUOnly, "plan_nil"), `{`, "gave no reason"},
		"no structure":               {pooled(1, 8), `{`, "no program, neural network or pipeline"},
		"another function":           {stubProgram("other"), `{`, `has no function "main"`},
		"the CPU was asked for":      {onCPUOnly, `{"compute_units":"cpu_only",`, "leave the Neural Engine out"},
		"the GPU was asked for":      {onCPUOnly, `{"compute_units":"cpu_and_gpu",`, "leave the Neural Engine out"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			m := r.must(c.model, strings.TrimSuffix(c.config, ",")+"}")
			if p := m.Describe().Placement; p != nil {
				t.Errorf("placement is %+v", p)
			}
			if !strings.Contains(strings.ReplaceAll(r.log.String(), `\"`, `"`), c.why) {
				t.Errorf("the log does not say %q:\n%s", c.why, r.log)
			}
			_, err := r.loadPackage(c.model, c.config+`"min_placement_share":0}`)
			refusal(t, err, protocol.CodeArtifactInvalid, "is not known")
		})
	}
}

func stubProgram(function string) stub {
	m := pooled(1, 8)
	m.Program = map[string][]op{function: {onEngine}}
	return m
}

func TestMinPlacementShare(t *testing.T) {
	r := newRig(t)
	m := planned(pooled(1, 8), onEngine, onEngine, onEngine, onCPU)
	for share, passes := range map[float64]bool{0: true, 0.75: true, 0.76: false, 1: false} {
		got, err := r.loadPackage(m, fmt.Sprintf(`{"min_placement_share":%g}`, share))
		if passes != (err == nil) {
			t.Errorf("at least %g: %v", share, err)
		}
		if err == nil {
			got.Close()
			continue
		}
		refusal(t, err, protocol.CodeArtifactInvalid, "75.0 % of the operations of the artifact are planned on the Neural Engine (3 of 4)")
		refusal(t, err, protocol.CodeArtifactInvalid, "off it are ios16.gather")
	}
}

// A plan is of the units that the model is served with.
func TestPlanOfTheUnitsInForce(t *testing.T) {
	r := newRig(t)
	m := planned(pooled(1, 8), onEngine)
	m.PlanUnits = 2
	if p := r.must(m, `{"compute_units":"all"}`).Describe().Placement; p == nil || p.ComputeUnits != "all" {
		t.Errorf("all: %+v", p)
	}
	if p := r.must(m, "").Describe().Placement; p != nil {
		t.Errorf("a plan of other units was taken: %+v", p)
	}
}
