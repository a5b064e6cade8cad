// Command worker-ane serves Core ML models on Apple's Neural Engine. See package
// coreml.
package main

import (
	"github.com/synapse-module/workers/engines/coreml"
	"github.com/synapse-module/workers/workerkit"
)

func main() {
	workerkit.Main(workerkit.Worker{Name: "worker-ane", Open: coreml.Open})
}
