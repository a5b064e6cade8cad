//go:build linux

package chaos

import (
	"strings"
	"testing"

	"github.com/synapse-module/workers/internal/puppet"
	"github.com/synapse-module/workers/internal/wiretest"
)

func TestMain(m *testing.M) {
	puppet.Main()
	m.Run()
}

// share of the campaign that belongs to the ordinary tests: about a minute on two
// cores. The whole is make chaos.
const share = 1000

func TestChaosShare(t *testing.T) {
	faults := share
	if testing.Short() {
		faults /= 10
	}
	r, err := Run(Config{Seed: 1, Faults: faults, Only: -1, Parallel: 8, Fake: wiretest.Build(t, "cmd/worker-fake")})
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	r.Print(&text)
	t.Log("\n" + text.String())
	if !r.OK() || r.Total().Faults != faults {
		t.Fail()
	}
}
