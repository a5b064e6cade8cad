package gbnf

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// library are the rules of JSON itself, and which others each needs. Blanks and
// digits are bounded, so that a model cannot go on with them for ever.
var library = map[string]struct {
	body  string
	needs []string
}{
	"ws":      {`"" | " " | "\n" " "{0,20}`, nil},
	"char":    {`[^"\\\x00-\x1F\x7F] | "\\" (["\\/bfnrt] | "u" ([0-9a-cA-CefEF] [0-9a-fA-F]{3} | [dD] [0-7] [0-9a-fA-F]{2}))`, nil},
	"string":  {`"\"" char* "\""`, []string{"char"}},
	"integer": {`"-"? ("0" | [1-9] [0-9]{0,15})`, nil},
	"number":  {`integer ("." [0-9]{1,16})? ([eE] [-+]? [0-9]{1,2})?`, []string{"integer"}},
	"boolean": {`"true" | "false"`, nil},
	"null":    {`"null"`, nil},
	"member":  {`string ":" ws value`, []string{"string", "ws", "value"}},
	"object":  {`"{" ws (member ("," ws member)*)? ws "}"`, []string{"ws", "member"}},
	"array":   {`"[" ws (value ("," ws value)*)? ws "]"`, []string{"ws", "value"}},
	"value":   {`object | array | string | number | boolean | null`, []string{"object", "array", "string", "number", "boolean", "null"}},
}

// library writes a rule of JSON, once, and returns its name.
func (c *schemaConverter) library(name string) string {
	if !c.written[name] {
		c.written[name] = true
		for _, need := range library[name].needs {
			c.library(need)
		}
		c.write(name, library[name].body)
	}
	return name
}

// typeKeywords are the keywords that are understood, by the type whose instances
// they speak of.
var typeKeywords = map[string][]string{
	"string":  {"minLength", "maxLength"},
	"array":   {"items", "minItems", "maxItems"},
	"object":  {"properties", "required", "additionalProperties"},
	"integer": nil, "number": nil, "boolean": nil, "null": nil,
}

// typed turns a schema of type, enum or const into an expression.
func (c *schemaConverter) typed(o *object, at string, depth int) (string, error) {
	types, err := o.types(at)
	if err != nil {
		return "", err
	}
	understood := []string{"type", "enum", "const"}
	for _, t := range types {
		understood = append(understood, typeKeywords[t]...)
	}
	for _, name := range o.names {
		if !slices.Contains(understood, name) {
			return refuse(at, "%.64q is not among what can be turned into a grammar here (%s)", name, strings.Join(understood, ", "))
		}
	}
	_, isEnum := o.members["enum"]
	_, isConst := o.members["const"]
	switch {
	case isEnum || isConst:
		return c.values(o, types, at)
	case types == nil:
		return c.library("value"), nil
	}
	choices := make([]string, len(types))
	for i, t := range types {
		switch t {
		case "string":
			choices[i], err = c.stringOf(o, at)
		case "array":
			choices[i], err = c.arrayOf(o, at, depth)
		case "object":
			choices[i], err = c.objectOf(o, at, depth)
		default:
			choices[i] = c.library(t)
		}
		if err != nil {
			return "", err
		}
	}
	return "(" + strings.Join(choices, " | ") + ")", nil
}

// types are the types that a schema allows; nil for all of them. Where it names
// none, its keywords tell: an instance of that type fits it.
func (o *object) types(at string) ([]string, error) {
	v, ok := o.members["type"]
	if !ok {
		for _, t := range []string{"object", "array", "string"} {
			if slices.ContainsFunc(typeKeywords[t], func(k string) bool { return o.members[k] != nil }) {
				return []string{t}, nil
			}
		}
		return nil, nil
	}
	list := []jsontext.Value{v}
	if v.Kind() == jsontext.KindBeginArray {
		var err error
		if list, err = decodeArray(v, at+"/type"); err != nil {
			return nil, err
		}
	}
	var types []string
	for _, t := range list {
		if _, known := typeKeywords[text(t)]; !known {
			return nil, &SchemaError{at + "/type", fmt.Sprintf("%.64s is no type of JSON Schema", t)}
		}
		types = append(types, text(t))
	}
	return types, nil
}

// values turns enum and const into a choice of literals.
func (c *schemaConverter) values(o *object, types []string, at string) (string, error) {
	list := []jsontext.Value{o.members["const"]}
	if v, ok := o.members["enum"]; ok {
		if list[0] != nil {
			return refuse(at, `"enum" beside "const"`)
		}
		var err error
		if list, err = decodeArray(v, at+"/enum"); err != nil {
			return "", err
		}
	}
	if n := len(o.names) - 1; n > 1 || n == 1 && o.members["type"] == nil {
		return refuse(at, `beside "enum" or "const" only "type" is taken`)
	}
	var choices []string
	for _, v := range list {
		kind := kindName(v)
		if types == nil || slices.Contains(types, kind) || kind == "integer" && slices.Contains(types, "number") {
			choices = append(choices, literal(v))
		}
	}
	if choices == nil {
		return refuse(at, "none of the values is of the type")
	}
	return c.rule(strings.Join(choices, " | ")), nil
}

