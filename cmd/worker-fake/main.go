// Command worker-fake is a worker without an engine: deterministic answers and
// scripted faults, for testing a module in any language. See package fake.
package main

import (
	"github.com/synapse-module/workers/engines/fake"
	"github.com/synapse-module/workers/workerkit"
)

func main() {
	var stream fake.Stream
	workerkit.Main(workerkit.Worker{
		Name:     "worker-fake",
		Open:     func(workerkit.Setup) (workerkit.Engine, error) { return fake.New(&stream), nil },
		WrapConn: stream.Wrap,
	})
}
