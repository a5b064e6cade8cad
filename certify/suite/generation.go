package suite

import (
	"bytes"
	"fmt"
	"regexp"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/synapse-module/workers/protocol"
)

// Prompt is what one generation asks. It has an answer of the reference, or a
// grammar and an independent statement of what the grammar admits.
type Prompt struct {
	ID        string   `json:"id"`
	Text      string   `json:"text"`
	IDs       []int32  `json:"ids"`
	MaxTokens int      `json:"max_tokens"`
	Grammar   string   `json:"grammar,omitempty"` // GBNF or JSON Schema, as the wire takes it
	Obeys     *Obeys   `json:"obeys,omitempty"`
	Tags      []string `json:"tags"`

	Answer *Answer `json:"-"` // the reference's, nil under a grammar
}

// Answer is the reference's greedy continuation of a prompt.
type Answer struct {
	ID     string                `json:"id"` // of the prompt
	IDs    []int32               `json:"ids"`
	Pieces []string              `json:"pieces"` // the text of each token; together the text
	Finish protocol.FinishReason `json:"finish"`
}

// Obeys says what a text under a grammar must be, in words that share no code
// with the worker's matcher.
type Obeys struct {
	Regexp string         `json:"regexp,omitempty"` // of RE2, of the whole text
	Schema jsontext.Value `json:"schema,omitempty"` // JSON Schema 2020-12 of the text as JSON

	pattern *regexp.Regexp
	schema  *jsonschema.Schema
}

// Check says why a text is not what it must be.
func (o *Obeys) Check(text string) error {
	if o.pattern != nil && !o.pattern.MatchString(text) {
		return fmt.Errorf("%.200q does not match %s", text, o.Regexp)
	}
	if o.schema == nil {
		return nil
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader([]byte(text)))
	if err != nil {
		return fmt.Errorf("%.200q is no JSON: %w", text, err)
	}
	if err := o.schema.Validate(v); err != nil {
		return fmt.Errorf("%.200q: %w", text, err)
	}
	return nil
}

func (o *Obeys) compile() (err error) {
	if (o.Regexp == "") == (o.Schema == nil) {
		return fmt.Errorf("one of regexp and schema says what a text must be")
	}
	if o.Regexp != "" {
		o.pattern, err = regexp.Compile(`^(?:` + o.Regexp + `)$`)
		return err
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(o.Schema))
	if err != nil {
		return err
	}
	const name = "obeys.json"
	c := jsonschema.NewCompiler()
	c.UseLoader(jsonschema.SchemeURLLoader{}) // nothing is fetched for a schema
	if err := c.AddResource(name, doc); err != nil {
		return err
	}
	o.schema, err = c.Compile(name)
	return err
}

func checkPrompt(p Prompt, seen map[string]bool) error {
	if err := checkID(p.ID, seen); err != nil {
		return err
	}
	switch {
	case len(p.IDs) == 0:
		return fmt.Errorf("%q has no token ids", p.ID)
	case p.MaxTokens < 1:
		return fmt.Errorf("%q has max_tokens %d", p.ID, p.MaxTokens)
	case (p.Grammar == "") != (p.Obeys == nil):
		return fmt.Errorf("%q: grammar and obeys belong together", p.ID)
	}
	if p.Obeys == nil {
		return nil
	}
	if err := p.Obeys.compile(); err != nil {
		return fmt.Errorf("%q: obeys: %w", p.ID, err)
	}
	return nil
}

func checkAnswer(a Answer, seen map[string]bool) error {
	if err := checkID(a.ID, seen); err != nil {
		return err
	}
	switch {
	case len(a.IDs) == 0 || len(a.IDs) != len(a.Pieces):
		return fmt.Errorf("%q has %d ids and %d pieces of text", a.ID, len(a.IDs), len(a.Pieces))
	case a.Finish != protocol.FinishStop && a.Finish != protocol.FinishLength:
		return fmt.Errorf("%q ends by %q", a.ID, a.Finish)
	}
	return nil
}

// prompts reads the prompts of a generate suite and the reference's answers.
func (r reader) prompts(s *Suite) (err error) {
	p := s.Provenance
	if s.Prompts, err = dataLines(r, s.Data.Inputs, p.Inputs.Count, p.Inputs.SHA256, checkPrompt); err != nil {
		return err
	}
	free, longest := map[string]*Prompt{}, 0
	for i := range s.Prompts {
		q := &s.Prompts[i]
		longest = max(longest, len(q.IDs))
		if q.Grammar == "" {
			free[q.ID] = q
		}
	}
	answers, err := dataLines(r, s.Data.Answers, len(free), p.Answers.SHA256, checkAnswer)
	if err != nil {
		return err
	}
	for i, a := range answers {
		q := free[a.ID]
		if q == nil || len(a.IDs) > q.MaxTokens {
			return &Error{File: r.name(s.Data.Answers), Line: i + 1, Msg: fmt.Sprintf("%q is no prompt without a grammar, or has more tokens than its prompt allows", a.ID)}
		}
		q.Answer = &answers[i]
	}
	if err := r.cases(s); err != nil {
		return err
	}
	return r.longest(s, longest)
}

// cases wants something for each gate to hold: one over nothing would pass for a
// reason that nobody sees.
func (r reader) cases(s *Suite) error {
	stops, grammars := 0, 0
	for _, q := range s.Prompts {
		if q.Grammar != "" {
			grammars++
		} else if q.Answer.Finish == protocol.FinishStop {
			stops++
		}
	}
	if stops == 0 {
		return &Error{File: r.name(s.Data.Answers), Msg: "no answer ends by itself: how a worker stops would not be held"}
	}
	if s.Controls.NoGrammar && grammars == 0 {
		return &Error{File: r.name(File), Field: "controls.no_grammar", Msg: "no prompt has a grammar that could be left out"}
	}
	return nil
}
