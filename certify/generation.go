package certify

import (
	"context"
	"fmt"

	"github.com/synapse-module/workers/certify/gate"
	"github.com/synapse-module/workers/certify/suite"
	"github.com/synapse-module/workers/host"
)

// bareGrammars is how many prompts are sent without their grammar as a control:
// each runs to its limit, and one that disobeys is enough.
const bareGrammars = 4

// generation measures a model that continues prompts.
type generation struct {
	*measurement

	// free and bound are the prompts without and with a grammar that the worker
	// states it takes.
	free, bound []suite.Prompt

	answers []gate.Generation // to free, each asked once, in order
}

func newGeneration(m *measurement) *generation { return &generation{measurement: m} }

func (m *generation) prepare() error {
	for _, p := range m.suite.Prompts {
		switch {
		case len(p.IDs) > m.result.Model.MaxTokens:
		case p.Grammar == "":
			m.free = append(m.free, p)
		default:
			m.bound = append(m.bound, p)
		}
	}
	if len(m.free) == 0 {
		return fmt.Errorf("no prompt of the suite is within the %d tokens that the worker states", m.result.Model.MaxTokens)
	}
	return nil
}

func (m *generation) steps() []func(context.Context) error {
	return []func(context.Context) error{m.quality, m.grammars, m.maxTokens, m.limits, m.otherOrder, m.repeats, m.controls}
}

// batch asks for so many answers, one after the other: a worker has one lane.
func (m *generation) batch(ctx context.Context, rows, tokens int) (computed int, err error) {
	for n := range rows {
		p := m.free[n%len(m.free)]
		p.MaxTokens = tokens
		got, err := m.ask(ctx, []suite.Prompt{p}, []int{0})
		if err != nil {
			return computed, err
		}
		computed += got[0].NGen
	}
	return computed, nil
}

// ask asks for prompts in the given order and returns the answers in theirs.
func (m *generation) ask(ctx context.Context, prompts []suite.Prompt, order []int) ([]gate.Generation, error) {
	out := make([]gate.Generation, len(prompts))
	for _, i := range order {
		p := prompts[i]
		t, err := m.worker.Generate(ctx, host.GenerateRequest{Model: m.ref, Prompt: p.IDs, MaxTokens: p.MaxTokens, Grammar: p.Grammar})
		if err != nil {
			return nil, err
		}
		out[i] = gate.Generation{ID: p.ID, Text: t.Text, NGen: t.NGen, Finish: t.Finish}
		m.observer.Advance(1)
	}
	return out, nil
}

// quality continues every prompt without a grammar and holds the answers to the
// reference's.
func (m *generation) quality(ctx context.Context) (err error) {
	m.begin("greedy", len(m.free))
	if m.answers, err = m.ask(ctx, m.free, inOrder(len(m.free))); err != nil {
		return err
	}
	m.add(m.qualityOf(m.answers)...)
	for i, g := range m.answers {
		p := m.free[i]
		a := answered(p, g)
		a.Equal = gate.EqualTokens(g.Text, *p.Answer)
		for _, piece := range p.Answer.Pieces {
			a.Reference += piece
		}
		m.result.Answers = append(m.result.Answers, a)
	}
	return nil
}

func (m *generation) qualityOf(got []gate.Generation) []gate.Check {
	var want []suite.Answer
	for _, p := range m.free {
		want = append(want, *p.Answer)
	}
	return gate.Greedy(got, want, *m.gates.Greedy)
}

func answered(p suite.Prompt, g gate.Generation) Answered {
	return Answered{ID: p.ID, Prompt: p.Text, Tokens: len(p.IDs), Text: g.Text, NGen: g.NGen, Finish: g.Finish, Grammar: p.Grammar}
}

// grammars asks under each grammar that the suite has, and has the independent
// matcher judge.
func (m *generation) grammars(ctx context.Context) error {
	if len(m.bound) == 0 {
		return nil
	}
	m.begin("grammars", len(m.bound))
	got, err := m.ask(ctx, m.bound, inOrder(len(m.bound)))
	if err != nil {
		return err
	}
	why := disobedience(m.bound, got)
	m.add(gate.Obedience(got, why))
	for i, g := range got {
		a := answered(m.bound[i], g)
		a.Disobeys = why[i]
		m.result.Answers = append(m.result.Answers, a)
	}
	return nil
}

