package report

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/zstd"

	"github.com/synapse-module/workers/certify"
	"github.com/synapse-module/workers/protocol"
)

// maxVectorBytes bounds a vectors file, uncompressed, as a suite's own is.
const maxVectorBytes = 1 << 30

// vectorsFile is where the vectors of a run lie: little-endian f32, row after
// row in the order of result.json's rows, zstd.
func vectorsFile(dir, suite, artifact string) string {
	return filepath.Join(dir, suite+"."+artifact+".f32.zst")
}

// writeVectors writes the vectors of each run that has some: a result that was
// read from a file has none.
func writeVectors(dir string, r *certify.Result) error {
	packer, err := zstd.NewWriter(nil)
	if err != nil {
		return err
	}
	defer packer.Close()
	for _, s := range r.Suites {
		for _, run := range s.Runs {
			if run.Vectors == nil {
				continue
			}
			var flat []byte
			for _, v := range run.Vectors {
				flat = append(flat, protocol.Bytes(v)...)
			}
			if err := os.MkdirAll(dir, 0o777); err != nil {
				return err
			}
			if err := WriteFile(vectorsFile(dir, s.Name, run.Artifact), packer.EncodeAll(flat, nil)); err != nil {
				return err
			}
		}
	}
	return nil
}

// ReadVectors reads the vectors of one run of a result that lies in dir: nil
// where there are none.
func ReadVectors(dir, suite string, run certify.ArtifactResult) ([][]float32, error) {
	path := vectorsFile(dir, suite, run.Artifact)
	packed, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	d, err := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(maxVectorBytes), zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	defer d.Close()
	raw, err := d.DecodeAll(packed, nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	flat, err := protocol.View[float32](raw)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	n := len(run.Rows)
	if n == 0 || len(flat)%n != 0 {
		return nil, fmt.Errorf("%s: %d values are no whole number for each of %d rows", path, len(flat), n)
	}
	rows := make([][]float32, n)
	for i := range rows {
		rows[i] = flat[i*len(flat)/n : (i+1)*len(flat)/n]
	}
	return rows, nil
}
