package conformance

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/synapse-module/workers/protocol"
)

// Options say which worker is held to the wire, and with which model.
type Options struct {
	Worker string   // the worker's executable
	Args   []string // besides --socket and --nonce

	Artifact *Artifact // nil: cases that need a model are skipped

	// Patience is how long the worker may take for what takes no time of its own.
	// Default: half a minute.
	Patience time.Duration
}

func (o Options) patience() time.Duration {
	if o.Patience > 0 {
		return o.Patience
	}
	return defaultPatience
}

// Artifact is a model that the worker must load.
type Artifact struct {
	Path   string // absolute
	Digest protocol.Digest
	Format string
	Config jsontext.Value // runtime_config; nil for the engine's defaults
}

// Verdict is what became of a case.
type Verdict string

// The verdicts of a case.
const (
	Kept    Verdict = "kept"
	Broken  Verdict = "broken"
	Skipped Verdict = "skipped"
)

// Outcome is what became of one case.
type Outcome struct {
	Name    string  `json:"name"`
	Rule    string  `json:"rule"`
	Verdict Verdict `json:"verdict"`
	Detail  string  `json:"detail,omitempty"`   // what the worker did instead, or why it was skipped
	LogTail string  `json:"log_tail,omitempty"` // of a worker that broke the rule
}

// Report is what became of all cases.
type Report struct {
	Schema   int             `json:"schema"`
	Worker   string          `json:"worker"` // name of the file
	Digest   protocol.Digest `json:"digest"` // of the file
	Outcomes []Outcome       `json:"outcomes"`
}

// ReportSchema is the version of a report's form.
const ReportSchema = 1

// Count returns how many cases have the verdict.
func (r *Report) Count(v Verdict) int {
	n := 0
	for _, o := range r.Outcomes {
		if o.Verdict == v {
			n++
		}
	}
	return n
}

// stage is how far the conversation is when a case begins.
type stage int

const (
	atStart   stage = iota // no process yet
	connected              // the worker has connected, its HELLO is not read
	serving                // after HELLO_ACK
	loaded                 // with a model
)

// Case is one rule of the wire and how it is tried.
type Case struct {
	Name string // group/what
	Rule string

	from stage
	ends bool // the worker is gone afterwards
	run  func(context.Context, *session) error
}

// Cases returns all cases in the order in which they are tried.
func Cases() []Case {
	return slices.Concat(startCases, handshakeCases, frameCases, requestCases, loadCases, packedCases, embedCases, otherCases, endCases)
}

// skip says why a case is not tried.
type skip string

func (s skip) Error() string { return string(s) }

// Run tries each case and tells its outcome to each, where that is not nil. Its
// error is of a worker that cannot be read, started or spoken to at all, or the
// context's.
func Run(ctx context.Context, o Options, each func(Outcome)) (*Report, error) {
	f, err := os.Open(o.Worker)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	report := &Report{Schema: ReportSchema, Worker: filepath.Base(o.Worker)}
	if report.Digest, err = protocol.FileDigest(f); err != nil {
		return nil, err
	}
	s, err := start(ctx, o)
	if err != nil {
		return nil, err
	}
	s.close()
	r := runner{o: o}
	defer r.drop()
	for _, c := range Cases() {
		out := r.try(ctx, c)
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		report.Outcomes = append(report.Outcomes, out)
		if each != nil {
			each(out)
		}
	}
	return report, nil
}

// runner keeps a worker from case to case as long as none broke it.
type runner struct {
	o      Options
	shared *session
}

func (r *runner) try(ctx context.Context, c Case) Outcome {
	out := Outcome{Name: c.Name, Rule: c.Rule, Verdict: Kept}
	s, err := r.session(ctx, c.from)
	if err == nil {
		err = c.run(ctx, s)
		if err == nil && !c.ends && c.from >= serving {
			err = s.inStep()
		}
	}
	var why skip
	var early *EarlyEnd
	switch {
	case err == nil:
	case errors.As(err, &why):
		out.Verdict, out.Detail = Skipped, string(why)
	default:
		out.Verdict, out.Detail = Broken, err.Error()
		if errors.As(err, &early) {
			out.LogTail = early.LogTail
		} else if s != nil && s.peer != nil {
			s.kill() // what it has still to say must be in the tail
			out.LogTail = s.stderr.String()
		}
	}
	if c.from < serving && s != nil && s.peer != nil {
		s.close()
	} else if out.Verdict == Broken || c.ends && out.Verdict == Kept {
		r.drop()
	}
	return out
}

// session brings a worker to the stage that a case begins at.
func (r *runner) session(ctx context.Context, from stage) (*session, error) {
	switch {
	case from == atStart:
		return &session{o: r.o}, nil
	case from == loaded && r.o.Artifact == nil:
		return nil, skip("no model was given: --artifact and --format name one")
	case from == connected:
		return start(ctx, r.o)
	}
	if r.shared == nil {
		s, err := start(ctx, r.o)
		if err != nil {
			return nil, err
		}
		r.shared = s
		if err := s.handshake(); err != nil {
			return s, fmt.Errorf("handshake: %w", err)
		}
	}
	if from == loaded && r.shared.model == nil {
		if err := r.shared.load(); err != nil {
			return r.shared, err
		}
	}
	return r.shared, nil
}

func (r *runner) drop() {
	if r.shared != nil {
		r.shared.close()
		r.shared = nil
	}
}
