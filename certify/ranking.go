package certify

import (
	"context"
	"fmt"
	"slices"

	"github.com/synapse-module/workers/certify/gate"
	"github.com/synapse-module/workers/certify/suite"
	"github.com/synapse-module/workers/host"
)

// ranking measures a model that scores documents for a query.
type ranking struct {
	*measurement

	// queries holds what the worker states it takes: the max_tokens gate fails
	// where documents are missing.
	queries []suite.Query

	alone   [][]float32 // the score of each document of each query, alone in its request
	longest suite.Document
}

func newRanking(m *measurement) *ranking { return &ranking{measurement: m} }

func (m *ranking) prepare() error {
	for _, q := range m.suite.Queries {
		q.Documents = slices.DeleteFunc(slices.Clone(q.Documents), func(d suite.Document) bool {
			return m.suite.Tokens(q, d) > m.result.Model.MaxTokens
		})
		if len(q.Documents) > 1 {
			m.queries = append(m.queries, q)
		}
	}
	if len(m.queries) == 0 {
		return fmt.Errorf("no query of the suite has two documents within the %d tokens that the worker states", m.result.Model.MaxTokens)
	}
	return nil
}

func (m *ranking) steps() []func(context.Context) error {
	return []func(context.Context) error{m.quality, m.maxTokens, m.company, m.besideLongest, m.repeats, m.controls}
}

func (m *ranking) batch(ctx context.Context, rows, tokens int) (computed int, err error) {
	q := m.queries[0]
	d := m.document(min(tokens, m.result.Model.MaxTokens))
	_, err = m.score(ctx, q.IDs, slices.Repeat([]suite.Document{d}, rows), inOrder(rows), rows)
	return rows * m.suite.Tokens(q, d), err
}

// document makes one whose pair with the first query has so many tokens, or one
// token of its own where the query leaves no room.
func (m *ranking) document(tokens int) suite.Document {
	q := m.queries[0]
	n := max(1, tokens-len(q.IDs)-m.suite.Model.PairTokens)
	return suite.Document{IDs: rowOfLength(q.Documents[0].IDs, n)}
}

// score asks for the documents of a query, so many a request in the given order,
// and returns their scores in the order of docs.
func (m *ranking) score(ctx context.Context, query []int32, docs []suite.Document, order []int, size int) ([]float32, error) {
	out := make([]float32, len(docs))
	for _, batch := range batches(order, size) {
		r := host.RerankRequest{Model: m.ref, Query: query}
		for _, i := range batch {
			r.Candidates = append(r.Candidates, docs[i].IDs)
		}
		scores, err := m.worker.Rerank(ctx, r)
		if err != nil {
			return nil, err
		}
		for n, i := range batch {
			out[i] = scores[n]
		}
		m.observer.Advance(len(batch))
	}
	return out, nil
}

// each scores the documents of every query, so many a request, in the order that
// order gives for their count.
func (m *ranking) each(ctx context.Context, size int, order func(n int) []int) (all [][]float32, err error) {
	for _, q := range m.queries {
		scores, err := m.score(ctx, q.IDs, q.Documents, order(len(q.Documents)), size)
		if err != nil {
			return nil, err
		}
		all = append(all, scores)
	}
	return all, nil
}

// quality scores every pair alone and holds the scores to the reference.
func (m *ranking) quality(ctx context.Context) (err error) {
	m.begin("alone", m.pairs())
	if m.alone, err = m.each(ctx, 1, inOrder); err != nil {
		return err
	}
	m.add(m.qualityOf(m.alone)...)
	for i, q := range m.queries {
		for j, d := range q.Documents {
			m.result.Pairs = append(m.result.Pairs, Scored{
				ID: d.ID, Query: q.Text, Text: d.Text, Tokens: m.suite.Tokens(q, d),
				Ours: gate.Figure(m.alone[i][j]), Reference: float64(d.Score),
			})
		}
	}
	return nil
}

// qualityOf holds the scores of all pairs to the reference.
func (m *ranking) qualityOf(got [][]float32) []gate.Check {
	var ids []string
	for _, q := range m.queries {
		ids = append(ids, q.ID)
	}
	want := m.reference()
	checks := gate.Scores(m.documents(), slices.Concat(got...), slices.Concat(want...), *m.gates.Score)
	return append(checks, gate.Order(ids, got, want, *m.gates.Order)...)
}

// reference returns the reference's score of each document of each query.
func (m *ranking) reference() [][]float32 {
	all := make([][]float32, len(m.queries))
	for i, q := range m.queries {
		for _, d := range q.Documents {
			all[i] = append(all[i], d.Score)
		}
	}
	return all
}

// documents returns the ids of the documents of all queries.
func (m *ranking) documents() []string {
	var ids []string
	for _, q := range m.queries {
		for _, d := range q.Documents {
			ids = append(ids, d.ID)
		}
	}
	return ids
}

