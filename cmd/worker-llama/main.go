// Worker-llama is the Synapse engine worker over llama.cpp.
package main

import (
	"github.com/synapse-module/workers/engines/llama"
	"github.com/synapse-module/workers/workerkit"
)

func main() {
	workerkit.Main(workerkit.Worker{Name: "worker-llama", Lib: "llama", Open: llama.Open})
}
