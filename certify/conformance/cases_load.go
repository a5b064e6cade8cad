package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/synapse-module/workers/host"
	"github.com/synapse-module/workers/protocol"
)

var loadCases = []Case{
	{"load/no such file", "LOAD of a file that is not there is artifact_invalid", serving, false, func(_ context.Context, s *session) error {
		a := Artifact{Path: nowhere(), Digest: noDigest, Format: "onnx"}
		return s.loadRefused(a, protocol.CodeArtifactInvalid)
	}},
	{"load/malformed digest", "an artifact_digest of another form is request_invalid or artifact_invalid", serving, false, func(_ context.Context, s *session) error {
		a := Artifact{Path: nowhere(), Digest: "sha256:abc", Format: "onnx"}
		return s.loadRefused(a, protocol.CodeRequestInvalid, protocol.CodeArtifactInvalid)
	}},
	{"load/missing member", "LOAD without an artifact_digest is request_invalid", serving, false, func(_ context.Context, s *session) error {
		id := s.id()
		if err := s.say(`{"type":"LOAD","req_id":%s,"artifact_path":"x","format":"onnx"}`, id); err != nil {
			return err
		}
		return s.refused(id, protocol.CodeRequestInvalid)
	}},
	{"load/wrong digest", "an artifact whose bytes have another digest is artifact_invalid", serving, false, withArtifact(func(s *session, a Artifact) error {
		if a.Digest.IsTree() {
			a.Digest = "sha256-tree:" + noDigest[len("sha256:"):]
		} else {
			a.Digest = noDigest
		}
		return s.loadRefused(a, protocol.CodeArtifactInvalid)
	})},
	{"load/other format", "a format that the engine does not load is artifact_invalid", serving, false, withArtifact(func(s *session, a Artifact) error {
		a.Format = "zz-grease"
		return s.loadRefused(a, protocol.CodeArtifactInvalid)
	})},
	{"load/unknown option", "an unknown member of runtime_config is config_invalid, and msg names it", serving, false, withArtifact(func(s *session, a Artifact) error {
		a.Config = []byte(`{"zz_grease":1}`)
		id := s.id()
		if err := s.sayLoad(id, a); err != nil {
			return err
		}
		msg, err := s.refusal(id, protocol.CodeConfigInvalid)
		if err == nil && !strings.Contains(msg, "zz_grease") {
			err = fmt.Errorf("the msg %q does not name zz_grease", msg)
		}
		return err
	})},
	{"load/loaded", "LOADED has a model_ref and dims; PONG counts the model", loaded, false, func(_ context.Context, s *session) error {
		id := s.id()
		if err := s.say(`{"type":"PING","req_id":%s}`, id); err != nil {
			return err
		}
		var p protocol.Pong
		if err := s.hear(&p); err != nil {
			return err
		}
		if p.ModelsLoaded != 1 {
			return fmt.Errorf("models_loaded is %d with one model", p.ModelsLoaded)
		}
		return nil
	}},
	{"load/describe", "DESCRIPTION agrees with LOADED and states limits that can be met", loaded, false, func(_ context.Context, s *session) error {
		d := s.model.d
		switch {
		case d == nil:
			return skip("the worker does not know DESCRIBE")
		case d.Dims != s.model.dims:
			return fmt.Errorf("DESCRIPTION has dims %d, LOADED %d", d.Dims, s.model.dims)
		case d.MaxTokens < 1 || d.VocabSize < 1:
			return fmt.Errorf("max_tokens is %d, vocab_size %d", d.MaxTokens, d.VocabSize)
		case d.DefaultPooling != "" && !slices.Contains(d.Pooling, d.DefaultPooling):
			return fmt.Errorf("default_pooling %q is none of %q", d.DefaultPooling, d.Pooling)
		case json.Unmarshal(d.Config, new(map[string]any)) != nil:
			return fmt.Errorf("config is no JSON object: %s", d.Config)
		}
		return nil
	}},
	{"load/twice", "a second LOAD has another model_ref; after UNLOAD the first is model_not_found and the second serves", loaded, false, func(_ context.Context, s *session) error {
		first := s.model.ref
		if err := s.load(); err != nil {
			return err
		}
		if s.model.ref == first {
			return fmt.Errorf("both have the model_ref %q", first)
		}
		if err := s.unload(first); err != nil {
			return err
		}
		id := s.id()
		if err := s.say(`{"type":"UNLOAD","req_id":%s,"model_ref":%q}`, id, first); err != nil {
			return err
		}
		return s.refused(id, protocol.CodeModelNotFound)
	}},
	{"load/refs are never used twice", "LOAD after UNLOAD gives a model_ref that was not used before", loaded, false, func(_ context.Context, s *session) error {
		before := s.model.ref
		if err := s.unload(before); err != nil {
			return err
		}
		if err := s.load(); err != nil {
			return err
		}
		if s.model.ref == before {
			return fmt.Errorf("%q was used before", before)
		}
		return nil
	}},
}

