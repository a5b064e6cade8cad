//go:build cgo

package onnx

import (
	"context"
	"errors"

	ort "github.com/yalue/onnxruntime_go"

	"github.com/synapse-module/workers/workerkit"
)

// loadFactor is the memory that a load takes at its peak, in sizes of the file:
// the weights as read and as the session keeps them, repacked for its kernels.
const loadFactor = 2

type engine struct{ info workerkit.Info }

// Open loads ONNX Runtime from the directory of native libraries. It implements
// [workerkit.Open].
func Open(s workerkit.Setup) (workerkit.Engine, error) {
	if err := openLibrary(s.LibDir); err != nil {
		return nil, err
	}
	return &engine{info: workerkit.Info{
		Name:    "onnx",
		Version: ort.GetVersion(),
		BuildFlags: []string{
			"onnxruntime=" + ort.GetVersion(),
			"telemetry=absent",
			"cpu=" + cpuClass(),
		},
		Formats: []string{"onnx", "onnx+zstd", "onnx+tar.zst"},
		Options: options(),
	}}, nil
}

func (e *engine) Info() workerkit.Info { return e.info }

// Load implements [workerkit.Engine].
func (e *engine) Load(_ context.Context, a workerkit.Artifact, c workerkit.Config) (workerkit.Model, error) {
	src, err := openSource(a, c)
	if err != nil {
		return nil, err
	}
	if err := workerkit.CheckMemory(loadFactor*uint64(src.size), "loading "+src.name); err != nil {
		return nil, err
	}
	if isDecoder(src.graph) {
		return loadDecoder(src, c)
	}
	p, err := makePlan(src, c)
	if err != nil {
		return nil, err
	}
	if p.placement, err = place(src, p, c); err != nil {
		return nil, err
	}
	inputs, outputs := p.names()
	session, err := newSession(src.path, inputs, outputs, c)
	if err != nil {
		return nil, err
	}
	trim() // of what only the load needed
	m, err := newModel(session, p)
	if err != nil {
		return nil, errors.Join(err, session.Destroy())
	}
	return m, nil
}

func loadDecoder(src source, c workerkit.Config) (workerkit.Model, error) {
	if names := accelerated(c); len(names) > 0 {
		return nil, workerkit.ConfigInvalid("runtime_config.%s: generating graphs run on the CPU alone here, not on %v", optProviders, names)
	}
	p, err := planDecoder(src, c)
	if err != nil {
		return nil, err
	}
	inputs, outputs := p.names()
	session, err := newSession(src.path, inputs, outputs, c)
	if err != nil {
		return nil, err
	}
	trim() // of what only the load needed
	m, err := newDecoder(session, p)
	if err != nil {
		return nil, errors.Join(err, session.Destroy())
	}
	return m, nil
}
