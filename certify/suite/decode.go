package suite

import (
	"bytes"
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

//go:embed suite.schema.json
var schemaJSON []byte

// schema compiles the embedded suite.schema.json, once.
var schema = sync.OnceValue(func() *jsonschema.Schema {
	const name = "suite.schema.json"
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schemaJSON))
	if err != nil {
		panic(err) // the file is part of this package
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource(name, doc); err != nil {
		panic(err)
	}
	return c.MustCompile(name)
})

// Error is a fault in a suite's files.
type Error struct {
	File   string
	Line   int    // 0 where it is about the whole file
	Column int    // of YAML only
	Field  string // gates.cosine.min; empty where it is about no field
	Msg    string
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	for _, n := range []int{e.Line, e.Column} {
		if n > 0 {
			fmt.Fprintf(&b, ":%d", n)
		}
	}
	if e.Field != "" {
		b.WriteString(": " + e.Field)
	}
	return b.String() + ": " + e.Msg
}

// Decode reads a suite.yaml, whose name is file in errors. Every fault that the
// schema finds is in the error, each an [Error].
func Decode(file string, src []byte) (*Suite, error) {
	tree, err := parser.ParseBytes(src, 0)
	if err != nil {
		return nil, yamlError(file, err)
	}
	var plain any
	if err := yaml.Unmarshal(src, &plain); err != nil {
		return nil, yamlError(file, err)
	}
	if err := schema().Validate(plain); err != nil {
		var invalid *jsonschema.ValidationError
		if !errors.As(err, &invalid) {
			return nil, &Error{File: file, Msg: err.Error()}
		}
		faults := schemaErrors(file, tree, invalid)
		slices.SortFunc(faults, func(a, b *Error) int {
			return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Field, b.Field))
		})
		return nil, join(faults)
	}
	s := new(Suite)
	if err := yaml.UnmarshalWithOptions(src, s, yaml.Strict()); err != nil {
		return nil, yamlError(file, err)
	}
	return s, check(file, tree, s)
}

// check holds what a schema cannot say.
func check(file string, tree *ast.File, s *Suite) error {
	var errs []*Error
	fault := func(msg string, path ...string) {
		errs = append(errs, at(file, tree, path, msg))
	}
	seen := map[string]bool{}
	for i, a := range s.Artifacts {
		if seen[a.Name] {
			fault(fmt.Sprintf("a second artifact %q", a.Name), "artifacts", strconv.Itoa(i), "name")
		}
		seen[a.Name] = true
	}
	if c := s.Controls.SwappedPooling; c != nil && c.Pooling == s.Model.Pooling {
		fault(fmt.Sprintf("%q is the model's own pooling; name one that must fail", c.Pooling), "controls", "swapped_pooling", "pooling")
	}
	if p := s.Performance; p != nil && p.MemorySettle >= p.MemoryBatches {
		fault(fmt.Sprintf("%d batches settle and %d are made: none is left to grow in", p.MemorySettle, p.MemoryBatches), "performance", "memory_settle")
	}
	if s.Controls.NoNormalization && s.Gates.Norm == nil {
		fault("there is no norm gate that could fail", "controls", "no_normalization")
	}
	for i, a := range s.Artifacts {
		if _, err := json.Marshal(a.RuntimeConfig); err != nil {
			fault("cannot be sent as JSON: "+err.Error(), "artifacts", strconv.Itoa(i), "runtime_config")
		}
		if f := a.FlippedByte; f != nil && (f.File != "") != a.Digest.IsTree() {
			fault("a directory's is in a file, which must be named; a file's is in itself", "artifacts", strconv.Itoa(i), "flipped_byte")
		} else if f != nil && f.File != "" && !filepath.IsLocal(filepath.FromSlash(f.File)) {
			fault(fmt.Sprintf("%q is not in the artifact", f.File), "artifacts", strconv.Itoa(i), "flipped_byte", "file")
		}
	}
	for i, g := range append([]Gates{s.Gates}, artifactGates(s)...) {
		if g.People == nil || s.People != nil {
			continue
		}
		path := []string{"gates", "people"}
		if i > 0 {
			path = append([]string{"artifacts", strconv.Itoa(i - 1)}, path...)
		}
		fault("the suite has no judgements of people: add the field people", path...)
	}
	return join(errs)
}

func artifactGates(s *Suite) []Gates {
	var all []Gates
	for _, a := range s.Artifacts {
		all = append(all, a.Gates)
	}
	return all
}

// join is errors.Join for the type that this package makes.
func join(faults []*Error) error {
	errs := make([]error, len(faults))
	for i, f := range faults {
		errs[i] = f
	}
	return errors.Join(errs...)
}

func yamlError(file string, err error) error {
	var y yaml.Error
	if !errors.As(err, &y) || y.GetToken() == nil {
		return &Error{File: file, Msg: err.Error()}
	}
	p := y.GetToken().Position
	return &Error{File: file, Line: p.Line, Column: p.Column, Msg: y.GetMessage()}
}

// schemaErrors flattens the tree of a validation to its leaves.
func schemaErrors(file string, tree *ast.File, e *jsonschema.ValidationError) []*Error {
	if len(e.Causes) > 0 {
		var errs []*Error
		for _, c := range e.Causes {
			errs = append(errs, schemaErrors(file, tree, c)...)
		}
		return errs
	}
	path := e.InstanceLocation
	switch k := e.ErrorKind.(type) {
	case *kind.AdditionalProperties:
		var errs []*Error
		for _, name := range k.Properties {
			errs = append(errs, at(file, tree, append(path[:len(path):len(path)], name), "no such field"))
		}
		return errs
	case *kind.Required:
		var errs []*Error
		for _, name := range k.Missing {
			err := at(file, tree, path, "the field is missing")
			err.Field = fieldName(append(path[:len(path):len(path)], name))
			errs = append(errs, err)
		}
		return errs
	}
	return []*Error{at(file, tree, path, e.ErrorKind.LocalizedString(message.NewPrinter(language.English)))}
}

// at makes the error of the node under path.
func at(file string, tree *ast.File, path []string, msg string) *Error {
	e := &Error{File: file, Field: fieldName(path), Msg: msg}
	b := (&yaml.PathBuilder{}).Root()
	for _, p := range path {
		if i, err := strconv.ParseUint(p, 10, 32); err == nil {
			b = b.Index(uint(i))
		} else {
			b = b.Child(p)
		}
	}
	node, err := b.Build().FilterFile(tree)
	if err != nil || node.GetToken() == nil {
		return e // a name that a YAML path cannot say: the field stands in the message
	}
	// The token of a mapping is its first colon; a person looks for its first key.
	token := node.GetToken()
	if m, ok := node.(*ast.MappingNode); ok && len(m.Values) > 0 {
		token = m.Values[0].Key.GetToken()
	}
	e.Line, e.Column = token.Position.Line, token.Position.Column
	return e
}

// fieldName writes a path as artifacts[0].gates.cosine.
func fieldName(path []string) string {
	var b strings.Builder
	for _, p := range path {
		if _, err := strconv.ParseUint(p, 10, 32); err == nil {
			b.WriteString("[" + p + "]")
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		b.WriteString(p)
	}
	return b.String()
}