// bounds reads a pair of keywords for a least and a greatest count; most is -1
// where there is none.
func (o *object) bounds(at, least, greatest string) (lo, hi int, err error) {
	hi = -1
	for _, k := range []struct {
		name string
		into *int
	}{{least, &lo}, {greatest, &hi}} {
		if v, ok := o.members[k.name]; ok {
			n, ok := count(v)
			if !ok {
				return 0, 0, &SchemaError{at + "/" + k.name, fmt.Sprintf("a whole number from 0 to %d is due", maxRepeat)}
			}
			*k.into = n
		}
	}
	if hi >= 0 && lo > hi {
		return 0, 0, &SchemaError{at, fmt.Sprintf("%q is over %q: there is no instance", least, greatest)}
	}
	return lo, hi, nil
}

// times is GBNF's repetition.
func times(lo, hi int) string {
	if hi < 0 {
		return fmt.Sprintf("{%d,}", lo)
	}
	return fmt.Sprintf("{%d,%d}", lo, hi)
}

func (c *schemaConverter) stringOf(o *object, at string) (string, error) {
	lo, hi, err := o.bounds(at, "minLength", "maxLength")
	if err != nil {
		return "", err
	}
	if lo == 0 && hi < 0 {
		return c.library("string"), nil
	}
	return fmt.Sprintf(`"\"" %s%s "\""`, c.library("char"), times(lo, hi)), nil
}

func (c *schemaConverter) arrayOf(o *object, at string, depth int) (string, error) {
	lo, hi, err := o.bounds(at, "minItems", "maxItems")
	if err != nil {
		return "", err
	}
	item := c.library("value")
	if v, ok := o.members["items"]; ok {
		if item, err = c.convert(v, at+"/items", depth+1); err != nil {
			return "", err
		}
	}
	ws := c.library("ws")
	if hi == 0 {
		return fmt.Sprintf(`"[" %s "]"`, ws), nil
	}
	item = c.rule(item)
	rest := -1
	if hi > 0 {
		rest = hi - 1
	}
	list := fmt.Sprintf(`%s ("," %s %s)%s`, item, ws, item, times(max(lo-1, 0), rest))
	if lo == 0 {
		list = "(" + list + ")?"
	}
	return fmt.Sprintf(`"[" %s %s %s "]"`, ws, list, ws), nil
}

func (c *schemaConverter) objectOf(o *object, at string, depth int) (string, error) {
	props := &object{members: map[string]jsontext.Value{}}
	if v, ok := o.members["properties"]; ok {
		var err error
		if props, err = decodeObject(v, at+"/properties"); err != nil {
			return "", err
		}
	}
	required, err := o.required(at)
	if err != nil {
		return "", err
	}
	further := o.members["additionalProperties"]
	for _, name := range required {
		if props.members[name] == nil { // required, and nothing is said of it
			if further.Kind() == jsontext.KindFalse {
				return refuse(at, "%.64q is required and at the same time no property that is allowed", name)
			}
			props.names, props.members[name] = append(props.names, name), jsontext.Value("true")
		}
	}
	if further != nil && further.Kind() != jsontext.KindTrue && further.Kind() != jsontext.KindFalse {
		if len(props.names) > 0 {
			return refuse(at+"/additionalProperties", `a schema for further properties beside named ones cannot be turned into a grammar: it would also have to keep their names apart`)
		}
		value, err := c.convert(further, at+"/additionalProperties", depth+1)
		if err != nil {
			return "", err
		}
		ws := c.library("ws")
		member := c.rule(fmt.Sprintf(`%s ":" %s %s`, c.library("string"), ws, value))
		return fmt.Sprintf(`"{" %s (%s ("," %s %s)*)? %s "}"`, ws, member, ws, member, ws), nil
	}
	if len(props.names) == 0 {
		if further.Kind() == jsontext.KindFalse || o.members["properties"] != nil {
			return fmt.Sprintf(`"{" %s "}"`, c.library("ws")), nil
		}
		return c.library("object"), nil
	}
	return c.members(props, required, at, depth)
}

func (o *object) required(at string) (names []string, err error) {
	if v, ok := o.members["required"]; ok {
		if err := json.Unmarshal(v, &names); err != nil {
			return nil, &SchemaError{at + "/required", "a list of names is due"}
		}
	}
	return names, nil
}

// members writes an object of named properties in their order. Two rules stand
// for what may follow from each property on: one behind a property that was
// written, which needs a comma first, and one with none written yet.
func (c *schemaConverter) members(props *object, required []string, at string, depth int) (string, error) {
	ws := c.library("ws")
	first, more := `""`, `""`
	for _, name := range slices.Backward(props.names) {
		value, err := c.convert(props.members[name], at+"/properties/"+name, depth+1)
		if err != nil {
			return "", err
		}
		member := c.rule(fmt.Sprintf(`%s ":" %s %s`, literal(mustJSON(name)), ws, value))
		nextFirst, nextMore := member+" "+more, fmt.Sprintf(`"," %s %s %s`, ws, member, more)
		if !slices.Contains(required, name) {
			nextFirst, nextMore = nextFirst+" | "+first, nextMore+" | "+more
		}
		first, more = c.rule(nextFirst), c.rule(nextMore)
	}
	return fmt.Sprintf(`"{" %s %s %s "}"`, ws, first, ws), nil
}

func mustJSON(s string) jsontext.Value {
	b, err := json.Marshal(s)
	if err != nil {
		panic("gbnf: a name that was read as JSON is none: " + err.Error())
	}
	return b
}
