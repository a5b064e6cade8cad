package suite

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/klauspost/compress/zstd"

	"github.com/synapse-module/workers/protocol"
)

// ReadInputs reads an inputs file, .jsonl.zst, that stands by itself.
func ReadInputs(path string) (inputs []Input, digest string, err error) {
	folder, name := filepath.Dir(path), filepath.Base(path)
	r := reader{os.DirFS(folder), filepath.ToSlash(folder)}
	lines, err := r.unpack(name)
	if err != nil {
		return nil, "", err
	}
	inputs, err = decodeLines(r, name, lines, checkInput)
	sum := sha256.Sum256(lines)
	return inputs, hex.EncodeToString(sum[:]), err
}

// PackVectors returns vectors as a suite's vectors file, and the digest of its
// uncompressed bytes.
func PackVectors(rows [][]float32) (packed []byte, digest string, err error) {
	var flat []byte
	for _, v := range rows {
		flat = append(flat, protocol.Bytes(v)...)
	}
	w, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression))
	if err != nil {
		return nil, "", err
	}
	defer w.Close()
	sum := sha256.Sum256(flat)
	return w.EncodeAll(flat, nil), hex.EncodeToString(sum[:]), nil
}

// Pack returns a provenance as its file.
func (p Provenance) Pack() ([]byte, error) {
	p.Schema = provenanceSchema
	return json.Marshal(p, jsontext.WithIndent("  "))
}
