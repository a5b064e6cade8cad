//go:build cgo

package onnx

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/synapse-module/workers/engines/onnx/internal/onnxfile"
	"github.com/synapse-module/workers/engines/onnx/internal/sidecar"
	"github.com/synapse-module/workers/workerkit"
)

// modelFiles are where exporters put the graph in a directory.
var modelFiles = []string{"model.onnx", "onnx/model.onnx"}

// source is a graph to load, with what lies beside it.
type source struct {
	name  string // for messages
	path  string // that the library opens
	size  int64  // of the graph's file and of those with its weights
	graph *onnxfile.Model
	meta  sidecar.Metadata
	files sidecar.Files // empty for a single file
}

// openSource reads what an artifact says: a single file, or a directory with the
// graph, its external weights and its sidecars.
func openSource(a workerkit.Artifact, c workerkit.Config) (source, error) {
	if a.File != nil {
		if c.Has(optFile) {
			return source{}, workerkit.ConfigInvalid("runtime_config.%s names a file in a directory; %s is one file", optFile, a.Name)
		}
		s := source{name: a.Name, path: a.Path}
		err := s.read(a.File, a.Size)
		for external := range s.graph.ExternalNames() {
			return source{}, workerkit.ArtifactInvalid("%s keeps weights in the file %.128q beside it: load the directory that holds both, under its tree digest", a.Name, external)
		}
		return s, err
	}
	tree := os.DirFS(a.Path)
	name, err := modelFile(tree, c.String(optFile), a.Name)
	if err != nil {
		return source{}, err
	}
	s := source{
		name:  a.Name + "/" + name,
		path:  filepath.Join(a.Path, filepath.FromSlash(name)),
		files: sidecar.Files{FS: tree, Folders: slices.Compact([]string{".", path.Dir(name)})},
	}
	file, err := os.Open(s.path)
	if err != nil {
		return source{}, workerkit.ArtifactInvalid("%s: %v", s.name, err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return source{}, workerkit.ArtifactInvalid("%s: %v", s.name, err)
	}
	if err := s.read(file, info.Size()); err != nil {
		return source{}, err
	}
	if err := s.openWeights(tree, path.Dir(name)); err != nil {
		return source{}, err
	}
	if s.meta, err = sidecar.Read(s.files); err != nil {
		return source{}, workerkit.ArtifactInvalid("%s: %v", a.Name, err)
	}
	return s, nil
}

// openWeights checks that the files with the graph's weights are in the
// artifact, and reads of them what the plan needs.
func (s *source) openWeights(tree fs.FS, folder string) error {
	opened := map[string]*os.File{}
	defer func() {
		for _, f := range opened {
			f.Close()
		}
	}()
	for external := range s.graph.ExternalNames() {
		if !fs.ValidPath(external) {
			return workerkit.ArtifactInvalid("%s keeps weights in %.128q, which leads out of the artifact", s.name, external)
		}
		at := path.Join(folder, external)
		info, err := fs.Stat(tree, at)
		if err != nil {
			return workerkit.ArtifactInvalid("%s keeps weights in %.128q, which the artifact lacks", s.name, at)
		}
		s.size += info.Size()
		if opened[external], err = os.Open(filepath.Join(filepath.Dir(s.path), filepath.FromSlash(external))); err != nil {
			return workerkit.ArtifactInvalid("%s: %v", s.name, err)
		}
	}
	err := s.graph.ReadExternal(func(location string) (io.ReaderAt, error) { return opened[location], nil })
	if err != nil {
		return workerkit.ArtifactInvalid("%s: %v", s.name, err)
	}
	return nil
}

func (s *source) read(file *os.File, size int64) error {
	var err error
	s.size = size
	s.graph, err = onnxfile.Read(file, size)
	switch {
	case errors.Is(err, onnxfile.ErrORTFormat):
		return workerkit.ArtifactInvalid("%s: %v; load the ONNX file that it was made from", s.name, err)
	case err != nil:
		return workerkit.ArtifactInvalid("%s is no ONNX file that can be read: %v", s.name, err)
	}
	return nil
}

// modelFile finds the graph's file in a directory: the one told, the usual one,
// or the only one.
func modelFile(tree fs.FS, told, artifact string) (string, error) {
	if told != "" {
		if !fs.ValidPath(told) {
			return "", workerkit.ConfigInvalid("runtime_config.%s is %.128q; it must be a path inside the artifact, with slashes and without ..", optFile, told)
		}
		if info, err := fs.Stat(tree, told); err != nil || !info.Mode().IsRegular() {
			return "", workerkit.ConfigInvalid("runtime_config.%s is %.128q, which is no file of %s", optFile, told, artifact)
		}
		return told, nil
	}
	for _, name := range modelFiles {
		if _, err := fs.Stat(tree, name); err == nil {
			return name, nil
		}
	}
	var found []string
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(name, ".onnx") {
			found = append(found, name)
		}
		return err
	})
	if err != nil {
		return "", workerkit.ArtifactInvalid("%s: %v", artifact, err)
	}
	switch len(found) {
	case 0:
		return "", workerkit.ArtifactInvalid("%s holds no .onnx file", artifact)
	case 1:
		return found[0], nil
	}
	return "", workerkit.ConfigInvalid("%s holds %d .onnx files: name one with runtime_config.%s, such as %.128q", artifact, len(found), optFile, found[0])
}
