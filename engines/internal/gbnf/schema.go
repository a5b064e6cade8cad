package gbnf

import (
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// maxSchemaDepth bounds schemas inside schemas; a $ref begins anew.
const maxSchemaDepth = 64

// SchemaError is a fault of a JSON Schema, or something in it that no grammar can
// express.
type SchemaError struct {
	Pointer string // where in the schema, as a JSON pointer with a leading #
	Msg     string
}

func (e *SchemaError) Error() string { return "grammar, schema at " + e.Pointer + ": " + e.Msg }

// ParseAny reads a grammar that is a JSON Schema where its text begins with {,
// and GBNF otherwise. Its errors are of *Error or *SchemaError.
func ParseAny(text string) (*Grammar, error) {
	if !strings.HasPrefix(strings.TrimLeft(text, " \t\r\n"), "{") {
		return Parse(text)
	}
	grammar, err := FromSchema(text)
	if err != nil {
		return nil, err
	}
	g, err := Parse(grammar)
	if err != nil {
		return nil, &SchemaError{"#", "as a grammar it is too large: " + err.Error()}
	}
	return g, nil
}

// FromSchema turns a JSON Schema into GBNF. Every text of the grammar is an
// instance of the schema, with few blanks and the properties in the schema's
// order. Where a schema allows what it does not name (further properties), the
// grammar does not. What a grammar cannot express is refused by its name.
//
// Source of the keywords' meaning: JSON Schema draft 2020-12.
func FromSchema(text string) (string, error) {
	if len(text) > MaxText {
		return "", &SchemaError{"#", fmt.Sprintf("the text is %d bytes long, at most %d are taken", len(text), MaxText)}
	}
	c := &schemaConverter{root: jsontext.Value(text), refs: map[string]string{}, written: map[string]bool{}}
	if !c.root.IsValid() {
		return "", &SchemaError{"#", "it is not valid JSON, or a member stands there twice"}
	}
	body, err := c.convert(c.root, "#", 0)
	if err != nil {
		return "", err
	}
	for len(c.pending) > 0 { // each may find new ones
		ref := c.pending[0]
		c.pending = c.pending[1:]
		if err := c.define(ref); err != nil {
			return "", err
		}
	}
	return "root ::= " + body + "\n" + c.out.String(), nil
}

// schemaConverter writes rules. Its methods return an expression that may stand
// anywhere in a sequence.
type schemaConverter struct {
	root    jsontext.Value
	out     strings.Builder
	refs    map[string]string // rule of each $ref
	pending []string          // $refs whose rules are not written yet
	written map[string]bool   // library rules that are
	rules   int
}

func refuse(pointer, format string, args ...any) (string, error) {
	return "", &SchemaError{pointer, fmt.Sprintf(format, args...)}
}

// rule writes a rule and returns its name.
func (c *schemaConverter) rule(body string) string {
	c.rules++
	name := fmt.Sprintf("r%d", c.rules)
	c.write(name, body)
	return name
}

func (c *schemaConverter) write(name, body string) {
	fmt.Fprintf(&c.out, "%s ::= %s\n", name, body)
}

// keywords that say something about a schema and nothing about its instances.
var annotations = map[string]bool{
	"title": true, "description": true, "default": true, "examples": true, "deprecated": true, "readOnly": true,
	"writeOnly": true, "$schema": true, "$id": true, "$comment": true, "$defs": true, "definitions": true,
}

// convert turns one schema into an expression.
func (c *schemaConverter) convert(schema jsontext.Value, at string, depth int) (string, error) {
	if depth > maxSchemaDepth {
		return refuse(at, "more than %d schemas are inside one another", maxSchemaDepth)
	}
	if c.out.Len() > MaxText {
		return refuse(at, "as a grammar the schema is longer than %d bytes up to here", MaxText)
	}
	switch schema.Kind() {
	case jsontext.KindTrue:
		return c.library("value"), nil
	case jsontext.KindFalse:
		return refuse(at, "the schema false has no instance")
	case jsontext.KindBeginObject:
	default:
		return refuse(at, "a schema is an object, true or false")
	}
	o, err := decodeObject(schema, at)
	if err != nil {
		return "", err
	}
	o.drop(annotations)
	for _, combiner := range []struct {
		keyword string
		convert func(jsontext.Value, string, int) (string, error)
	}{{"$ref", c.reference}, {"anyOf", c.anyOf}, {"oneOf", c.oneOf}, {"allOf", c.allOf}} {
		if v, ok := o.members[combiner.keyword]; ok {
			if len(o.names) > 1 {
				return refuse(at, "%q beside %q: a grammar cannot demand both", combiner.keyword, o.other(combiner.keyword))
			}
			return combiner.convert(v, at+"/"+combiner.keyword, depth)
		}
	}
	return c.typed(o, at, depth)
}

func (c *schemaConverter) anyOf(v jsontext.Value, at string, depth int) (string, error) {
	list, err := decodeArray(v, at)
	if err != nil {
		return "", err
	}
	choices := make([]string, len(list))
	for i, s := range list {
		if choices[i], err = c.convert(s, fmt.Sprintf("%s/%d", at, i), depth+1); err != nil {
			return "", err
		}
	}
	return "(" + strings.Join(choices, " | ") + ")", nil
}

// oneOf is anyOf where no instance can be of two: where the types differ.
func (c *schemaConverter) oneOf(v jsontext.Value, at string, depth int) (string, error) {
	list, err := decodeArray(v, at)
	if err != nil {
		return "", err
	}
	seen := map[string]bool{}
	for i, s := range list {
		kind := ""
		if s.Kind() == jsontext.KindBeginObject {
			o, err := decodeObject(s, at)
			if err != nil {
				return "", err
			}
			kind = text(o.members["type"])
		}
		if kind == "integer" {
			kind = "number"
		}
		if kind == "" || seen[kind] {
			return refuse(fmt.Sprintf("%s/%d", at, i), `"oneOf" needs alternatives of different "type" each, since a grammar cannot count how many fit; use "anyOf"`)
		}
		seen[kind] = true
	}
	return c.anyOf(v, at, depth)
}

func (c *schemaConverter) allOf(v jsontext.Value, at string, depth int) (string, error) {
	list, err := decodeArray(v, at)
	if err != nil {
		return "", err
	}
	if len(list) != 1 {
		return refuse(at, `"allOf" of several schemas: a grammar cannot demand all of them`)
	}
	return c.convert(list[0], at+"/0", depth+1)
}

// reference makes a rule of a $ref, so that schemas may contain themselves.
func (c *schemaConverter) reference(v jsontext.Value, at string, _ int) (string, error) {
	ref := text(v)
	if ref != "#" && !strings.HasPrefix(ref, "#/") {
		return refuse(at, "%.64q points out of this schema; only # and #/... are followed", ref)
	}
	name, ok := c.refs[ref]
	if !ok {
		name = fmt.Sprintf("ref%d", len(c.refs)+1)
		c.refs[ref] = name
		c.pending = append(c.pending, ref)
	}
	return name, nil
}

// define writes the rule of a $ref.
func (c *schemaConverter) define(ref string) error {
	target := c.root
	unescape := strings.NewReplacer("~1", "/", "~0", "~")
	for part := range strings.SplitSeq(strings.TrimPrefix(strings.TrimPrefix(ref, "#"), "/"), "/") {
		if ref == "#" {
			break
		}
		var next jsontext.Value
		if target.Kind() == jsontext.KindBeginObject {
			o, err := decodeObject(target, ref)
			if err != nil {
				return err
			}
			next = o.members[unescape.Replace(part)]
		}
		if next == nil {
			return &SchemaError{ref, "this $ref points to nothing"}
		}
		target = next
	}
	body, err := c.convert(target, ref, 0)
	if err != nil {
		return err
	}
	c.write(c.refs[ref], body)
	return nil
}
