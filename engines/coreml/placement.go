package coreml

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/synapse-module/workers/engines/coreml/internal/bridge"
	"github.com/synapse-module/workers/protocol"
	"github.com/synapse-module/workers/workerkit"
)

// planTimeout bounds the compute plan of one unit. A plan takes seconds; a model
// whose plan never comes can still be served, without a share.
const planTimeout = 2 * time.Minute

// placement is the plan of all units, summed. It is nil where the share is not
// known, which is said in the log, and where the Neural Engine was not asked for.
func (e *engine) placement(ctx context.Context, s *session, c workerkit.Config) (*protocol.Placement, error) {
	p, why := e.plan(ctx, s)
	s.unknown = why
	if why != "" {
		s.log.Warn("placement unknown", "artifact", s.name, "reason", why)
	}
	least := c.Float(optMinShare)
	switch {
	case !c.Has(optMinShare):
	case p == nil:
		return nil, workerkit.ArtifactInvalid("runtime_config.%s is %g and the share of %s on the Neural Engine is not known: %s", optMinShare, least, s.name, why)
	case p.Share < least:
		return nil, workerkit.ArtifactInvalid("%.1f %% of the operations of %s are planned on the Neural Engine (%d of %d), runtime_config.%s asks for %.1f %%; off it are %s",
			100*p.Share, s.name, p.NeuralEngine, p.NeuralEngine+p.GPU+p.CPU+p.Unknown, optMinShare, 100*least, strings.Join(p.OffEngine, ", "))
	}
	return p, nil
}

// plan sums the units' plans, or says why there is none.
func (e *engine) plan(ctx context.Context, s *session) (p *protocol.Placement, why string) {
	switch {
	case !hasEngine(s.config.Units):
		return nil, "the compute units leave the Neural Engine out"
	case !e.bridge.CanPlan():
		return nil, "compute plans need macOS 14.4, this is macOS " + e.bridge.System().Version
	}
	sum := bridge.Plan{On: map[bridge.DeviceKind]int{}, OffEngine: map[string]int{}}
	var functions []string
	for _, u := range s.units {
		one, err := e.planOf(ctx, s, u)
		if err != nil {
			return nil, err.Error()
		}
		sum.Add(one)
		if u.function != "" {
			functions = append(functions, u.function)
		}
	}
	p = record(sum)
	if p == nil {
		return nil, "Core ML tells a device for none of the operations; packages for macOS 13 and later were seen to have them"
	}
	system := e.bridge.System()
	p.ComputeUnits = unitsName(s.config.Units)
	p.Function = strings.Join(functions, ",")
	p.OS = "macOS " + system.Version + " (" + system.Build + ")"
	p.Chip = system.Chip
	return p, ""
}

func (e *engine) planOf(ctx context.Context, s *session, u *unit) (bridge.Plan, error) {
	ctx, cancel := context.WithTimeout(ctx, planTimeout)
	defer cancel()
	return e.bridge.Plan(ctx, u.part.path, bridge.Configuration{Units: s.config.Units, Function: u.function})
}

// record writes a plan as the wire has it, or nil where nothing is dispatched: a
// share of nothing is not known.
func record(plan bridge.Plan) *protocol.Placement {
	n := plan.Dispatchable()
	if n == 0 {
		return nil
	}
	p := &protocol.Placement{
		Share:        float64(plan.On[bridge.NeuralEngine]) / float64(n),
		Coverage:     float64(n) / float64(n+plan.NoUsage),
		NeuralEngine: plan.On[bridge.NeuralEngine],
		GPU:          plan.On[bridge.GPU],
		CPU:          plan.On[bridge.CPU],
		Unknown:      plan.On[bridge.UnknownDevice],
		NoUsage:      plan.NoUsage,
		OffEngine:    slices.Sorted(maps.Keys(plan.OffEngine)),
	}
	if p.OffEngine == nil {
		p.OffEngine = []string{}
	}
	if plan.Cost > 0 {
		share := plan.NECost / plan.Cost
		p.CostShare = &share
	}
	return p
}

func unitsName(u bridge.Units) string {
	for name, units := range computeUnits {
		if units == u {
			return name
		}
	}
	return ""
}
