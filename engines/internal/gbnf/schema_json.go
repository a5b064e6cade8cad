package gbnf

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// object is a JSON object whose members keep their order.
type object struct {
	names   []string
	members map[string]jsontext.Value
}

func decodeObject(v jsontext.Value, at string) (*object, error) {
	if v.Kind() != jsontext.KindBeginObject {
		return nil, &SchemaError{at, "an object is due"}
	}
	o := &object{members: map[string]jsontext.Value{}}
	err := each(v, func(d *jsontext.Decoder) error {
		name, err := d.ReadToken()
		if err != nil {
			return err
		}
		key := name.String()
		value, err := d.ReadValue()
		if err != nil {
			return err
		}
		o.names, o.members[key] = append(o.names, key), value.Clone()
		return nil
	})
	if err != nil {
		return nil, &SchemaError{at, err.Error()}
	}
	return o, nil
}

func decodeArray(v jsontext.Value, at string) ([]jsontext.Value, error) {
	if v.Kind() != jsontext.KindBeginArray {
		return nil, &SchemaError{at, "an array is due"}
	}
	var list []jsontext.Value
	err := each(v, func(d *jsontext.Decoder) error {
		value, err := d.ReadValue()
		list = append(list, value.Clone())
		return err
	})
	if err != nil {
		return nil, &SchemaError{at, err.Error()}
	}
	if len(list) == 0 {
		return nil, &SchemaError{at, "the array is empty"}
	}
	return list, nil
}

// each calls read before every member or element of v.
func each(v jsontext.Value, read func(*jsontext.Decoder) error) error {
	d := jsontext.NewDecoder(bytes.NewReader(v))
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	for d.PeekKind() != jsontext.KindEndObject && d.PeekKind() != jsontext.KindEndArray {
		if err := read(d); err != nil {
			return err
		}
	}
	return nil
}

// drop removes the members of the given names.
func (o *object) drop(names map[string]bool) {
	o.names = slices.DeleteFunc(o.names, func(n string) bool { return names[n] })
	for n := range names {
		delete(o.members, n)
	}
}

// other is the name of a member that is not the given one.
func (o *object) other(name string) string {
	for _, n := range o.names {
		if n != name {
			return n
		}
	}
	return ""
}

// text is a JSON string's text; "" for what is none.
func text(v jsontext.Value) string {
	var s string
	if v.Kind() == jsontext.KindString && json.Unmarshal(v, &s) == nil {
		return s
	}
	return ""
}

// count is a JSON number that counts: a whole one, 0 to maxRepeat.
func count(v jsontext.Value) (int, bool) {
	n, err := strconv.Atoi(string(v))
	return n, err == nil && n >= 0 && n <= maxRepeat
}

// literal is GBNF for exactly this JSON value, written without blanks.
func literal(v jsontext.Value) string {
	compact := v.Clone()
	if err := compact.Compact(); err != nil {
		panic("gbnf: a value that was read as JSON is none: " + err.Error())
	}
	return quote(string(compact))
}

// quote is GBNF for exactly this text.
func quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\r", `\r`, "\t", `\t`).Replace(s) + `"`
}

// kindName is the JSON Schema type of a value.
func kindName(v jsontext.Value) string {
	switch v.Kind() {
	case jsontext.KindNull:
		return "null"
	case jsontext.KindTrue, jsontext.KindFalse:
		return "boolean"
	case jsontext.KindString:
		return "string"
	case jsontext.KindBeginArray:
		return "array"
	case jsontext.KindBeginObject:
		return "object"
	}
	if _, err := strconv.ParseInt(string(v), 10, 64); err == nil {
		return "integer"
	}
	return "number"
}
