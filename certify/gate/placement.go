package gate

import (
	"math"

	"github.com/synapse-module/workers/certify/suite"
	"github.com/synapse-module/workers/protocol"
)

// Placement holds the share of a model's operations that the worker plans for
// the Neural Engine, as PONG and DESCRIPTION say it. A share that is due and
// absent fails.
func Placement(t suite.Placement, pong *float64, d *protocol.Placement) []Check {
	share := math.NaN()
	if pong != nil {
		share = *pong
	}
	byCount := hold("placement", "share by count (PONG)", share, AtLeast, t.MinShare, "")
	if pong == nil {
		byCount.Detail = "PONG has no placement_share"
	}
	checks := []Check{byCount}
	described, cost := math.NaN(), math.NaN()
	if d != nil {
		described = d.Share
		if d.CostShare != nil {
			cost = *d.CostShare
		}
	}
	checks = append(checks, hold("placement", "share by count (DESCRIPTION)", described, AtLeast, t.MinShare, ""))
	if t.MinCostShare > 0 {
		checks = append(checks, hold("placement", "share by cost", cost, AtLeast, t.MinCostShare, ""))
	}
	return checks
}
