package certify

import (
	"context"
	"slices"

	"github.com/synapse-module/workers/host"
)

// embedding measures a model that gives one vector a row.
type embedding struct {
	*measurement

	// ids, rows and want are the inputs that the worker states it takes; the
	// max_tokens gate fails where that is not all of them.
	ids  []string
	rows [][]int32
	want [][]float32

	alone   [][]float32 // the vector of each row, alone in its batch
	longest []int32     // a row of exactly the stated maximum
}

func newEmbedding(m *measurement) *embedding { return &embedding{measurement: m} }

func (m *embedding) prepare() error {
	for i, in := range m.suite.Inputs {
		if len(in.IDs) <= m.result.Model.MaxTokens {
			m.ids = append(m.ids, in.ID)
			m.rows = append(m.rows, in.IDs)
			m.want = append(m.want, m.suite.Reference[i])
		}
	}
	return nil
}

func (m *embedding) steps() []func(context.Context) error {
	return []func(context.Context) error{
		m.quality, m.people, m.maxTokens, m.company, m.besideLongest, m.repeats, m.controls,
	}
}

func (m *embedding) batch(ctx context.Context, rows, tokens int) (computed int, err error) {
	row := rowOfLength(m.longestInput(), min(tokens, m.result.Model.MaxTokens))
	_, err = m.embed(ctx, slices.Repeat([][]int32{row}, rows), inOrder(rows), rows, m.faithful())
	return rows * len(row), err
}

// ask names a pooling, and whether vectors are scaled to length 1.
type ask struct {
	pooling   string
	normalize bool
}

func (m *embedding) faithful() ask {
	return ask{m.suite.Model.Pooling, m.suite.Model.Normalize}
}

// embed embeds the given rows, batch by batch in the given order, and returns
// their vectors in the order of rows.
func (m *embedding) embed(ctx context.Context, rows [][]int32, order []int, size int, a ask) ([][]float32, error) {
	out := make([][]float32, len(rows))
	for _, batch := range batches(order, size) {
		q := host.EmbedRequest{Model: m.ref, Pooling: a.pooling, Normalize: a.normalize}
		for _, i := range batch {
			q.Rows = append(q.Rows, rows[i])
		}
		v, err := m.worker.Embed(ctx, q)
		if err != nil {
			return nil, err
		}
		for n, i := range batch {
			out[i] = v.Row(n)
		}
		m.observer.Advance(len(batch))
	}
	return out, nil
}
