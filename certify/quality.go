package certify

import (
	"context"
	"math/rand/v2"
	"slices"

	"github.com/synapse-module/workers/certify/gate"
)

// quality embeds every row alone and holds the vectors to the reference.
func (m *embedding) quality(ctx context.Context) (err error) {
	m.begin("alone", len(m.rows))
	if m.alone, err = m.embed(ctx, m.rows, inOrder(len(m.rows)), 1, m.faithful()); err != nil {
		return err
	}
	m.result.Vectors = m.alone
	m.add(m.qualityOf(m.alone)...)
	if g := m.gates.Rank; g != nil {
		m.add(gate.Rank(m.ids, m.tagged(g.Queries), m.tagged(g.Documents), m.alone, m.want, *g)...)
	}
	m.similarities()
	cosines := gate.Cosines(m.alone, m.want)
	for _, in := range m.suite.Inputs {
		if i := slices.Index(m.ids, in.ID); i >= 0 {
			m.result.Rows = append(m.result.Rows, Row{ID: in.ID, Text: in.Text, Tokens: len(in.IDs), Cosine: gate.Figure(cosines[i])})
		}
	}
	return nil
}

// similarPairs is how many pairs of inputs a result shows beside the reference's.
const similarPairs = 400

// similarities compares a sample of pairs, the same in every run.
func (m *embedding) similarities() {
	random := rand.New(rand.NewPCG(shuffleSeed, 0))
	for range similarPairs {
		a, b := random.IntN(len(m.rows)), random.IntN(len(m.rows))
		if a != b {
			m.result.Similarities = append(m.result.Similarities, Similarity{
				Ours: gate.Similarity(m.alone[a], m.alone[b]), Reference: gate.Similarity(m.want[a], m.want[b]),
			})
		}
	}
}

// qualityOf holds vectors of all rows to the reference.
func (m *embedding) qualityOf(got [][]float32) []gate.Check {
	g := m.gates
	checks := []gate.Check{gate.Finite(m.ids, got)}
	checks = append(checks, gate.Cosine(m.ids, got, m.want, *g.Cosine)...)
	if g.MaxAbsDiff != nil {
		checks = append(checks, gate.MaxAbsDiff(m.ids, got, m.want, g.MaxAbsDiff.Max))
	}
	if g.Norm != nil {
		checks = append(checks, gate.Norm(m.ids, got, g.Norm.Tolerance))
	}
	for _, p := range g.Published {
		if i := slices.Index(m.ids, p.ID); i >= 0 {
			checks = append(checks, gate.Published(p, got[i]))
		}
	}
	return checks
}

// tagged returns the indices of m.rows that have the tag.
func (m *embedding) tagged(tag string) []int {
	var found []int
	for _, i := range m.suite.Tagged(tag) {
		if at := slices.Index(m.ids, m.suite.Inputs[i].ID); at >= 0 {
			found = append(found, at)
		}
	}
	return found
}

// maxTokens asks for a row of the stated maximum and for one of a token more.
func (m *embedding) maxTokens(ctx context.Context) error {
	stated := m.result.Model.MaxTokens
	m.begin("max_tokens", 2)
	like := m.longestInput()
	m.longest = rowOfLength(like, stated)
	atMax, err := m.embed(ctx, [][]int32{m.longest}, []int{0}, 1, m.faithful())
	if fatal(err) {
		return err
	}
	_, overErr := m.embed(ctx, [][]int32{rowOfLength(like, stated+1)}, []int{0}, 1, m.faithful())
	if fatal(overErr) {
		return overErr
	}
	var vector []float32
	if err == nil {
		vector = atMax[0]
	}
	m.add(gate.MaxTokens(*m.gates.MaxTokens, stated, vector, err, overErr)...)
	return nil
}

// longestInput is the longest row of the suite.
func (m *embedding) longestInput() []int32 {
	var longest []int32
	for _, in := range m.suite.Inputs {
		if len(in.IDs) > len(longest) {
			longest = in.IDs
		}
	}
	return longest
}
