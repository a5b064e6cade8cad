package fake

import (
	"testing"

	"github.com/synapse-module/workers/internal/configdoc"
	"github.com/synapse-module/workers/workerkit"
)

func TestConfigurationIsDocumented(t *testing.T) {
	configdoc.Check(t, "fake", func() []workerkit.Option { return options })
}
