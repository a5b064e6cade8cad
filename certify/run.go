package certify

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/synapse-module/workers/certify/certificate"
	"github.com/synapse-module/workers/certify/machine"
	"github.com/synapse-module/workers/certify/suite"
	"github.com/synapse-module/workers/host"
	"github.com/synapse-module/workers/protocol"
)

// Options say what is measured and how.
type Options struct {
	Worker     string   // the worker's executable
	WorkerArgs []string // besides those of the protocol

	// Libraries is the directory of the engine's native libraries, as
	// [certificate.Libraries] takes it.
	Libraries string

	// Locate returns the path of a suite's artifact. Its error says what to do.
	Locate func(artifact string) (string, error)

	// Only names the artifacts that are measured. Empty means all that the suites
	// have for the worker's engine.
	Only []string

	// Performance asks for the performance record of suites that have one.
	Performance bool

	EmbedTimeout time.Duration // one batch; 0 for the default of package host
	Tool         string        // version of the program that asks
	Observer     Observer      // nil for none
}

// UsageError says that what was asked for cannot be measured as it was asked.
type UsageError struct{ Msg string }

func (e *UsageError) Error() string { return e.Msg }

// job is one artifact of one suite.
type job struct {
	suite      *suite.Suite
	artifact   suite.Artifact
	path       string
	judgements *suite.Judgements // nil where no gate is about people
	others     map[string]string // paths of the artifacts that controls load in its place
}

// Run holds the worker to the suites, one artifact after the other, each in a
// process of its own. What goes wrong with one artifact stands in its part of
// the result. The error is a [UsageError], or says why the worker could not be
// started at all, or is the context's.
func Run(ctx context.Context, suites []*suite.Suite, o Options) (*Result, error) {
	if o.Observer == nil {
		o.Observer = silent{}
	}
	started := time.Now()
	if info, err := os.Stat(o.Worker); err == nil && info.IsDir() {
		return nil, &UsageError{o.Worker + " is a directory, the worker's executable is due"}
	}
	digest, err := certificate.DigestOf(o.Worker)
	if err != nil {
		return nil, &UsageError{err.Error()}
	}
	libraries, err := certificate.Libraries(o.Worker, o.Libraries)
	if err != nil {
		return nil, &UsageError{err.Error()}
	}
	hello, err := hello(ctx, o)
	if err != nil {
		return nil, err
	}
	jobs, err := plan(suites, hello.Engine.Name, o)
	if err != nil {
		return nil, err
	}
	r := &Result{
		Schema: ResultSchema, Tool: o.Tool, Started: started.UTC(), Machine: machine.This(ctx),
		Worker: Worker{Name: filepath.Base(o.Worker), Digest: digest, Engine: hello.Engine, Libraries: libraries},
	}
	for _, s := range suites {
		sr := newSuiteResult(s)
		for _, j := range jobs {
			if j.suite != s {
				continue
			}
			run := measureJob(ctx, j, o)
			if err := context.Cause(ctx); err != nil {
				return nil, fmt.Errorf("interrupted while %s was measured: %w", j.artifact.Name, err)
			}
			sr.Runs = append(sr.Runs, run)
			o.Observer.End(s.Name, run)
		}
		r.Suites = append(r.Suites, sr)
	}
	r.Seconds = time.Since(started).Seconds()
	r.judge()
	return r, nil
}

// hello starts the worker once to learn which engine it runs.
func hello(ctx context.Context, o Options) (protocol.Hello, error) {
	w, err := host.Start(ctx, spec(o, suite.Artifact{}))
	if err != nil {
		return protocol.Hello{}, err
	}
	h := w.Hello()
	return h, w.Close(ctx)
}

func spec(o Options, a suite.Artifact) host.Spec {
	return host.Spec{
		Path: o.Worker, Args: o.WorkerArgs,
		Deadlines: host.Deadlines{Load: a.LoadTimeout, Embed: o.EmbedTimeout},
	}
}

