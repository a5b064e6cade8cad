//go:build cgo

package onnx

import (
	"testing"

	"github.com/synapse-module/workers/internal/configdoc"
)

func TestConfigurationIsDocumented(t *testing.T) { configdoc.Check(t, "onnx", options) }
