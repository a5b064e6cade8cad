package suite

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/synapse-module/workers/protocol"
)

// File is the name of a suite's description in its folder.
const File = "suite.yaml"

// Load reads the suite in fsys, whose name is folder in errors. It holds the
// data to its provenance: digests, counts, dims, pooling.
func Load(fsys fs.FS, folder string) (*Suite, error) {
	r := reader{fsys, folder}
	src, err := r.file(File)
	if err != nil {
		return nil, err
	}
	s, err := Decode(r.name(File), src)
	if err != nil {
		return nil, err
	}
	if err := r.data(s); err != nil {
		return nil, err
	}
	s.Digest, err = protocol.TreeDigest(fsys, nil)
	if err != nil {
		return nil, &Error{File: folder, Msg: err.Error()}
	}
	return s, nil
}

type reader struct {
	fsys   fs.FS
	folder string
}

func (r reader) name(file string) string { return r.folder + "/" + file }

func (r reader) file(name string) ([]byte, error) {
	b, err := fs.ReadFile(r.fsys, name)
	var p *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &Error{File: r.name(name), Msg: "no such file in the suite's folder"}
	case errors.As(err, &p):
		return nil, &Error{File: r.name(name), Msg: p.Err.Error()}
	case err != nil:
		return nil, &Error{File: r.name(name), Msg: err.Error()}
	}
	return b, nil
}

// data reads the files that s.Data names and holds them to one another.
func (r reader) data(s *Suite) (err error) {
	if s.Provenance, err = r.provenance(s.Data.Provenance); err != nil {
		return err
	}
	switch s.Task {
	case Rerank:
		return r.queries(s)
	case Generate:
		return r.prompts(s)
	default:
		return r.embeddings(s)
	}
}

// embeddings reads the rows of an embed suite and their vectors.
func (r reader) embeddings(s *Suite) (err error) {
	p := s.Provenance
	fault := func(format string, args ...any) error {
		return &Error{File: r.name(s.Data.Provenance), Msg: fmt.Sprintf(format, args...)}
	}
	switch {
	case p.Encoding.Dims != s.Model.Dims:
		return fault("vectors of %d dims, %s says %d", p.Encoding.Dims, File, s.Model.Dims)
	case p.Encoding.Pooling != s.Model.Pooling:
		return fault("vectors pooled by %s, %s says %s", p.Encoding.Pooling, File, s.Model.Pooling)
	case p.Encoding.Normalized != s.Model.Normalize:
		return fault("normalized %t, %s says %t", p.Encoding.Normalized, File, s.Model.Normalize)
	}
	if s.Inputs, err = r.inputs(s.Data.Inputs, p); err != nil {
		return err
	}
	if s.Reference, err = r.vectors(s.Data.Vectors, p); err != nil {
		return err
	}
	longest := 0
	for _, in := range s.Inputs {
		longest = max(longest, len(in.IDs))
	}
	if err := r.longest(s, longest); err != nil {
		return err
	}
	if s.People != nil {
		if err := r.record(s.People); err != nil {
			return err
		}
	}
	if err := r.tags(s); err != nil {
		return err
	}
	return r.published(s)
}

// longest holds the least max_tokens that a worker may state to the longest
// input: one that passes the gate takes them all.
func (r reader) longest(s *Suite, longest int) error {
	for _, a := range append([]Artifact{{}}, s.Artifacts...) {
		if least := s.GatesFor(a).MaxTokens.Min; least < longest {
			return &Error{File: r.name(File), Field: "gates.max_tokens.min", Msg: fmt.Sprintf("%d is less than the longest input, which has %d tokens", least, longest)}
		}
	}
	return nil
}

// tags holds the tags of rank gates to the inputs: a gate over no rows would
// fail for a reason that nobody sees.
func (r reader) tags(s *Suite) error {
	for _, a := range append([]Artifact{{}}, s.Artifacts...) {
		rank := s.GatesFor(a).Rank
		if rank == nil {
			continue
		}
		for _, tag := range []string{rank.Queries, rank.Documents} {
			if len(s.Tagged(tag)) == 0 {
				return &Error{File: r.name(File), Field: "gates.rank", Msg: fmt.Sprintf("no input has the tag %q", tag)}
			}
		}
	}
	return nil
}

// published holds the ids of the published vectors to the inputs.
func (r reader) published(s *Suite) error {
	ids := map[string]bool{}
	for _, in := range s.Inputs {
		ids[in.ID] = true
	}
	for _, p := range s.Gates.Published {
		if !ids[p.ID] {
			return &Error{File: r.name(File), Field: "gates.published", Msg: fmt.Sprintf("no input has the id %q", p.ID)}
		}
		if len(p.Values) > s.Model.Dims {
			return &Error{File: r.name(File), Field: "gates.published", Msg: fmt.Sprintf("%q has %d values, a vector has %d", p.ID, len(p.Values), s.Model.Dims)}
		}
	}
	return nil
}
