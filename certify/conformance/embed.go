package conformance

import (
	"fmt"
	"math"
	"strings"

	"github.com/synapse-module/workers/host"
	"github.com/synapse-module/workers/protocol"
)

// embedding says what must be known of the model for rows to be made.
func (s *session) embedding() (*protocol.Description, error) {
	switch d := s.model.d; {
	case d == nil:
		return nil, skip("the worker does not know DESCRIBE, so its limits are not known")
	case len(d.Pooling) == 0:
		return nil, skip("the model does not embed")
	default:
		return d, nil
	}
}

// sayEmbed asks for vectors of rows with these stated lengths and these ids.
func (s *session) sayEmbed(id string, pooling string, normalize bool, lengths []int, ids []int32) error {
	items := make([]string, len(lengths))
	for i, n := range lengths {
		items[i] = fmt.Sprintf(`{"n_tokens":%d}`, n)
	}
	return s.sayRaw(protocol.Bytes(ids), `{"type":"EMBED_BATCH","req_id":%s,"model_ref":%q,"pooling":%q,"normalize":%t,"items":[%s]}`,
		id, s.model.ref, pooling, normalize, strings.Join(items, ","))
}

// embed wants one finite vector a row.
func (s *session) embed(normalize bool, rows ...[]int32) ([][]float32, error) {
	var lengths []int
	var ids []int32
	for _, r := range rows {
		lengths = append(lengths, len(r))
		ids = append(ids, r...)
	}
	id := s.id()
	if err := s.sayEmbed(id, s.model.d.Pooling[0], normalize, lengths, ids); err != nil {
		return nil, err
	}
	var v protocol.Vectors
	if err := s.hearWithin(host.DefaultEmbedDeadline, &v); err != nil {
		return nil, err
	}
	if v.ReqID.String() != id || v.N != len(rows) || v.Dims != s.model.dims {
		return nil, fmt.Errorf("VECTORS has req_id %s, n %d, dims %d; due are %s, %d, %d", v.ReqID, v.N, v.Dims, id, len(rows), s.model.dims)
	}
	const f32 = 4
	raw, err := s.in.ReadRawExact(nil, uint64(v.N)*uint64(v.Dims)*f32)
	if err != nil {
		return nil, err
	}
	flat, err := protocol.View[float32](raw)
	if err != nil {
		return nil, err
	}
	out := make([][]float32, v.N)
	for i := range out {
		out[i] = flat[i*v.Dims : (i+1)*v.Dims]
		for _, x := range out[i] {
			if f := float64(x); math.IsNaN(f) || math.IsInf(f, 0) {
				return nil, fmt.Errorf("vector %d holds %v", i, x)
			}
		}
	}
	return out, nil
}

// embedRefused wants an ERR for rows of these stated lengths and ids.
func (s *session) embedRefused(pooling string, lengths []int, ids []int32, codes ...protocol.Code) error {
	id := s.id()
	if err := s.sayEmbed(id, pooling, true, lengths, ids); err != nil {
		return err
	}
	return s.refused(id, codes...)
}

func length(v []float32) float64 {
	var sum float64
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	return math.Sqrt(sum)
}

// apart is the largest difference between components of two vectors.
func apart(a, b []float32) float64 {
	var most float64
	for i := range a {
		most = max(most, math.Abs(float64(a[i])-float64(b[i])))
	}
	return most
}

// filled is a row of n times the same id.
func filled(n int, id int32) []int32 {
	row := make([]int32, n)
	for i := range row {
		row[i] = id
	}
	return row
}
