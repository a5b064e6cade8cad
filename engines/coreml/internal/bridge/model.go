package bridge

import (
	"context"

	"github.com/synapse-module/workers/engines/coreml/internal/objc"
)

// Units is an MLComputeUnits: the devices that Core ML may use.
type Units int64

// The values of MLComputeUnits.
const (
	CPUOnly            Units = 0
	CPUAndGPU          Units = 1
	AllUnits           Units = 2
	CPUAndNeuralEngine Units = 3
)

// Configuration is how a compiled model is to be loaded or planned.
type Configuration struct {
	Units    Units
	Function string // empty for the model's default; else [Bridge.CanSelect] must hold
}

// Model is a loaded model. Close frees it.
type Model struct {
	Inputs   []Feature
	Outputs  []Feature
	Metadata map[string]string // what the author put there

	b     *Bridge
	model objc.ID
}

// Compile compiles the .mlpackage or .mlmodel at path and returns the path of
// the .mlmodelc, which lies in the system's temporary directory: the caller
// moves it away.
func (b *Bridge) Compile(ctx context.Context, path string) (compiled string, err error) {
	err = b.scope(func() error {
		url, err := b.await(ctx, "compile", func(handler objc.ID) {
			b.m.CompileModel.toClass(b.fileURL(path), handler)
		})
		if err != nil {
			return err
		}
		defer b.m.Release.to(url)
		compiled = b.goString(b.m.URLPath.to(url))
		return nil
	})
	return compiled, err
}

// Load loads the .mlmodelc at path.
func (b *Bridge) Load(ctx context.Context, path string, c Configuration) (*Model, error) {
	m := &Model{b: b}
	err := b.scope(func() error {
		configuration := b.configuration(c)
		defer b.m.Release.to(configuration)
		var err error
		m.model, err = b.await(ctx, "load", func(handler objc.ID) {
			b.m.LoadModel.toClass(b.fileURL(path), configuration, handler)
		})
		if err != nil {
			return err
		}
		d := b.m.ModelDescription.to(m.model)
		m.Inputs = b.features(b.m.InputDescriptions.to(d))
		m.Outputs = b.features(b.m.OutputDescriptions.to(d))
		m.Metadata = b.strings(b.m.ObjectForKey.to(b.m.Metadata.to(d), b.metadataKey))
		return nil
	})
	if err != nil {
		return nil, err
	}
	return m, nil
}

// configuration makes an MLModelConfiguration; the caller releases it.
func (b *Bridge) configuration(c Configuration) objc.ID {
	configuration := b.m.Init.to(b.m.AllocConfiguration.toClass())
	b.m.SetComputeUnits.to(configuration, int64(c.Units))
	if c.Function != "" {
		b.m.SetFunctionName.to(configuration, b.string(c.Function))
	}
	return configuration
}

// strings reads an NSDictionary of strings; nil is empty.
func (b *Bridge) strings(dictionary objc.ID) map[string]string {
	all := map[string]string{}
	for _, key := range b.objects(b.m.AllKeys.to(dictionary)) {
		all[b.goString(key)] = b.goString(b.m.ObjectForKey.to(dictionary, key))
	}
	return all
}

// Close frees the model. No call on it may follow.
func (m *Model) Close() {
	m.b.m.Release.to(m.model)
	m.model = 0
}
