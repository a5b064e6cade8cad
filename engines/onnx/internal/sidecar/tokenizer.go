package sidecar

import (
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/synapse-module/workers/engines/internal/pairs"
)

// processor is the post_processor of tokenizer.json, of any of its types.
type processor struct {
	Type string `json:"type"`

	Processors []jsontext.Value `json:"processors"` // Sequence

	CLS specialToken `json:"cls"` // BertProcessing, RobertaProcessing
	SEP specialToken `json:"sep"`

	Single []templatePiece `json:"single"` // TemplateProcessing
	Pair   []templatePiece `json:"pair"`
	Tokens map[string]struct {
		IDs []int32 `json:"ids"`
	} `json:"special_tokens"`
}

type templatePiece struct {
	Special *struct {
		ID   string `json:"id"`
		Type int32  `json:"type_id"`
	} `json:"SpecialToken"`
	Sequence *struct {
		ID   string `json:"id"`
		Type int32  `json:"type_id"`
	} `json:"Sequence"`
}

// specialToken is written as [text, id].
type specialToken struct{ id int32 }

// UnmarshalJSON implements [json.Unmarshaler].
func (t *specialToken) UnmarshalJSON(b []byte) error {
	var parts []jsontext.Value
	if err := json.Unmarshal(b, &parts); err != nil {
		return err
	}
	if len(parts) != 2 {
		return fmt.Errorf("a special token is [text, id], got %d parts", len(parts))
	}
	return json.Unmarshal(parts[1], &t.id)
}

// Tokenizer returns tokenizer.json, or nil where there is none.
func Tokenizer(f Files) ([]byte, error) { return f.read("tokenizer.json", maxJSON) }

// PairLayout reads how the model's tokenizer encodes a pair. It returns false
// where there is no tokenizer.json, or it says nothing of pairs.
func PairLayout(f Files) (pairs.Layout, bool, error) {
	var file struct {
		Processor jsontext.Value `json:"post_processor"`
	}
	if _, err := f.decode("tokenizer.json", &file); err != nil {
		return pairs.Layout{}, false, err
	}
	l, ok, err := layout(file.Processor)
	if err != nil {
		return l, false, fmt.Errorf("tokenizer.json: post_processor: %w", err)
	}
	return l, ok && l.Valid(), nil
}

func layout(b jsontext.Value) (pairs.Layout, bool, error) {
	if len(b) == 0 || b.Kind() == jsontext.KindNull {
		return pairs.Layout{}, false, nil
	}
	var p processor
	if err := json.Unmarshal(b, &p); err != nil {
		return pairs.Layout{}, false, err
	}
	switch p.Type {
	case "Sequence":
		for _, inner := range p.Processors {
			if l, ok, err := layout(inner); ok || err != nil {
				return l, ok, err
			}
		}
	case "BertProcessing":
		return pairs.BERT(p.CLS.id, p.SEP.id), true, nil
	case "RobertaProcessing":
		return pairs.RoBERTa(p.CLS.id, p.SEP.id), true, nil
	case "TemplateProcessing":
		return p.template()
	}
	return pairs.Layout{}, false, nil
}

func (p processor) template() (l pairs.Layout, ok bool, err error) {
	for _, piece := range p.Pair {
		x, err := p.piece(piece)
		if err != nil {
			return l, false, err
		}
		l.Pair = append(l.Pair, x)
	}
	seen := false
	for _, piece := range p.Single {
		x, err := p.piece(piece)
		if err != nil {
			return l, false, err
		}
		switch {
		case x.Part != pairs.Special:
			seen = true
		case seen:
			l.Suffix = append(l.Suffix, x.IDs...)
		default:
			l.Prefix = append(l.Prefix, x.IDs...)
		}
	}
	return l, true, nil
}

func (p processor) piece(t templatePiece) (pairs.Piece, error) {
	switch {
	case t.Special != nil:
		token, ok := p.Tokens[t.Special.ID]
		if !ok {
			return pairs.Piece{}, fmt.Errorf("the template names %.64q, which special_tokens lacks", t.Special.ID)
		}
		return pairs.Piece{IDs: token.IDs, Type: t.Special.Type}, nil
	case t.Sequence != nil && t.Sequence.ID == "A":
		return pairs.Piece{Part: pairs.Query, Type: t.Sequence.Type}, nil
	case t.Sequence != nil && t.Sequence.ID == "B":
		return pairs.Piece{Part: pairs.Document, Type: t.Sequence.Type}, nil
	}
	return pairs.Piece{}, fmt.Errorf("the template has a piece that is neither a special token nor the sequence A or B")
}
