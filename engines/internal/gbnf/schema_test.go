package gbnf

import (
	"errors"
	"strings"
	"testing"
)

func TestInstancesOfSchemas(t *testing.T) {
	const person = `{
		"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Person", "type": "object",
		"properties": {
			"name": {"type": "string", "maxLength": 5},
			"age": {"type": "integer", "description": "years"},
			"tags": {"type": "array", "items": {"enum": ["a", "b\"c", 3, null]}, "maxItems": 2},
			"boss": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}
		},
		"required": ["name", "boss"], "additionalProperties": false
	}`
	const tree = `{"$ref": "#/$defs/tree~1node", "$defs": {"tree/node": {"type": "object", "properties": {"kids": {"type": "array", "items": {"$ref": "#/$defs/tree~1node"}}}}}}`
	for _, c := range []struct{ schema, text, want string }{
		{`{}`, `{"a": [1, -2.5e+3, "x\u00e9", true, null]}`, "done"},
		{`{"type": "string"}`, `"a\"b"`, "done"},
		{`{"type": "string"}`, `"a` + "\n", "no"},
		{`{"type": "string"}`, `"\ud800"`, "no"},
		{`{"type": "string", "minLength": 2, "maxLength": 3}`, `"a"`, "no"},
		{`{"type": "string", "minLength": 2, "maxLength": 3}`, `"é\n"`, "done"},
		{`{"type": "string", "minLength": 2, "maxLength": 3}`, `"abcd`, "no"},
		{`{"type": "integer"}`, `-12`, "whole"},
		{`{"type": "integer"}`, `01`, "no"},
		{`{"type": "integer"}`, `1.`, "no"},
		{`{"type": "number"}`, `1.5e-7`, "whole"},
		{`{"type": ["boolean", "null"]}`, `true`, "done"},
		{`{"type": ["boolean", "null"]}`, `nul`, "part"},
		{`{"const": {"a": [1, 2]}}`, `{"a":[1,2]}`, "done"},
		{`{"enum": ["red", "green"], "type": "string"}`, `"green"`, "done"},
		{`{"enum": ["red", 1], "type": "string"}`, `1`, "no"},
		{`{"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 3}`, `[1]`, "no"},
		{`{"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 3}`, `[1, 2]`, "done"},
		{`{"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 3}`, `[1,2,3,`, "no"},
		{`{"type": "array", "maxItems": 0}`, `[]`, "done"},
		{`{"type": "array", "maxItems": 1}`, `["x"]`, "done"},
		{`{"type": "array"}`, `[]`, "done"},
		{`{"type": "object", "additionalProperties": {"type": "integer"}}`, `{"a": 1, "b": 2}`, "done"},
		{`{"type": "object", "additionalProperties": {"type": "integer"}}`, `{"a": "`, "no"},
		{`{"type": "object", "additionalProperties": false}`, `{}`, "done"},
		{`{"type": "object", "additionalProperties": false}`, `{"`, "no"},
		{`{"type": "object", "required": ["x"]}`, `{"x": [null]}`, "done"},
		{`{"oneOf": [{"type": "integer"}, {"type": "string"}]}`, `"s"`, "done"},
		{`{"allOf": [{"type": "null"}]}`, `null`, "done"},
		{person, `{"name": "Al", "boss": null}`, "done"},
		{person, `{"name": "Al", "age": 3, "tags": ["b\"c", 3], "boss": {"name": "B", "boss": null}}`, "done"},
		{person, `{"age": 3, "`, "no"},
		{person, `{"name": "Al"}`, "no"},
		{person, `{"name": "Albert"`, "no"},
		{person, `{"name": "Al", "tags": ["c"`, "no"},
		{tree, `{"kids": [{}, {"kids": [{}]}]}`, "done"},
		{tree, `{}`, "done"},
		{"\n\t" + `{"type": "null"}`, `null`, "done"},
	} {
		g, err := ParseAny(c.schema)
		if err != nil {
			t.Errorf("%s: %v", c.schema, err)
			continue
		}
		if got := verdict(t, g, c.text); got != c.want {
			t.Errorf("%s with %s: %s, want %s", c.schema, c.text, got, c.want)
		}
	}
}

func TestWhatNoGrammarExpressesIsRefusedByName(t *testing.T) {
	for _, c := range []struct{ schema, pointer, want string }{
		{`{`, "#", "not valid JSON"},
		{`{"type": "string", "type": "null"}`, "#", "twice"},
		{`{"type": "string"} x`, "#", "not valid JSON"},
		{`{"type": "text"}`, "#/type", `"text" is no type`},
		{`{"type": "string", "pattern": "^a"}`, "#", `"pattern"`},
		{`{"type": "string", "format": "date"}`, "#", `"format"`},
		{`{"type": "integer", "minimum": 3}`, "#", `"minimum"`},
		{`{"properties": {"a": {"type": "array", "uniqueItems": true}}}`, "#/properties/a", `"uniqueItems"`},
		{`{"items": {"not": {}}}`, "#/items", `"not"`},
		{`{"type": "string", "minItems": 1}`, "#", `"minItems"`},
		{`{"$ref": "other.json"}`, "#/$ref", "out of this schema"},
		{`{"$ref": "#/$defs/a"}`, "#/$defs/a", "points to nothing"},
		{`{"$ref": "#", "type": "string"}`, "#", `beside "type"`},
		{`{"$ref": "#"}`, "#", "never end"},
		{`{"anyOf": []}`, "#/anyOf", "empty"},
		{`{"anyOf": [false]}`, "#/anyOf/0", "no instance"},
		{`{"anyOf": [{"type": "null"}], "type": "null"}`, "#", `beside "type"`},
		{`{"oneOf": [{"type": "integer"}, {"type": "number"}]}`, "#/oneOf/1", "different"},
		{`{"allOf": [{}, {}]}`, "#/allOf", "several"},
		{`{"enum": []}`, "#/enum", "empty"},
		{`{"enum": [1], "type": "string"}`, "#", "none of the values"},
		{`{"enum": ["a"], "type": "string", "maxLength": 3}`, "#", "only \"type\""},
		{`{"minLength": 3, "maxLength": 2}`, "#", "no instance"},
		{`{"maxLength": -1}`, "#/maxLength", "whole number"},
		{`{"maxLength": 1.5}`, "#/maxLength", "whole number"},
		{`{"properties": {"a": {}}, "additionalProperties": {"type": "null"}}`, "#/additionalProperties", "beside named ones"},
		{`{"required": ["a"], "additionalProperties": false}`, "#", "required"},
		{`{"required": "a"}`, "#/required", "list of names"},
		{`{"items": 3}`, "#/items", "a schema is an object"},
		{`{"maxItems": 60000, "items": {"type": "string", "maxLength": 60000}}`, "#", "too large"},
		{strings.Repeat(`{"items":`, 100) + "{}" + strings.Repeat("}", 100), "#" + strings.Repeat("/items", 65), "inside one another"},
		{`{"const": "` + strings.Repeat("a", MaxText) + `"}`, "#", "bytes long"},
	} {
		_, err := ParseAny(c.schema)
		var fault *SchemaError
		if !errors.As(err, &fault) {
			t.Errorf("%.80s: got %v", c.schema, err)
			continue
		}
		if fault.Pointer != c.pointer || !strings.Contains(fault.Msg, c.want) {
			t.Errorf("%.80s: got %v, want %s: %s", c.schema, err, c.pointer, c.want)
		}
	}
}