const noDigest protocol.Digest = "sha256:0000000000000000000000000000000000000000000000000000000000000000"

// withArtifact skips a case where no model was given.
func withArtifact(run func(*session, Artifact) error) func(context.Context, *session) error {
	return func(_ context.Context, s *session) error {
		if s.o.Artifact == nil {
			return skip("no model was given: --artifact and --format name one")
		}
		return run(s, *s.o.Artifact)
	}
}

func (s *session) sayLoad(id string, a Artifact) error {
	b, err := protocol.Marshal(protocol.Load{ReqID: protocol.ID(id), ArtifactPath: a.Path, ArtifactDigest: a.Digest, Format: a.Format, RuntimeConfig: a.Config})
	if err != nil {
		return err
	}
	return s.send(frame(b))
}

func (s *session) loadRefused(a Artifact, codes ...protocol.Code) error {
	id := s.id()
	if err := s.sayLoad(id, a); err != nil {
		return err
	}
	return s.refused(id, codes...)
}

// load loads the artifact and asks what it is.
func (s *session) load() error {
	id := s.id()
	if err := s.sayLoad(id, *s.o.Artifact); err != nil {
		return err
	}
	var l protocol.Loaded
	if err := s.hearWithin(host.DefaultLoadDeadline, &l); err != nil {
		return err
	}
	if l.ReqID.String() != id || l.ModelRef == "" || l.Dims < 0 || l.ColdLoadMS < 0 {
		return fmt.Errorf("LOADED has req_id %s, model_ref %q, dims %d, cold_load_ms %d", l.ReqID, l.ModelRef, l.Dims, l.ColdLoadMS)
	}
	m := &model{ref: l.ModelRef, dims: l.Dims}
	id = s.id()
	if err := s.say(`{"type":"DESCRIBE","req_id":%s,"model_ref":%q}`, id, l.ModelRef); err != nil {
		return err
	}
	header, payload, err := s.read(s.patience)
	if err != nil {
		return err
	}
	switch header.Type {
	case protocol.TypeDescription:
		m.d = new(protocol.Description)
		if err := header.Decode(m.d); err != nil {
			return err
		}
	case protocol.TypeErr:
		if err := header.DecodeErr(); !errors.Is(err, &protocol.Error{Code: protocol.CodeUnknownType}) {
			return fmt.Errorf("DESCRIBE: %w", err)
		}
	default:
		return fmt.Errorf("DESCRIPTION is due, the worker said %s", show(payload))
	}
	s.model = m
	return nil
}

func (s *session) unload(ref string) error {
	id := s.id()
	if err := s.say(`{"type":"UNLOAD","req_id":%s,"model_ref":%q}`, id, ref); err != nil {
		return err
	}
	var u protocol.Unloaded
	if err := s.hear(&u); err != nil {
		return err
	}
	if u.ReqID.String() != id {
		return fmt.Errorf("UNLOADED echoes req_id %s, sent was %s", u.ReqID, id)
	}
	return nil
}
