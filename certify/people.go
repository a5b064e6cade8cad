package certify

import (
	"context"

	"github.com/synapse-module/workers/certify/gate"
)

// peopleBatch is the batch size of the texts that people judged: there are many
// and short ones, and company is another gate's concern.
const peopleBatch = 32

// people embeds the texts that people judged and holds the agreement with them
// to the reference's.
func (m *embedding) people(ctx context.Context) error {
	if m.gates.People == nil {
		return nil
	}
	var rows [][]int32
	index := map[string]int{}
	for _, in := range m.judgements.Inputs {
		index[in.ID] = len(rows)
		rows = append(rows, in.IDs)
	}
	m.begin("people", len(rows))
	got, err := m.embed(ctx, rows, inOrder(len(rows)), peopleBatch, m.faithful())
	if err != nil {
		return err
	}
	for _, p := range m.judgements.Pairs {
		m.result.People = append(m.result.People, Judged{Set: p.Set, Ours: gate.Similarity(got[index[p.A]], got[index[p.B]]), Score: p.Score})
	}
	for _, set := range m.suite.People.Sets {
		checks := gate.People(set, m.judgements.Pairs, got, index, *m.gates.People)
		m.add(checks...)
		m.result.Agreement = append(m.result.Agreement, Agreement{
			Set: set.Name, Pairs: set.Pairs,
			Pearson:  Correlation{checks[0].Value, set.Pearson},
			Spearman: Correlation{checks[1].Value, set.Spearman},
		})
	}
	return nil
}
