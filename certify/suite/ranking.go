package suite

import "fmt"

// Query is what one reranking asks: documents for a query, and the reference's
// score of each.
type Query struct {
	ID        string     `json:"id"`
	Text      string     `json:"text"`
	IDs       []int32    `json:"ids"` // without the pair's special tokens
	Documents []Document `json:"documents"`
	Tags      []string   `json:"tags"`
}

// Document is one of a query's candidates.
type Document struct {
	ID    string  `json:"id"`
	Text  *string `json:"text"` // nil for ids that were composed without a text
	IDs   []int32 `json:"ids"`  // without the pair's special tokens
	Score float32 `json:"-"`    // the reference's
}

// Tokens is the length of the pair of a query and one of its documents, with the
// special tokens that the worker adds.
func (s *Suite) Tokens(q Query, d Document) int {
	return len(q.IDs) + len(d.IDs) + s.Model.PairTokens
}

func checkQuery(q Query, seen map[string]bool) error {
	if err := checkID(q.ID, seen); err != nil {
		return err
	}
	if len(q.IDs) == 0 || len(q.Documents) < 2 {
		return fmt.Errorf("%q has %d token ids and %d documents: an order needs a query and two documents", q.ID, len(q.IDs), len(q.Documents))
	}
	for _, d := range q.Documents {
		if err := checkID(d.ID, seen); err != nil {
			return err
		}
		if len(d.IDs) == 0 {
			return fmt.Errorf("%q has no token ids", d.ID)
		}
	}
	return nil
}

// queries reads the queries of a rerank suite and the score of each document.
func (r reader) queries(s *Suite) (err error) {
	p := s.Provenance
	if s.Queries, err = dataLines(r, s.Data.Inputs, p.Inputs.Count, p.Inputs.SHA256, checkQuery); err != nil {
		return err
	}
	n, longest := 0, 0
	for _, q := range s.Queries {
		n += len(q.Documents)
		for _, d := range q.Documents {
			longest = max(longest, s.Tokens(q, d))
		}
	}
	if n != p.Scores.Count {
		return &Error{File: r.name(s.Data.Inputs), Msg: fmt.Sprintf("holds %d documents, its provenance says %d scores", n, p.Scores.Count)}
	}
	scores, err := r.floats(s.Data.Scores, n, 1, "documents", p.Scores.SHA256)
	if err != nil {
		return err
	}
	for _, q := range s.Queries {
		for i := range q.Documents {
			q.Documents[i].Score, scores = scores[0][0], scores[1:]
		}
	}
	return r.longest(s, longest)
}
