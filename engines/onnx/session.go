//go:build cgo

package onnx

import (
	"errors"
	"strings"

	ort "github.com/yalue/onnxruntime_go"

	"github.com/synapse-module/workers/workerkit"
)

// sessionOptions translates a runtime_config. Its errors are typed.
func sessionOptions(c workerkit.Config) (*ort.SessionOptions, error) {
	o, err := ort.NewSessionOptions()
	if err != nil {
		return nil, loadError(err)
	}
	err = errors.Join(
		o.SetExecutionMode(ort.ExecutionModeSequential),
		o.SetIntraOpNumThreads(c.Int(optThreads)),
		o.SetInterOpNumThreads(1),
		o.SetGraphOptimizationLevel(optimizations[c.String(optOptimization)]),
		o.SetLogSeverityLevel(ort.LoggingLevelFatal),
		// Spinning threads burn a core while the model is idle; under load from
		// others, giving the core up is the faster way too.
		o.AddSessionConfigEntry("session.intra_op.allow_spinning", "0"),
		o.AddSessionConfigEntry("session.inter_op.allow_spinning", "0"),
	)
	if err == nil && saturates() {
		// The library then uses products of unsigned bytes, slower and exact.
		err = o.AddSessionConfigEntry("session.x64quantprecision", "1")
	}
	if err != nil {
		err = loadError(err)
	} else {
		err = appendProviders(o, accelerated(c))
	}
	if err != nil {
		return nil, errors.Join(err, o.Destroy())
	}
	return o, nil
}

// outOfMemory recognises the library's ways to say so: it has no code for it.
func outOfMemory(err error) bool {
	for _, text := range []string{"bad_alloc", "Failed to allocate memory", "bfc_arena", "BFCArena"} {
		if strings.Contains(err.Error(), text) {
			return true
		}
	}
	return false
}

// maxErrorText bounds what is repeated of the library's words: they hold names
// out of the file, of any length and in any bytes.
const maxErrorText = 1 << 10

// words is the library's error as one clean line.
func words(err error) string {
	s := strings.Join(strings.Fields(strings.ToValidUTF8(err.Error(), "?")), " ")
	if len(s) > maxErrorText {
		s = strings.ToValidUTF8(s[:maxErrorText], "") + "…"
	}
	return s
}

// loadError types the library's error at LOAD.
func loadError(err error) error {
	if outOfMemory(err) {
		return workerkit.OOM("ONNX Runtime found no memory for the model: %s", words(err))
	}
	return workerkit.ArtifactInvalid("ONNX Runtime refuses the model: %s", words(err))
}

// runError types the library's error during a request.
func runError(err error) error {
	if outOfMemory(err) {
		return workerkit.OOM("ONNX Runtime found no memory for the request: %s; lower runtime_config.%s", words(err), optBatchTokens)
	}
	return workerkit.EngineFailed("ONNX Runtime failed: %s", words(err))
}

// givenUp is the answer to a request whose context ended.
func givenUp(err error) error {
	return workerkit.EngineFailed("the request was given up: %v", err)
}
