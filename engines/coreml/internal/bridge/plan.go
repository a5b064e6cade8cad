package bridge

import (
	"context"
	"fmt"
	"strings"

	"github.com/synapse-module/workers/engines/coreml/internal/objc"
)

// Plan is Core ML's compute plan of a model's function in counts. An operation is
// dispatchable where Core ML tells a device usage for it and it is no constant.
type Plan struct {
	On           map[DeviceKind]int // dispatchable operations by preferred device
	NoUsage      int                // operations, constants aside, of which Core ML tells nothing
	Constants    int                // const and constexpr_*: values, not work
	NESupported  int                // dispatchable operations that the Neural Engine could take
	Cost, NECost float64            // sums of the estimated weights, and of those on the Neural Engine
	Costed       int                // dispatchable operations with an estimated weight
	OffEngine    map[string]int     // dispatchable operations not on the Neural Engine, by name
}

// Dispatchable is how many operations Core ML dispatches to a device.
func (p Plan) Dispatchable() int {
	return p.On[NeuralEngine] + p.On[GPU] + p.On[CPU] + p.On[UnknownDevice]
}

// defaultFunction is the name of a program's only function.
const defaultFunction = "main"

// Plan makes the compute plan of the .mlmodelc at path. [Bridge.CanPlan] must
// hold. The plan is of the configuration's function; a pipeline's sub-models are
// summed.
func (b *Bridge) Plan(ctx context.Context, path string, c Configuration) (Plan, error) {
	w := planWalk{b: b, plan: Plan{On: map[DeviceKind]int{}, OffEngine: map[string]int{}}}
	err := b.scope(func() error {
		configuration := b.configuration(c)
		defer b.m.Release.to(configuration)
		var err error
		w.source, err = b.await(ctx, "make a compute plan", func(handler objc.ID) {
			b.m.LoadPlan.toClass(b.fileURL(path), configuration, handler)
		})
		if err != nil {
			return err
		}
		defer b.m.Release.to(w.source)
		return w.structure(b.m.ModelStructure.to(w.source), c.Function)
	})
	return w.plan, err
}

// planWalk adds up one MLComputePlan.
type planWalk struct {
	b      *Bridge
	source objc.ID
	plan   Plan
}

func (w *planWalk) structure(s objc.ID, function string) error {
	m := &w.b.m
	program, network, pipeline := m.Program.to(s), m.NeuralNetwork.to(s), m.Pipeline.to(s)
	switch {
	case program != 0:
		return w.program(program, function)
	case network != 0:
		for _, layer := range w.b.objects(m.Layers.to(network)) {
			w.count(w.b.goString(m.LayerType.to(layer)), m.LayerUsage.to(w.source, layer), 0)
		}
	case pipeline != 0:
		for _, sub := range w.b.objects(m.SubModels.to(pipeline)) {
			if err := w.structure(sub, function); err != nil {
				return err
			}
		}
	default:
		return fmt.Errorf("the model is no program, neural network or pipeline: its compute plan cannot be read")
	}
	return nil
}

func (w *planWalk) program(program objc.ID, function string) error {
	functions := w.b.m.Functions.to(program)
	if function == "" {
		function = defaultFunction
	}
	f := w.b.m.ObjectForKey.to(functions, w.b.string(function))
	if f == 0 {
		return fmt.Errorf("the compute plan has no function %q", function)
	}
	w.block(w.b.m.FunctionBlock.to(f))
	return nil
}

func (w *planWalk) block(block objc.ID) {
	m := &w.b.m
	for _, op := range w.b.objects(m.BlockOperations.to(block)) {
		name := w.b.goString(m.OperatorName.to(op))
		w.count(name, m.OperationUsage.to(w.source, op), m.OperationCost.to(w.source, op))
		for _, inner := range w.b.objects(m.OperationBlocks.to(op)) {
			w.block(inner)
		}
	}
}

// count adds one operation; usage and cost may be nil.
func (w *planWalk) count(name string, usage, cost objc.ID) {
	m, p := &w.b.m, &w.plan
	switch {
	case isConstant(name):
		p.Constants++
		return
	case usage == 0:
		p.NoUsage++
		return
	}
	kind := w.b.kind(m.PreferredDevice.to(usage))
	p.On[kind]++
	if kind != NeuralEngine {
		p.OffEngine[name]++
	}
	for _, device := range w.b.objects(m.SupportedDevices.to(usage)) {
		if w.b.kind(device) == NeuralEngine {
			p.NESupported++
			break
		}
	}
	if cost == 0 {
		return
	}
	weight := m.CostWeight.to(cost)
	p.Costed++
	p.Cost += weight
	if kind == NeuralEngine {
		p.NECost += weight
	}
}

// isConstant says whether an operator holds a value: "const", or one of those
// that unpack compressed weights when the model is compiled. Names may carry the
// operator set, as in "ios16.constexpr_lut_to_dense".
func isConstant(operator string) bool {
	base := operator[strings.LastIndexByte(operator, '.')+1:]
	return base == "const" || strings.HasPrefix(base, "constexpr_")
}

// Add sums another plan up into p, whose maps must not be nil.
func (p *Plan) Add(other Plan) {
	for kind, n := range other.On {
		p.On[kind] += n
	}
	for name, n := range other.OffEngine {
		p.OffEngine[name] += n
	}
	p.NoUsage += other.NoUsage
	p.Constants += other.Constants
	p.NESupported += other.NESupported
	p.Cost += other.Cost
	p.NECost += other.NECost
	p.Costed += other.Costed
}
