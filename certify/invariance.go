package certify

import (
	"context"
	"fmt"

	"github.com/synapse-module/workers/certify/gate"
)

// company embeds all rows again in batches of each size, in another order each
// time, and holds each row to itself alone.
func (m *embedding) company(ctx context.Context) error {
	inv := m.gates.Invariance
	for _, size := range inv.Batches {
		figure := fmt.Sprintf("shuffled, batches of %d", size)
		m.begin(figure, len(m.rows))
		got, err := m.embed(ctx, m.rows, shuffled(len(m.rows), uint64(size)), size, m.faithful())
		if err != nil {
			return err
		}
		m.add(gate.Invariance(figure, m.ids, m.alone, got, inv.Tolerance))
	}
	return nil
}

// besideLongest embeds rows of all lengths, each in a batch of two with the
// longest row that passes: where padding can do the most harm.
func (m *embedding) besideLongest(ctx context.Context) error {
	inv := m.gates.Invariance
	chosen := spread(len(m.rows), inv.BesideLongest)
	m.begin("beside the longest row", 2*len(chosen))
	var ids []string
	var alone, company [][]float32
	for _, i := range chosen {
		pair, err := m.embed(ctx, [][]int32{m.longest, m.rows[i]}, []int{0, 1}, 2, m.faithful())
		if err != nil {
			return err
		}
		ids = append(ids, m.ids[i])
		alone = append(alone, m.alone[i])
		company = append(company, pair[1])
	}
	m.add(gate.Invariance("beside the longest row", ids, alone, company, inv.Tolerance))
	return nil
}

// repeats embeds one batch again and again.
func (m *embedding) repeats(ctx context.Context) error {
	g := m.gates.Repeats
	var ids []string
	var rows [][]int32
	for _, i := range spread(len(m.rows), g.Rows) {
		ids = append(ids, m.ids[i])
		rows = append(rows, m.rows[i])
	}
	m.begin("repeats", g.Count*len(rows))
	runs := make([][][]float32, g.Count)
	for n := range runs {
		var err error
		if runs[n], err = m.embed(ctx, rows, inOrder(len(rows)), len(rows), m.faithful()); err != nil {
			return err
		}
	}
	m.add(gate.Repeats(ids, runs))
	return nil
}
