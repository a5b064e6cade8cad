package certify

import (
	"errors"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/synapse-module/workers/certify/certificate"
	"github.com/synapse-module/workers/certify/gate"
	"github.com/synapse-module/workers/certify/machine"
	"github.com/synapse-module/workers/certify/suite"
	"github.com/synapse-module/workers/host"
	"github.com/synapse-module/workers/protocol"
)

// ResultSchema is the version of result.json, which result.schema.json
// describes.
const ResultSchema = 1

// Verdict sums up a run.
type Verdict string

// The verdicts, best first.
const (
	Passed     Verdict = "passed"
	Void       Verdict = "void"
	Unmeasured Verdict = "unmeasured"
	Failed     Verdict = "failed"
)

// The exit statuses of the command.
const (
	ExitPassed     = 0
	ExitFailed     = 1 // a gate failed
	ExitUsage      = 2 // the command line or a suite is at fault
	ExitUnmeasured = 3 // no verdict could be reached: unmeasured or void
)

// ExitStatus is the command's exit status for a verdict.
func (v Verdict) ExitStatus() int {
	switch v {
	case Passed:
		return ExitPassed
	case Failed:
		return ExitFailed
	default:
		return ExitUnmeasured
	}
}

// worse returns the verdict that a whole has whose parts have a and b: a gate
// that is known to have failed outweighs what could not be learnt.
func worse(a, b Verdict) Verdict {
	rank := map[Verdict]int{Passed: 0, Void: 1, Unmeasured: 2, Failed: 3}
	if rank[b] > rank[a] {
		return b
	}
	return a
}

// Result is everything that one command found.
type Result struct {
	Schema  int             `json:"schema"`
	Verdict Verdict         `json:"verdict"`
	Tool    string          `json:"tool"` // version of certify
	Started time.Time       `json:"started"`
	Seconds float64         `json:"seconds"`
	Machine machine.Machine `json:"machine"`
	Worker  Worker          `json:"worker"`
	Suites  []SuiteResult   `json:"suites"`
}

// Worker is the binary that was held to the suites.
type Worker struct {
	Name   string          `json:"name"`   // of the file
	Digest protocol.Digest `json:"digest"` // of the file
	Engine protocol.Engine `json:"engine"` // as in HELLO

	Libraries []certificate.File `json:"libraries"`
}

// SuiteResult is what one suite found.
type SuiteResult struct {
	Name       string            `json:"name"`
	Title      string            `json:"title"`
	Task       suite.Task        `json:"task"`
	Digest     protocol.Digest   `json:"digest"` // of the suite's folder
	Model      string            `json:"model"`
	Inputs     int               `json:"inputs"`
	Tokens     int               `json:"tokens"`
	References map[string]string `json:"references"` // versions of what computed the reference
	Runs       []ArtifactResult  `json:"runs"`
}

// ArtifactResult is what one suite found about one artifact.
type ArtifactResult struct {
	Artifact string          `json:"artifact"` // name in the suite
	Digest   protocol.Digest `json:"digest"`
	Format   string          `json:"format"`

	RuntimeConfig jsontext.Value `json:"runtime_config"` // of LOAD, {} for the engine's defaults

	Verdict    Verdict              `json:"verdict"`
	Problem    *Problem             `json:"problem,omitempty"` // why it is unmeasured
	Seconds    float64              `json:"seconds"`
	ColdLoadMS int64                `json:"cold_load_ms"`
	Model      protocol.Description `json:"model,omitzero"` // the answer to DESCRIBE
	Checks     []gate.Check         `json:"checks"`
	Controls   []gate.Control       `json:"controls"`
	Rows       []Row                `json:"rows"`

	Vectors [][]float32 `json:"-"` // of each row, alone; in a file of its own

	Similarities []Similarity `json:"similarities"` // of a sample of pairs of inputs
	People       []Judged     `json:"people,omitempty"`
	Agreement    []Agreement  `json:"agreement,omitempty"` // with people
	Pairs        []Scored     `json:"pairs,omitempty"`     // of a rerank suite
	Answers      []Answered   `json:"answers,omitempty"`   // of a generate suite
	Performance  *Performance `json:"performance,omitempty"`
}

// Agreement is how the similarities of one set of judgements correlate with what
// people said: this worker's beside the reference's.
type Agreement struct {
	Set      string      `json:"set"`
	Pairs    int         `json:"pairs"`
	Pearson  Correlation `json:"pearson"`
	Spearman Correlation `json:"spearman"`
}

// Correlation is one coefficient, of the worker and of the reference.
type Correlation struct {
	Ours      gate.Figure `json:"ours"`
	Reference float64     `json:"reference"`
}

// Scored is what became of one pair of query and document, alone in its request.
type Scored struct {
	ID        string      `json:"id"` // of the document
	Query     string      `json:"query"`
	Text      *string     `json:"text"`   // of the document; null where the suite has only ids
	Tokens    int         `json:"tokens"` // of the pair
	Ours      gate.Figure `json:"ours"`
	Reference float64     `json:"reference"`
}

// Answered is what became of one prompt.
type Answered struct {
	ID     string                `json:"id"`
	Prompt string                `json:"prompt"`
	Tokens int                   `json:"tokens"` // of the prompt
	Text   string                `json:"text"`
	NGen   int                   `json:"n_gen"`
	Finish protocol.FinishReason `json:"finish"`

	Reference string `json:"reference,omitempty"` // the reference's text
	Equal     int    `json:"equal"`               // leading tokens that are the reference's
	Grammar   string `json:"grammar,omitempty"`
	Disobeys  string `json:"disobeys,omitempty"` // why the text is not what the grammar admits
}

// Similarity is how alike two inputs are to the worker and to the reference.
type Similarity struct {
	Ours      gate.Figure `json:"ours"`
	Reference gate.Figure `json:"reference"`
}

// Judged is how alike two texts are to the worker and to people.
type Judged struct {
	Set   string      `json:"set"`
	Ours  gate.Figure `json:"ours"`
	Score float64     `json:"score"` // on the scale of the set
}

// Row is what became of one input, alone in its batch.
type Row struct {
	ID     string      `json:"id"`
	Text   *string     `json:"text"` // null where the suite has only ids
	Tokens int         `json:"tokens"`
	Cosine gate.Figure `json:"cosine"`
}

// Problem is why something could not be measured.
type Problem struct {
	Message string `json:"message"`
	LogTail string `json:"log_tail,omitempty"` // the end of the worker's log
}

// newProblem keeps the worker's last words where the error is a crash.
func newProblem(err error, w *host.Worker) *Problem {
	p := &Problem{Message: err.Error()}
	var crash *host.EngineCrashed
	switch {
	case errors.As(err, &crash):
		p.LogTail = crash.LogTail
	case w != nil:
		p.LogTail = w.LogTail()
	}
	return p
}

// judge sets the verdict from the checks, the controls and the problem.
func (r *ArtifactResult) judge() {
	r.Verdict = Passed
	for _, c := range r.Controls {
		if c.Void() {
			r.Verdict = Void
		}
	}
	if r.Problem != nil || len(r.Checks) == 0 {
		r.Verdict = Unmeasured
	}
	for _, c := range r.Checks {
		if !c.Passed {
			r.Verdict = Failed
		}
	}
}

// judge sets the verdict from those of all runs.
func (r *Result) judge() {
	r.Verdict = Passed
	runs := 0
	for _, s := range r.Suites {
		for _, run := range s.Runs {
			runs++
			r.Verdict = worse(r.Verdict, run.Verdict)
		}
	}
	if runs == 0 {
		r.Verdict = Unmeasured
	}
}
