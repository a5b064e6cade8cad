package suite

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"slices"

	"github.com/go-json-experiment/json"
)

// The files of an asset with judgements of people.
const (
	peopleInputs = "inputs.jsonl.zst"
	peoplePairs  = "pairs.jsonl.zst"
)

// People names the judgements of people that a suite is held to. The texts are
// not the project's to ship, so they come from an asset that is made on the
// machine that certifies.
type People struct {
	Asset        string `yaml:"asset"`
	InputsSHA256 string `yaml:"inputs_sha256"` // of the uncompressed file
	Record       string `yaml:"record"`

	Sets  []PeopleSet `yaml:"-"`
	pairs struct {
		count  int
		sha256 string
	}
}

// PeopleSet is how the reference agrees with one set of judgements.
type PeopleSet struct {
	Name              string
	Pairs             int
	Pearson, Spearman float64
}

// Pair is two texts and what people said of them.
type Pair struct {
	Set   string  `json:"set"`
	A     string  `json:"a"` // id of an input
	B     string  `json:"b"`
	Score float64 `json:"score"`
}

// Judgements are the texts of an asset and the pairs over them.
type Judgements struct {
	Inputs []Input
	Pairs  []Pair
}

// record reads how the reference agrees with people.
func (r reader) record(p *People) error {
	b, err := r.file(p.Record)
	if err != nil {
		return err
	}
	var rec struct {
		Schema int `json:"schema"`
		Pairs  struct {
			Count  int    `json:"count"`
			SHA256 string `json:"sha256"`
		} `json:"pairs"`
		Sets map[string]struct {
			Pairs    int     `json:"pairs"`
			Pearson  float64 `json:"pearson"`
			Spearman float64 `json:"spearman"`
		} `json:"sets"`
	}
	if err := json.Unmarshal(b, &rec); err != nil {
		return &Error{File: r.name(p.Record), Msg: err.Error()}
	}
	if rec.Schema != provenanceSchema || len(rec.Sets) == 0 {
		return &Error{File: r.name(p.Record), Msg: fmt.Sprintf("schema %d with %d sets; this certify reads schema %d and needs a set", rec.Schema, len(rec.Sets), provenanceSchema)}
	}
	for _, name := range slices.Sorted(maps.Keys(rec.Sets)) {
		s := rec.Sets[name]
		p.Sets = append(p.Sets, PeopleSet{Name: name, Pairs: s.Pairs, Pearson: s.Pearson, Spearman: s.Spearman})
	}
	p.pairs.count, p.pairs.sha256 = rec.Pairs.Count, rec.Pairs.SHA256
	return nil
}

// Read reads the judgements in an asset's folder and holds them to the digests
// that the suite states.
func (p *People) Read(fsys fs.FS, folder string) (*Judgements, error) {
	r := reader{fsys, folder}
	lines, err := r.unpack(peopleInputs)
	if err != nil {
		return nil, err
	}
	if err := r.verify(peopleInputs, lines, p.InputsSHA256); err != nil {
		return nil, err
	}
	j := new(Judgements)
	if j.Inputs, err = decodeLines(r, peopleInputs, lines, checkInput); err != nil {
		return nil, err
	}
	if j.Pairs, err = r.pairs(p, j.Inputs); err != nil {
		return nil, err
	}
	return j, nil
}

func (r reader) pairs(p *People, inputs []Input) ([]Pair, error) {
	b, err := r.unpack(peoplePairs)
	if err != nil {
		return nil, err
	}
	if err := r.verify(peoplePairs, b, p.pairs.sha256); err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for _, in := range inputs {
		known[in.ID] = true
	}
	var all []Pair
	for line := range bytes.Lines(b) {
		var pair Pair
		err := json.Unmarshal(line, &pair, json.RejectUnknownMembers(true))
		if err == nil && (!known[pair.A] || !known[pair.B]) {
			err = fmt.Errorf("a pair of %q and %q, which are not both inputs", pair.A, pair.B)
		}
		if err == nil && (math.IsNaN(pair.Score) || math.IsInf(pair.Score, 0)) {
			err = fmt.Errorf("the score is %v", pair.Score)
		}
		if err != nil {
			return nil, &Error{File: r.name(peoplePairs), Line: len(all) + 1, Msg: err.Error()}
		}
		all = append(all, pair)
	}
	if len(all) != p.pairs.count {
		return nil, &Error{File: r.name(peoplePairs), Msg: fmt.Sprintf("holds %d pairs, %s says %d", len(all), p.Record, p.pairs.count)}
	}
	return all, nil
}
