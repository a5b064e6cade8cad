package coreml

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"github.com/synapse-module/workers/engines/coreml/internal/bridge"
	"github.com/synapse-module/workers/workerkit"
)

// unit is one loaded model of Core ML's: a part, or a function of it.
type unit struct {
	*bridge.Model
	part     part
	function string // empty for the part's default
}

func (u *unit) String() string {
	if u.function != "" {
		return "function " + u.function
	}
	return u.part.name
}

// session is an artifact's loaded units as one model of several buckets.
type session struct {
	units   []*unit
	buckets []bucket
	roles   roles
	output  string
	meta    metadata
	name    string // of the artifact, for messages
	release func() // of the compiled models
	config  bridge.Configuration
	log     *slog.Logger

	// What the first run of a bucket showed.
	rank, dims int

	goldens   []goldenResult         // one a bucket
	unknown   string                 // why there is no placement
	described *workerkit.Description // of the model that the session became

	scratch scratch
}

// start loads every part, or every function of one, into s and finds the buckets
// in them. All must agree but in their shapes. The caller closes s.
func (e *engine) start(ctx context.Context, s *session, parts []part, c workerkit.Config) error {
	for _, p := range parts {
		if err := e.startPart(ctx, s, p, c); err != nil {
			return err
		}
	}
	if err := s.adopt(s.units[0], c); err != nil {
		return err
	}
	for _, u := range s.units {
		if err := s.join(u, c); err != nil {
			return err
		}
	}
	return nil
}

func (e *engine) startPart(ctx context.Context, s *session, p part, c workerkit.Config) error {
	functions := c.Strings(optFunctions)
	if !c.Has(optFunctions) {
		// The default function is loaded for its metadata, which lists the functions.
		u, err := e.load(ctx, s, p, "")
		if err != nil {
			return err
		}
		s.units = append(s.units, u)
		meta, err := readMetadata(u.Metadata)
		if err != nil || len(meta.functions) == 0 {
			return err
		}
		functions = meta.functions
		s.units = s.units[:len(s.units)-1]
		u.Close()
		if !e.bridge.CanSelect() {
			return workerkit.ArtifactInvalid("%s has several functions, which needs macOS 15; this is macOS %s: take a package of one function a bucket", s.name, e.bridge.System().Version)
		}
	}
	for _, f := range functions {
		u, err := e.load(ctx, s, p, f)
		if err != nil {
			return err
		}
		s.units = append(s.units, u)
	}
	return nil
}

func (e *engine) load(ctx context.Context, s *session, p part, function string) (*unit, error) {
	m, err := e.bridge.Load(ctx, p.path, bridge.Configuration{Units: s.config.Units, Function: function})
	if err != nil {
		return nil, engineError(err)
	}
	return &unit{m, p, function}, nil
}

// adopt takes the first unit's word for what all units are.
func (s *session) adopt(u *unit, c workerkit.Config) (err error) {
	if s.meta, err = readMetadata(u.Metadata); err != nil {
		return err
	}
	if err := s.meta.override(c); err != nil {
		return err
	}
	if s.roles, _, err = assignRoles(u.Inputs); err != nil {
		return err
	}
	s.output, err = chooseOutput(u.Outputs, s.meta.output)
	return err
}

// join takes a unit's shapes in, once it is seen to be of the same model.
func (s *session) join(u *unit, c workerkit.Config) error {
	r, ids, err := assignRoles(u.Inputs)
	if err != nil {
		return err
	}
	output, err := chooseOutput(u.Outputs, s.meta.output)
	if err != nil {
		return err
	}
	if r != s.roles || output != s.output {
		return workerkit.ArtifactInvalid("%v and %v have different inputs or outputs (%v %s, %v %s): they are not one model", s.units[0], u, s.roles, s.output, r, output)
	}
	shapes, err := shapesOf(ids, c.Bool(optRanges), c.Int(optMaxTokens))
	if err != nil {
		return err
	}
	for _, shape := range shapes {
		for _, in := range u.Inputs {
			if !in.Optional && !in.Takes(shape[:]) {
				return workerkit.ArtifactInvalid("the model's input %v does not take %v, which %v does", in, shape, ids)
			}
		}
		b := bucket{shape[0], shape[1], u}
		if b.rows < 1 || b.tokens < 1 {
			return workerkit.ArtifactInvalid("the model's input %v has an empty shape", ids)
		}
		if i := slices.IndexFunc(s.buckets, func(x bucket) bool { return x.rows == b.rows && x.tokens == b.tokens }); i >= 0 {
			return workerkit.ArtifactInvalid("%v and %v have the same shape %v: one of them is of no use", s.buckets[i].unit, u, shape)
		}
		s.buckets = append(s.buckets, b)
	}
	return nil
}

// longest is the most tokens that a row can have.
func (s *session) longest() int {
	return slices.MaxFunc(s.buckets, func(x, y bucket) int { return x.tokens - y.tokens }).tokens
}

// probe runs every bucket on one token: a model that loads also runs, the first
// request is as fast as the others, and the output's shape is seen. Core ML does
// not describe it where the inputs are flexible.
func (s *session) probe(ctx context.Context) error {
	token := []int32{s.probeToken()}
	for i := range s.buckets {
		b := &s.buckets[i]
		err := s.runCalls(ctx, []call{{b, []int{0}}}, batch{ids: [][]int32{token}}, nil)
		if err != nil {
			return workerkit.ArtifactInvalid("%v fails on a row of one token in its bucket %v: %v", b.unit, b, err)
		}
	}
	return nil
}

// probeToken is an id that every vocabulary has and that is not the padding's.
func (s *session) probeToken() int32 {
	if s.meta.padID == 1 {
		return 0
	}
	return 1
}

// observe holds the shape of an output to the bucket that was run. The first one
// decides what the model gives.
func (s *session) observe(b *bucket, shape []int) error {
	states := len(shape) == 3 && shape[1] == b.tokens
	if len(shape) == 0 || shape[0] != b.rows || (len(shape) != 2 && !states) {
		return fmt.Errorf("the output %q has the shape %v where %d rows are due: [%d, dims] or [%d, %d, dims]", s.output, shape, b.rows, b.rows, b.rows, b.tokens)
	}
	dims := shape[len(shape)-1]
	if s.rank == 0 {
		s.rank, s.dims = len(shape), dims
	}
	if len(shape) != s.rank || dims != s.dims {
		return fmt.Errorf("the output %q has the shape %v, another bucket's has %d dimensions and %d dims", s.output, shape, s.rank, s.dims)
	}
	return nil
}

func (s *session) state() *session { return s }

func (s *session) close() {
	for _, u := range s.units {
		u.Close()
	}
	s.units = nil
	s.release()
}
