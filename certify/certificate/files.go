package certificate

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	attestation "github.com/in-toto/attestation/go/v1"

	"github.com/synapse-module/workers/internal/regular"
	"github.com/synapse-module/workers/protocol"
)

// libDir is where the libraries of a worker lie, beside it.
const libDir = "lib"

// File is a file or a directory by its digest.
type File struct {
	Name   string          `json:"name"`
	Digest protocol.Digest `json:"digest"`
}

// subject writes the file as in-toto does: a directory's digest is Go's dirhash
// in hexadecimal digits.
func (f File) subject() *attestation.ResourceDescriptor {
	algorithm := "sha256"
	if f.Digest.IsTree() {
		algorithm = "dirHash"
	}
	return &attestation.ResourceDescriptor{Name: f.Name, Digest: map[string]string{algorithm: f.Digest.Hex()}}
}

// DigestOf hashes a file, or the files of a directory. What is neither, such as a
// named pipe, is an error and is not waited for.
func DigestOf(path string) (protocol.Digest, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if info.IsDir() {
		d, err := protocol.TreeDigest(os.DirFS(path), nil)
		if err != nil {
			return "", fmt.Errorf("%s: %w", path, err)
		}
		return d, nil
	}
	f, err := regular.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	return protocol.FileDigest(f)
}

// Libraries hashes each file under dir, or where dir is empty under the
// directory "lib" beside the worker, which need not be there. A worker loads
// its engine from there and from nowhere else.
func Libraries(worker, dir string) ([]File, error) {
	optional := dir == ""
	if optional {
		exe, err := filepath.EvalSymlinks(worker)
		if err != nil {
			return nil, err
		}
		dir = filepath.Join(filepath.Dir(exe), libDir)
	}
	all := []File{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		digest, err := DigestOf(path)
		all = append(all, File{Name: filepath.ToSlash(name), Digest: digest})
		return err
	})
	if optional && errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	return all, err
}