// plan chooses the artifacts that this engine is to be held to and finds their
// files, so that a missing one is said before an hour is spent on the others.
func plan(suites []*suite.Suite, engine string, o Options) ([]job, error) {
	var jobs []job
	left := slices.Clone(o.Only)
	for _, s := range suites {
		before := len(jobs)
		for _, a := range s.Artifacts {
			if len(o.Only) > 0 && !slices.Contains(o.Only, a.Name) || a.Engine != engine {
				continue
			}
			path, err := o.Locate(a.Name)
			if err != nil {
				return nil, &UsageError{err.Error()}
			}
			if err := hasFlippedByte(a, path); err != nil {
				return nil, err
			}
			left = slices.DeleteFunc(left, func(name string) bool { return name == a.Name })
			judgements, err := judgements(s, a, o)
			if err != nil {
				return nil, err
			}
			others, err := others(a, o)
			if err != nil {
				return nil, err
			}
			jobs = append(jobs, job{s, a, path, judgements, others})
		}
		if len(jobs) == before && len(o.Only) == 0 {
			return nil, &UsageError{fmt.Sprintf("suite %s has no artifact for the engine %q of this worker; it has: %s", s.Name, engine, artifactList(s))}
		}
	}
	if len(left) > 0 {
		return nil, &UsageError{fmt.Sprintf("no suite given has the artifact %s for the engine %q", strings.Join(left, ", "), engine)}
	}
	return jobs, nil
}

// hasFlippedByte wants the byte that a control changes to be in the artifact's file.
func hasFlippedByte(a suite.Artifact, path string) error {
	f := a.FlippedByte
	if f == nil {
		return nil
	}
	info, err := os.Stat(filepath.Join(path, filepath.FromSlash(f.File)))
	if err != nil {
		return &UsageError{err.Error()}
	}
	if f.Offset >= info.Size() {
		return &UsageError{fmt.Sprintf("flipped_byte of %s is byte %d, %s has %d: the suite or the file is another's", a.Name, f.Offset, path, info.Size())}
	}
	return nil
}

// judgements reads what people said, where a gate of the artifact is about it.
func judgements(s *suite.Suite, a suite.Artifact, o Options) (*suite.Judgements, error) {
	if s.GatesFor(a).People == nil {
		return nil, nil
	}
	dir, err := o.Locate(s.People.Asset)
	if err != nil {
		return nil, &UsageError{err.Error()}
	}
	return s.People.Read(os.DirFS(dir), dir)
}

// others finds the artifacts that controls load in place of a.
func others(a suite.Artifact, o Options) (map[string]string, error) {
	found := map[string]string{}
	for _, w := range a.WrongLoads {
		if w.Artifact == "" {
			continue
		}
		path, err := o.Locate(w.Artifact)
		if err != nil {
			return nil, &UsageError{err.Error()}
		}
		found[w.Artifact] = path
	}
	return found, nil
}

func artifactList(s *suite.Suite) string {
	var names []string
	for _, a := range s.Artifacts {
		names = append(names, fmt.Sprintf("%s (%s)", a.Name, a.Engine))
	}
	return strings.Join(names, ", ")
}

func newSuiteResult(s *suite.Suite) SuiteResult {
	inputs, tokens := s.Size()
	return SuiteResult{
		Name: s.Name, Title: s.Title, Task: s.Task, Digest: s.Digest, Model: s.Model.Family, Inputs: inputs, Tokens: tokens,
		References: s.Provenance.Libraries, Runs: []ArtifactResult{},
	}
}

// measureJob runs one artifact in a fresh worker.
func measureJob(ctx context.Context, j job, o Options) ArtifactResult {
	started := time.Now()
	m := newMeasurement(j, o)
	w, err := host.Start(ctx, spec(o, j.artifact))
	if err == nil {
		m.worker = w
		err = m.all(ctx, o)
		if err == nil {
			err = w.Close(ctx)
		} else {
			w.Kill()
		}
	}
	if err != nil {
		m.result.Problem = newProblem(err, w)
	}
	m.result.Seconds = time.Since(started).Seconds()
	m.result.judge()
	return m.result
}
