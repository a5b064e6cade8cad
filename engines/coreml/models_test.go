package coreml

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/synapse-module/workers/certify/suite"
	"github.com/synapse-module/workers/certify/suites"
	"github.com/synapse-module/workers/internal/assetstest"
)

// The numbers of the fields in Core ML's Model.proto that lead to user-defined
// metadata: Model.description.metadata.userDefined, a map of strings.
const (
	descriptionField = 2
	metadataField    = 100
	userDefinedField = 100
)

// fields calls visit with each length-delimited field of a message.
func fields(t *testing.T, message []byte, visit func(number protowire.Number, value []byte)) {
	t.Helper()
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			t.Fatal(protowire.ParseError(n))
		}
		message = message[n:]
		if n = protowire.ConsumeFieldValue(number, kind, message); n < 0 {
			t.Fatal(protowire.ParseError(n))
		}
		if kind == protowire.BytesType {
			value, _ := protowire.ConsumeBytes(message)
			visit(number, value)
		}
		message = message[n:]
	}
}

// userDefined reads the metadata of a package as Core ML will show it.
func userDefined(t *testing.T, dir string) map[string]string {
	t.Helper()
	spec, err := os.ReadFile(filepath.Join(dir, "Data", "com.apple.CoreML", "model.mlmodel"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	fields(t, spec, func(n protowire.Number, description []byte) {
		if n != descriptionField {
			return
		}
		fields(t, description, func(n protowire.Number, metadata []byte) {
			if n != metadataField {
				return
			}
			fields(t, metadata, func(n protowire.Number, entry []byte) {
				if n != userDefinedField {
					return
				}
				var text [3]string // by field number
				fields(t, entry, func(n protowire.Number, value []byte) { text[n] = string(value) })
				all[text[1]] = text[2]
			})
		})
	})
	return all
}

// The packages that are made here say of themselves what the worker reads, and
// their golden rows are the recorded reference's. What they compute was held to
// that reference when they were made (tools/coreml); their bytes are pinned.
func TestModelsMadeHere(t *testing.T) {
	reference, err := suites.Load("all-minilm-l6-v2")
	if err != nil {
		t.Fatal(err)
	}
	for asset, want := range map[string]struct {
		parts     string
		version   uint64
		functions string
		pair      bool
	}{
		"minilm-coreml-packages":  {"[s128 s32 s512]", 7, "[]", false},
		"minilm-coreml-functions": {"[model]", 9, "[s32 s64 s128 s256 s512]", false},
		"minilm-coreml-conv":      {"[model]", 7, "[]", false},
		"minilm-coreml-ranker":    {"[model]", 7, "[]", true},
	} {
		t.Run(asset, func(t *testing.T) {
			parts, err := findParts(assetstest.Path(t, asset), formatPackage, asset)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, p := range parts {
				names = append(names, p.name)
				version, err := specificationVersion(p.path)
				if err != nil || version != want.version {
					t.Errorf("%s has the specification version %d, %v", p.name, version, err)
				}
				m, err := readMetadata(userDefined(t, p.path))
				if err != nil {
					t.Fatal(err)
				}
				if m.arch != "bert" || m.vocabSize != 30522 || fmt.Sprint(m.functions) != want.functions || (m.pair != nil) != want.pair || len(m.golden) == 0 {
					t.Errorf("%s says %+v", p.name, m)
				}
				for _, g := range m.golden {
					if want.pair {
						if len(g.Query) == 0 || len(g.Document) == 0 || g.Score == 0 {
							t.Errorf("%s has the golden pair %+v", p.name, g)
						}
						continue
					}
					i := slices.IndexFunc(reference.Inputs, func(in suite.Input) bool { return slices.Equal(in.IDs, g.IDs) })
					if i < 0 {
						t.Fatalf("%s has a golden row of %d ids that is not in the suite", p.name, len(g.IDs))
					}
					if c := cosine(g.Vector, reference.Reference[i]); !(c > 0.999999999) {
						t.Errorf("%s: a golden vector has the cosine %v to the recorded one", p.name, c)
					}
				}
			}
			if fmt.Sprint(names) != want.parts {
				t.Errorf("parts are %v", names)
			}
		})
	}
}
