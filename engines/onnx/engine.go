package onnx

import (
	"context"
	"errors"

	ort "github.com/yalue/onnxruntime_go"

	"github.com/synapse-module/workers/engines/onnx/internal/onnxfile"
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
		Formats: []string{"onnx"},
		Options: options(),
	}}, nil
}

func (e *engine) Info() workerkit.Info { return e.info }

// Load implements [workerkit.Engine].
func (e *engine) Load(_ context.Context, a workerkit.Artifact, c workerkit.Config) (workerkit.Model, error) {
	if a.File == nil {
		return nil, workerkit.ArtifactInvalid("%s is a directory, wanted is one ONNX file", a.Name)
	}
	file, err := onnxfile.Read(a.File, a.Size)
	switch {
	case errors.Is(err, onnxfile.ErrORTFormat):
		return nil, workerkit.ArtifactInvalid("%s: %v; load the ONNX file that it was made from", a.Name, err)
	case err != nil:
		return nil, workerkit.ArtifactInvalid("%s is no ONNX file that can be read: %v", a.Name, err)
	}
	for name := range file.External {
		return nil, workerkit.ArtifactInvalid("%s keeps weights in the file %.128q beside it: load the directory that holds both, under its tree digest", a.Name, name)
	}
	p, err := planEncoder(file, c)
	if err != nil {
		return nil, err
	}
	if err := workerkit.CheckMemory(loadFactor*uint64(a.Size), "loading "+a.Name); err != nil {
		return nil, err
	}
	session, err := newSession(a.Path, p, c)
	if err != nil {
		return nil, err
	}
	m, err := newEncoder(session, p)
	if err != nil {
		return nil, errors.Join(err, session.Destroy())
	}
	return m, nil
}