func (m *ranking) pairs() int { return len(m.documents()) }

// maxTokens asks for a pair of the stated maximum and for one of a token more.
func (m *ranking) maxTokens(ctx context.Context) error {
	stated := m.result.Model.MaxTokens
	m.begin("max_tokens", 2)
	q := m.queries[0]
	m.longest = m.document(stated)
	atMax, err := m.score(ctx, q.IDs, []suite.Document{m.longest}, []int{0}, 1)
	if fatal(err) {
		return err
	}
	_, overErr := m.score(ctx, q.IDs, []suite.Document{m.document(stated + 1)}, []int{0}, 1)
	if fatal(overErr) {
		return overErr
	}
	m.add(gate.MaxTokens(*m.gates.MaxTokens, stated, atMax, err, overErr)...)
	return nil
}

// company scores all pairs again in requests of each size, in another order each
// time, and holds each pair to itself alone.
func (m *ranking) company(ctx context.Context) error {
	inv := m.gates.Invariance
	for _, size := range inv.Batches {
		figure := fmt.Sprintf("shuffled, requests of %d", size)
		m.begin(figure, m.pairs())
		got, err := m.each(ctx, size, func(n int) []int { return shuffled(n, uint64(size)) })
		if err != nil {
			return err
		}
		m.add(gate.Invariance(figure, m.documents(), asRows(m.alone...), asRows(got...), inv.Tolerance))
	}
	return nil
}

// asRows makes a row of one value of each score.
func asRows(scores ...[]float32) [][]float32 {
	var rows [][]float32
	for _, s := range slices.Concat(scores...) {
		rows = append(rows, []float32{s})
	}
	return rows
}

// besideLongest scores documents of the first query, each in a request of two
// with the longest document that passes: where padding can do the most harm.
func (m *ranking) besideLongest(ctx context.Context) error {
	inv, q := m.gates.Invariance, m.queries[0]
	chosen := spread(len(q.Documents), inv.BesideLongest)
	m.begin("beside the longest pair", 2*len(chosen))
	var ids []string
	var alone, company []float32
	for _, i := range chosen {
		scores, err := m.score(ctx, q.IDs, []suite.Document{m.longest, q.Documents[i]}, []int{0, 1}, 2)
		if err != nil {
			return err
		}
		ids = append(ids, q.Documents[i].ID)
		alone = append(alone, m.alone[0][i])
		company = append(company, scores[1])
	}
	m.add(gate.Invariance("beside the longest pair", ids, asRows(alone), asRows(company), inv.Tolerance))
	return nil
}

// repeats scores the first documents of the first query again and again.
func (m *ranking) repeats(ctx context.Context) error {
	g, q := m.gates.Repeats, m.queries[0]
	docs := q.Documents[:min(g.Rows, len(q.Documents))]
	m.begin("repeats", g.Count*len(docs))
	var ids []string
	for _, d := range docs {
		ids = append(ids, d.ID)
	}
	runs := make([][][]float32, g.Count)
	for n := range runs {
		scores, err := m.score(ctx, q.IDs, docs, inOrder(len(docs)), len(docs))
		if err != nil {
			return err
		}
		runs[n] = asRows(scores)
	}
	m.add(gate.Repeats(ids, runs))
	return nil
}

// controls does what is wrong on purpose and expects the gates to say so.
func (m *ranking) controls(ctx context.Context) error {
	c := m.suite.Controls
	if c.ShuffledDocuments {
		var rotated [][]float32
		for _, scores := range m.alone {
			rotated = append(rotated, slices.Concat(scores[1:], scores[:1]))
		}
		m.caught(gate.NewControl("shuffled_documents", m.qualityOf(rotated)))
	}
	if c.SwappedTexts {
		if err := m.swappedTexts(ctx); err != nil {
			return err
		}
	}
	return m.wrongLoads(ctx, func(ctx context.Context, name string) ([]gate.Check, error) {
		m.begin("control: "+name, m.pairs())
		got, err := m.each(ctx, controlBatch, inOrder)
		if err != nil {
			return nil, err
		}
		return m.qualityOf(got), nil
	})
}

// swappedTexts sends each document as the query of its query.
func (m *ranking) swappedTexts(ctx context.Context) error {
	const name = "swapped_texts"
	m.begin("control: "+name, m.pairs())
	var all [][]float32
	for _, q := range m.queries {
		var scores []float32
		for _, d := range q.Documents {
			one, err := m.score(ctx, d.IDs, []suite.Document{{IDs: q.IDs}}, []int{0}, 1)
			if err != nil {
				return err
			}
			scores = append(scores, one...)
		}
		all = append(all, scores)
	}
	m.caught(gate.NewControl(name, m.qualityOf(all)))
	return nil
}
