package coreml

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/synapse-module/workers/workerkit"
)

// part is one package or compiled model of an artifact.
type part struct {
	name string // without its ending; unique in the artifact
	path string
}

// marks are the files by which a directory is known to be a package or a compiled
// model.
var marks = map[string]string{formatPackage: "Manifest.json", formatCompiled: "coremldata.bin"}

// onlyPart is the name of a part that is the whole artifact.
const onlyPart = "model"

// findParts lists an artifact's parts: itself, or the packages in it. Files
// beside them (a licence, a tokenizer) are no part.
func findParts(dir, format, name string) ([]part, error) {
	if isPart(dir, format) {
		return []part{{onlyPart, dir}}, nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var parts []part
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		base, ok := strings.CutSuffix(e.Name(), "."+format)
		inner := filepath.Join(dir, e.Name())
		if !ok || !isPart(inner, format) {
			return nil, workerkit.ArtifactInvalid("%s holds the directory %q, which is no %s (it has no %s)", name, e.Name(), format, marks[format])
		}
		parts = append(parts, part{base, inner})
	}
	if len(parts) == 0 {
		return nil, workerkit.ArtifactInvalid("%s is no %s and holds none: it has no %s", name, format, marks[format])
	}
	return parts, nil
}

func isPart(dir, format string) bool {
	info, err := os.Stat(filepath.Join(dir, marks[format]))
	return err == nil && info.Mode().IsRegular()
}

// Specification versions by the macOS that brought them; older ones run wherever
// the worker does.
var specificationSince = map[uint64]string{8: "14.0", 9: "15.0", 10: "26.0"}

// specificationField is the number of specificationVersion in Model.proto.
const specificationField protowire.Number = 1

// headBytes is read of a model's specification: the version is its first field.
const headBytes = 64

// specificationVersion reads the version of a package's model.
func specificationVersion(dir string) (uint64, error) {
	var manifest struct {
		Root  string `json:"rootModelIdentifier"`
		Items map[string]struct {
			Path string `json:"path"`
		} `json:"itemInfoEntries"`
	}
	b, err := os.ReadFile(filepath.Join(dir, marks[formatPackage]))
	if err != nil {
		return 0, err
	}
	if err := json.Unmarshal(b, &manifest); err != nil {
		return 0, errors.New("its Manifest.json is no JSON of a package")
	}
	item, ok := manifest.Items[manifest.Root]
	if !ok || !fs.ValidPath(path.Join("Data", item.Path)) {
		return 0, errors.New("its Manifest.json names no model")
	}
	f, err := os.Open(filepath.Join(dir, "Data", filepath.FromSlash(item.Path)))
	if err != nil {
		return 0, errors.New("the model that its Manifest.json names is missing")
	}
	defer f.Close()
	head := make([]byte, headBytes)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return 0, errors.New("its model is empty or cannot be read")
	}
	head = head[:n]
	number, kind, n := protowire.ConsumeTag(head)
	if n < 0 || number != specificationField || kind != protowire.VarintType {
		return 0, errors.New("its model does not begin with a specification version")
	}
	version, n := protowire.ConsumeVarint(head[n:])
	if n < 0 {
		return 0, errors.New("its model does not begin with a specification version")
	}
	return version, nil
}

// treeSize is the bytes of all files under dir.
func treeSize(dir string) (size int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			size += info.Size()
		}
		return err
	})
	return size, err
}
