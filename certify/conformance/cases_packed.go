package conformance

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/synapse-module/workers/host"
	"github.com/synapse-module/workers/protocol"
)

var packedCases = []Case{
	{"packed/loaded", "an artifact packed as +zstd or +tar.zst loads by the digest of the packed bytes, as the model that is in it", loaded, false, func(_ context.Context, s *session) error {
		return s.withPacked(func(a Artifact) error {
			id := s.id()
			if err := s.sayLoad(id, a); err != nil {
				return err
			}
			header, payload, err := s.read(host.DefaultLoadDeadline)
			if err != nil {
				return err
			}
			if header.Type == protocol.TypeErr {
				if err := header.DecodeErr(); !errors.Is(err, &protocol.Error{Code: protocol.CodeArtifactInvalid}) || !strings.Contains(err.Error(), a.Format) {
					return fmt.Errorf("a worker that does not take the format says artifact_invalid and names it: %w", err)
				}
				return skip("the worker does not take the format " + a.Format)
			}
			var l protocol.Loaded
			if err := header.Decode(&l); err != nil {
				return fmt.Errorf("LOADED is due, the worker said %s: %w", show(payload), err)
			}
			if l.Dims != s.model.dims {
				return fmt.Errorf("packed it has dims %d, unpacked %d", l.Dims, s.model.dims)
			}
			return s.unload(l.ModelRef)
		})
	}},
	{"packed/other digest", "a packed artifact under the digest of what is in it is artifact_invalid", loaded, false, func(_ context.Context, s *session) error {
		return s.withPacked(func(a Artifact) error {
			a.Digest = s.o.Artifact.Digest
			return s.loadRefused(a, protocol.CodeArtifactInvalid)
		})
	}},
	{"packed/cut", "a packed artifact that ends early is artifact_invalid, though its digest is right", loaded, false, func(_ context.Context, s *session) error {
		return s.withPacked(func(a Artifact) error {
			info, err := os.Stat(a.Path)
			if err != nil {
				return err
			}
			if err := os.Truncate(a.Path, info.Size()/2); err != nil {
				return err
			}
			if a.Digest, err = fileDigest(a.Path); err != nil {
				return err
			}
			return s.loadRefused(a, protocol.CodeArtifactInvalid)
		})
	}},
	{"packed/hostile names", "an archive with a path that leads out of it, or with a link, is artifact_invalid", loaded, false, func(_ context.Context, s *session) error {
		for _, h := range []tar.Header{
			{Name: "../zz-grease", Typeflag: tar.TypeReg},
			{Name: "/zz-grease", Typeflag: tar.TypeReg},
			{Name: "zz-grease", Typeflag: tar.TypeSymlink, Linkname: "/"},
		} {
			err := withFile(func(w io.Writer) error {
				archive := tar.NewWriter(w)
				if err := archive.WriteHeader(&h); err != nil {
					return err
				}
				return archive.Close()
			}, func(path string, digest protocol.Digest) error {
				a := *s.o.Artifact
				format, _, _ := strings.Cut(a.Format, "+")
				a.Path, a.Digest, a.Format = path, digest, format+"+tar.zst"
				return s.loadRefused(a, protocol.CodeArtifactInvalid)
			})
			if err != nil {
				return fmt.Errorf("%s: %w", h.Name, err)
			}
		}
		return nil
	}},
}

// withPacked packs the artifact for as long as f runs.
func (s *session) withPacked(f func(Artifact) error) error {
	a := *s.o.Artifact
	if strings.Contains(a.Format, "+") {
		return skip("the artifact is packed itself")
	}
	content, suffix := copyOf(a.Path), "+zstd"
	if a.Digest.IsTree() {
		content, suffix = tarOf(a.Path), "+tar.zst"
	}
	return withFile(content, func(path string, digest protocol.Digest) error {
		a.Path, a.Digest, a.Format = path, digest, a.Format+suffix
		return f(a)
	})
}

func copyOf(path string) func(io.Writer) error {
	return func(w io.Writer) error {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = io.Copy(w, f)
		return err
	}
}

func tarOf(dir string) func(io.Writer) error {
	return func(w io.Writer) error {
		archive := tar.NewWriter(w)
		if err := archive.AddFS(os.DirFS(dir)); err != nil {
			return err
		}
		return archive.Close()
	}
}

// withFile writes a file of what content gives, compressed, for as long as f runs.
func withFile(content func(io.Writer) error, f func(path string, digest protocol.Digest) error) error {
	dir, err := os.MkdirTemp("", "conformance-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "packed")
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close()
	// How small it becomes is of no concern here.
	w, err := zstd.NewWriter(file, zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		return err
	}
	if err := errors.Join(content(w), w.Close(), file.Close()); err != nil {
		return err
	}
	digest, err := fileDigest(path)
	if err != nil {
		return err
	}
	return f(path, digest)
}

func fileDigest(path string) (protocol.Digest, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	return protocol.FileDigest(f)
}
