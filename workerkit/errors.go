package workerkit

import "github.com/synapse-module/workers/protocol"

// ArtifactInvalid refuses a LOAD because of the artifact's bytes.
func ArtifactInvalid(format string, args ...any) error {
	return protocol.Errorf(protocol.CodeArtifactInvalid, format, args...)
}

// ConfigInvalid refuses a LOAD because of its runtime_config.
func ConfigInvalid(format string, args ...any) error {
	return protocol.Errorf(protocol.CodeConfigInvalid, format, args...)
}

// OOM refuses work because the memory is not there.
func OOM(format string, args ...any) error {
	return protocol.Errorf(protocol.CodeOOM, format, args...)
}

// RequestInvalid refuses a request that the model cannot take.
func RequestInvalid(format string, args ...any) error {
	return protocol.Errorf(protocol.CodeRequestInvalid, format, args...)
}

// Unsupported refuses what the engine or model cannot do faithfully.
func Unsupported(format string, args ...any) error {
	return protocol.Errorf(protocol.CodeUnsupported, format, args...)
}

// EngineFailed reports that the engine failed and the worker is still sound.
func EngineFailed(format string, args ...any) error {
	return protocol.Errorf(protocol.CodeEngineFailed, format, args...)
}
