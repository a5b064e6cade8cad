// Command worker-ane serves Core ML models on Apple's Neural Engine. See package
// coreml. `worker-ane selfcheck` shows what this Mac makes of one.
package main

import (
	"os"

	"github.com/synapse-module/workers/engines/coreml"
	"github.com/synapse-module/workers/workerkit"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "selfcheck" {
		os.Exit(selfcheck(os.Args[2:], os.Stdout, os.Stderr))
	}
	workerkit.Main(workerkit.Worker{Name: "worker-ane", Open: coreml.Open})
}
