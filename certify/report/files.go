package report

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/synapse-module/workers/certify"
	"github.com/synapse-module/workers/certify/conformance"
)

// The names of the files that [WriteFiles] and [WriteProtocolFiles] leave.
const (
	ResultFile        = "result.json"
	JUnitFile         = "junit.xml"
	PageFile          = "report.html"
	ProtocolFile      = "protocol.json"
	ProtocolJUnitFile = "protocol-junit.xml"
)

// WriteFiles writes a result's files into dir, which it makes. Each file appears
// whole or not at all; result.json comes last, so that where it is the others
// are too.
func WriteFiles(dir string, r *certify.Result) error {
	if err := writeVectors(dir, r); err != nil {
		return err
	}
	return writeAll(dir,
		file{PageFile, func(w io.Writer) error { return HTML(w, r) }},
		file{JUnitFile, func(w io.Writer) error { return JUnit(w, r) }},
		file{ResultFile, func(w io.Writer) error { return asJSON(w, r) }},
	)
}

// WriteProtocolFiles writes the outcomes of certify protocol in the same way.
func WriteProtocolFiles(dir string, r *conformance.Report) error {
	return writeAll(dir,
		file{ProtocolJUnitFile, func(w io.Writer) error { return ProtocolJUnit(w, r) }},
		file{ProtocolFile, func(w io.Writer) error { return asJSON(w, r) }},
	)
}

type file struct {
	name  string
	write func(io.Writer) error
}

func writeAll(dir string, files ...file) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	for _, f := range files {
		var b bytes.Buffer
		if err := f.write(&b); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		if err := WriteFile(filepath.Join(dir, f.name), b.Bytes()); err != nil {
			return err
		}
	}
	return nil
}

func asJSON(w io.Writer, v any) error {
	return json.MarshalWrite(w, v, jsontext.WithIndent("  "))
}

// WriteFile gives the file its new content in one step.
func WriteFile(path string, content []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.tmp")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	_, err = f.Write(content)
	if err == nil {
		err = f.Chmod(0o644) // CreateTemp keeps it from others, who may read results
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