// disobedience says of each answer why it is not what its prompt's grammar
// admits; empty where it is.
func disobedience(prompts []suite.Prompt, got []gate.Generation) []string {
	why := make([]string, len(got))
	for i, g := range got {
		if err := prompts[i].Obeys.Check(g.Text); err != nil {
			why[i] = err.Error()
		}
	}
	return why
}

// maxTokens asks with a prompt of the stated maximum and with one of a token
// more.
func (m *generation) maxTokens(ctx context.Context) error {
	stated := m.result.Model.MaxTokens
	m.begin("max_tokens", 2)
	long := func(n int) []suite.Prompt {
		return []suite.Prompt{{ID: "longest", IDs: rowOfLength(m.free[0].IDs, n), MaxTokens: 1}}
	}
	var atMax []float32
	got, err := m.ask(ctx, long(stated), []int{0})
	if fatal(err) {
		return err
	}
	if err == nil {
		atMax = []float32{float32(got[0].NGen)}
	}
	_, overErr := m.ask(ctx, long(stated+1), []int{0})
	if fatal(overErr) {
		return overErr
	}
	m.add(gate.MaxTokens(*m.gates.MaxTokens, stated, atMax, err, overErr)...)
	return nil
}

// limits asks the prompts again for at most so many tokens.
func (m *generation) limits(ctx context.Context) error {
	for _, limit := range m.gates.Limits.Counts {
		m.begin(fmt.Sprintf("max_tokens %d", limit), len(m.free))
		limited := make([]suite.Prompt, len(m.free))
		for i, p := range m.free {
			limited[i] = p
			limited[i].MaxTokens = min(limit, p.MaxTokens)
		}
		got, err := m.ask(ctx, limited, inOrder(len(limited)))
		if err != nil {
			return err
		}
		m.add(gate.Limits(limit, m.answers, got))
	}
	return nil
}

// otherOrder asks all prompts again in another order: what came before must
// leave nothing behind.
func (m *generation) otherOrder(ctx context.Context) error {
	m.begin("shuffled", len(m.free))
	got, err := m.ask(ctx, m.free, shuffled(len(m.free), 0))
	if err != nil {
		return err
	}
	m.add(gate.SameAnswers("invariance", "shuffled: other answers", m.answers, got))
	return nil
}

// repeats asks the first prompts again and again.
func (m *generation) repeats(ctx context.Context) error {
	g := m.gates.Repeats
	prompts := m.free[:min(g.Rows, len(m.free))]
	m.begin("repeats", g.Count*len(prompts))
	var before, again []gate.Generation
	for range g.Count {
		got, err := m.ask(ctx, prompts, inOrder(len(prompts)))
		if err != nil {
			return err
		}
		before, again = append(before, m.answers[:len(prompts)]...), append(again, got...)
	}
	m.add(gate.SameAnswers("repeats", "other answers", before, again))
	return nil
}

// controls does what is wrong on purpose and expects the gates to say so.
func (m *generation) controls(ctx context.Context) error {
	c := m.suite.Controls
	if c.TruncatedPrompt {
		m.begin("control: truncated_prompt", len(m.free))
		cut := make([]suite.Prompt, len(m.free))
		for i, p := range m.free {
			cut[i] = p
			cut[i].IDs = p.IDs[:(len(p.IDs)+1)/2]
		}
		got, err := m.ask(ctx, cut, inOrder(len(cut)))
		if err != nil {
			return err
		}
		m.caught(gate.NewControl("truncated_prompt", m.qualityOf(got)))
	}
	if c.NoGrammar && len(m.bound) > 0 {
		var bare []suite.Prompt
		for _, i := range spread(len(m.bound), bareGrammars) {
			p := m.bound[i]
			p.Grammar = ""
			bare = append(bare, p)
		}
		m.begin("control: no_grammar", len(bare))
		got, err := m.ask(ctx, bare, inOrder(len(bare)))
		if err != nil {
			return err
		}
		m.caught(gate.NewControl("no_grammar", []gate.Check{gate.Obedience(got, disobedience(bare, got))}))
	}
	return m.wrongLoads(ctx, func(ctx context.Context, name string) ([]gate.Check, error) {
		m.begin("control: "+name, len(m.free))
		got, err := m.ask(ctx, m.free, inOrder(len(m.free)))
		if err != nil {
			return nil, err
		}
		return m.qualityOf(got), nil
	})
}
