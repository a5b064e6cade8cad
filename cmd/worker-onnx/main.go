// Worker-onnx is the Synapse engine worker over ONNX Runtime.
package main

import (
	"github.com/synapse-module/workers/engines/onnx"
	"github.com/synapse-module/workers/workerkit"
)

func main() {
	workerkit.Main(workerkit.Worker{Name: "worker-onnx", Lib: "onnxruntime", Open: onnx.Open})
}
