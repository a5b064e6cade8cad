package suite

import (
	"bytes"
	"fmt"
	"math"

	"github.com/go-json-experiment/json"
	"github.com/klauspost/compress/zstd"

	"github.com/synapse-module/workers/protocol"
)

// maxDataBytes bounds an uncompressed data file: a thousand times the shipped
// ones, and small enough that a crafted suite cannot fill a machine.
const maxDataBytes = 1 << 30

// provenanceSchema is the version of reference.json that this package reads.
const provenanceSchema = 1

// Input is one row: the token ids that are sent, and the text that they are of.
type Input struct {
	ID   string   `json:"id"`
	Text *string  `json:"text"` // nil for ids that were composed without a text
	IDs  []int32  `json:"ids"`
	Tags []string `json:"tags"`
}

// Provenance says where a reference comes from. Members that a reader has no use
// for are kept in the file and not here.
type Provenance struct {
	Schema int `json:"schema"`
	Model  struct {
		Name    string `json:"name"`
		Licence string `json:"licence"`
	} `json:"model"`
	Encoding struct {
		Dims       int    `json:"dims"`
		Pooling    string `json:"pooling"`
		Normalized bool   `json:"normalized"`
		MaxTokens  int    `json:"max_tokens"`
	} `json:"encoding"`
	Inputs struct {
		Count  int    `json:"count"`
		SHA256 string `json:"sha256"` // of the uncompressed file
	} `json:"inputs"`
	Vectors struct { // of an embed suite
		SHA256 string `json:"sha256"` // of the uncompressed file
	} `json:"vectors,omitzero"`
	Scores struct { // of a rerank suite
		Count  int    `json:"count"`
		SHA256 string `json:"sha256"` // of the uncompressed file
	} `json:"scores,omitzero"`
	Answers struct { // of a generate suite
		SHA256 string `json:"sha256"` // of the uncompressed file
	} `json:"answers,omitzero"`
	Libraries  map[string]string `json:"libraries"` // versions
	RecordedOn string            `json:"recorded_on"`
}

func (r reader) provenance(name string) (Provenance, error) {
	var p Provenance
	b, err := r.file(name)
	if err != nil {
		return p, err
	}
	if err := json.Unmarshal(b, &p); err != nil {
		return p, &Error{File: r.name(name), Msg: err.Error()}
	}
	if p.Schema != provenanceSchema {
		return p, &Error{File: r.name(name), Field: "schema", Msg: fmt.Sprintf("is %d, this certify reads %d", p.Schema, provenanceSchema)}
	}
	return p, nil
}

func (r reader) inputs(name string, p Provenance) ([]Input, error) {
	return dataLines(r, name, p.Inputs.Count, p.Inputs.SHA256, checkInput)
}

// dataLines reads a compressed file of count JSON lines, whose digest is of the
// uncompressed bytes.
func dataLines[T any](r reader, name string, count int, digest string, check func(in T, seen map[string]bool) error) ([]T, error) {
	b, err := r.unpack(name)
	if err != nil {
		return nil, err
	}
	if err := r.verify(name, b, digest); err != nil {
		return nil, err
	}
	all, err := decodeLines(r, name, b, check)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 || len(all) != count {
		return nil, &Error{File: r.name(name), Msg: fmt.Sprintf("holds %d inputs, its provenance says %d", len(all), count)}
	}
	return all, nil
}

// decodeLines reads one value a line. check is given the ids that came before,
// and adds its own.
func decodeLines[T any](r reader, name string, b []byte, check func(in T, seen map[string]bool) error) ([]T, error) {
	var all []T
	seen := map[string]bool{}
	for line := range bytes.Lines(b) {
		var in T
		err := json.Unmarshal(line, &in, json.RejectUnknownMembers(true))
		if err == nil {
			err = check(in, seen)
		}
		if err != nil {
			return nil, &Error{File: r.name(name), Line: len(all) + 1, Msg: err.Error()}
		}
		all = append(all, in)
	}
	return all, nil
}

func checkInput(in Input, seen map[string]bool) error {
	if err := checkID(in.ID, seen); err != nil {
		return err
	}
	if len(in.IDs) == 0 {
		return fmt.Errorf("%q has no token ids", in.ID)
	}
	return nil
}

// checkID wants an id that did not come before.
func checkID(id string, seen map[string]bool) error {
	switch {
	case id == "":
		return fmt.Errorf("an input without an id")
	case seen[id]:
		return fmt.Errorf("a second input %q", id)
	}
	seen[id] = true
	return nil
}

func (r reader) vectors(name string, p Provenance) ([][]float32, error) {
	return r.floats(name, p.Inputs.Count, p.Encoding.Dims, "inputs", p.Vectors.SHA256)
}

// floats reads count rows of dims finite f32 each, which belong to what.
func (r reader) floats(name string, count, dims int, what, digest string) ([][]float32, error) {
	b, err := r.unpack(name)
	if err != nil {
		return nil, err
	}
	const size = 4 // bytes of an f32
	if want := count * dims * size; len(b) != want {
		return nil, &Error{File: r.name(name), Msg: fmt.Sprintf("holds %d bytes, %d %s of %d f32 are %d", len(b), count, what, dims, want)}
	}
	if err := r.verify(name, b, digest); err != nil {
		return nil, err
	}
	flat, err := protocol.View[float32](b)
	if err != nil {
		return nil, &Error{File: r.name(name), Msg: err.Error()}
	}
	rows := make([][]float32, count)
	for i := range rows {
		rows[i] = flat[i*dims : (i+1)*dims : (i+1)*dims]
		for _, v := range rows[i] {
			if f := float64(v); math.IsNaN(f) || math.IsInf(f, 0) {
				return nil, &Error{File: r.name(name), Msg: fmt.Sprintf("row %d holds %v: no reference", i, v)}
			}
		}
	}
	return rows, nil
}

func (r reader) unpack(name string) ([]byte, error) {
	packed, err := r.file(name)
	if err != nil {
		return nil, err
	}
	d, err := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(maxDataBytes), zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, fmt.Errorf("zstd: %w", err)
	}
	defer d.Close()
	b, err := d.DecodeAll(packed, nil)
	if err != nil {
		return nil, &Error{File: r.name(name), Msg: "cannot be decompressed: " + err.Error()}
	}
	return b, nil
}

// verify holds uncompressed data to the digest in its provenance, so that no
// worker is failed by a reference that was damaged.
func (r reader) verify(name string, b []byte, want string) error {
	got, err := protocol.FileDigest(bytes.NewReader(b))
	if err != nil {
		return err
	}
	if got.Hex() != want {
		return &Error{File: r.name(name), Msg: fmt.Sprintf("has SHA-256 %s uncompressed, its provenance says %q: restore both from one release", got.Hex(), want)}
	}
	return nil
}
