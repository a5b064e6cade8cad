//go:build !cgo

package onnx

import (
	"errors"

	"github.com/synapse-module/workers/workerkit"
)

// Open refuses: ONNX Runtime is reached through cgo alone. It is here so that a build
// without cgo, as Core ML's is, still builds the whole repository.
func Open(workerkit.Setup) (workerkit.Engine, error) {
	return nil, errors.New("built with CGO_ENABLED=0, which leaves ONNX Runtime's binding out: build with a C compiler and CGO_ENABLED=1")
}
