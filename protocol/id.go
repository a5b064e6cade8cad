package protocol

import (
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// ID is a req_id or an item's id: a JSON number or string of at most
// [MaxIDBytes], kept as its JSON text and echoed byte for byte. Two IDs are the
// same request exactly when they are equal as Go strings. The zero ID is JSON
// null: "none could be read".
type ID string

// NumberID is an ID that is a JSON number.
func NumberID(n uint64) ID { return ID(strconv.FormatUint(n, 10)) }

// StringID is an ID that is a JSON string. s must be valid UTF-8.
func StringID(s string) ID {
	b, err := jsontext.AppendQuote(nil, s)
	if err != nil {
		panic("protocol: StringID of invalid UTF-8") // the caller's own literal
	}
	return ID(b)
}

// String is the ID's JSON text, "null" for none.
func (id ID) String() string {
	if id == "" {
		return "null"
	}
	return string(id)
}

// MarshalJSONTo writes the ID as it was read.
func (id ID) MarshalJSONTo(enc *jsontext.Encoder) error {
	return enc.WriteValue(jsontext.Value(id.String()))
}

// UnmarshalJSONFrom reads a number, a string or null and refuses anything else.
func (id *ID) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	v, err := dec.ReadValue()
	if err != nil {
		return err
	}
	got, err := idOf(v)
	if err != nil {
		return err
	}
	*id = got
	return nil
}

func idOf(v jsontext.Value) (ID, error) {
	n := len(v)
	switch v.Kind() {
	case jsontext.KindString:
		n -= len(`""`)
	case jsontext.KindNumber:
	case jsontext.KindNull:
		return "", nil // "none"; where an id is due, Decode takes null for absent
	default:
		return "", Errorf(CodeRequestInvalid, "an id is a JSON %s, wanted a number or a string", kindName(v.Kind()))
	}
	if n > MaxIDBytes {
		return "", Errorf(CodeRequestInvalid, "an id of %d bytes is over the limit of %d", n, MaxIDBytes)
	}
	return ID(v), nil
}
