// Package stubcoreml builds the stub of Core ML that the tests run over on Linux,
// and writes the models that it serves. The stub is Objective-C over GCC's
// runtime and GNUstep's Foundation, in testdata: the bridge sends it real
// messages, and leaks, missing methods and wrong types show as they would on a
// Mac. It shares no line with the bridge, but its author: what Apple's framework
// does differently, only `worker-ane selfcheck` on a Mac can tell.
package stubcoreml

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

// Types of features, as Core ML numbers them.
const (
	Float16 = 0x10010
	Float32 = 0x10020
	Float64 = 0x10040
	Int32   = 0x20020
)

// Feature is an input or output. A first dimension of an output, and a second of
// three, follow the inputs.
type Feature struct {
	Type     int // 0 for no array
	Shape    []int
	Shapes   [][]int
	Ranges   [][2]int // 0 for no upper bound
	Optional bool
	Gap      int  // elements from one to the next in memory
	Score    bool // the output is a score, not a state or a mean
}

// Op is an operation of a plan; see testdata/plan.m.
type Op struct {
	Name, Device, Supported, Cost string
	Blocks                        [][]Op
}

// Model is what the stub makes a model of.
type Model struct {
	Inputs, Outputs map[string]Feature
	Metadata        map[string]string
	Functions       map[string]Model // what differs from the rest
	Fault           string           // see testdata/model.m and plan.m
	FaultLength     int              // the length at which wrong_values answers wrongly
	FaultAfter      int              // so many predictions of a loaded model pass before the fault
	CompiledBytes   int64            // added to the compiled model
	Program         map[string][]Op
	Network         []Op
	Pipeline        []Model // plans of the sub-models
	PlanUnits       int     // the compute units that a plan must be asked for with; 0 for any

	Spec int // specification version of the package; 0 for 7, macOS 13
}

// IDs is an input of token ids, masks or types of one shape.
func IDs(batch, length int) Feature { return Feature{Type: Int32, Shape: []int{batch, length}} }

// WritePackage writes a .mlpackage named name under dir and returns its path.
func WritePackage(t testing.TB, dir, name string, m Model) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if m.Spec == 0 {
		m.Spec = 7
	}
	spec := protowire.AppendTag(nil, 1, protowire.VarintType)
	spec = protowire.AppendVarint(spec, uint64(m.Spec))
	write(t, filepath.Join(path, "Data", "com.apple.CoreML", "model.mlmodel"), spec)
	write(t, filepath.Join(path, "Manifest.json"), []byte(`{
  "fileFormatVersion": "1.0.0",
  "itemInfoEntries": {"A": {"author": "com.apple.CoreML", "description": "", "name": "model.mlmodel", "path": "com.apple.CoreML/model.mlmodel"}},
  "rootModelIdentifier": "A"
}`))
	write(t, filepath.Join(path, "stub.plist"), m.plist())
	return path
}

// WriteCompiled writes a .mlmodelc named name under dir and returns its path.
func WriteCompiled(t testing.TB, dir, name string, m Model) string {
	t.Helper()
	path := filepath.Join(dir, name)
	write(t, filepath.Join(path, "coremldata.bin"), []byte("stub"))
	write(t, filepath.Join(path, "stub.plist"), m.plist())
	return path
}

func write(t testing.TB, path string, b []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

// State is component j of the state of a token of the stub's models.
func State(id int32, tokenType, j int) float64 {
	return float64((int(id)*7+tokenType*3+j*5)%64-32) / 16
}

// Score is the stub's score of a pair. The tokens' types count.
func Score(ids, types []int32) float64 {
	sum := 0
	for i, id := range ids {
		sum += int(id) * (1 + int(types[i])) * (i%7 + 1)
	}
	return float64(sum%997) / 64
}

func (m Model) plist() []byte {
	var b strings.Builder
	b.WriteString(`<?xml version="1.0" encoding="UTF-8"?><plist version="1.0">`)
	put(&b, m.values())
	b.WriteString("</plist>\n")
	return []byte(b.String())
}

func (m Model) values() map[string]any {
	v := map[string]any{}
	for name, features := range map[string]map[string]Feature{"inputs": m.Inputs, "outputs": m.Outputs} {
		if features == nil {
			continue
		}
		all := map[string]any{}
		for k, f := range features {
			all[k] = f.values()
		}
		v[name] = all
	}
	if m.Metadata != nil {
		all := map[string]any{}
		for k, s := range m.Metadata {
			all[k] = s
		}
		v["metadata"] = all
	}
	if m.Functions != nil {
		all := map[string]any{}
		for k, f := range m.Functions {
			all[k] = f.values()
		}
		v["functions"] = all
	}
	if m.Fault != "" {
		v["fault"] = m.Fault
		v["fault_length"] = m.FaultLength
		v["fault_after"] = m.FaultAfter
	}
	if m.CompiledBytes > 0 {
		v["compiled_bytes"] = m.CompiledBytes
	}
	if m.PlanUnits > 0 {
		v["plan_units"] = fmt.Sprint(m.PlanUnits)
	}
	if plan := m.plan(); plan != nil {
		v["plan"] = plan
	}
	return v
}

func (m Model) plan() any {
	switch {
	case m.Program != nil:
		functions := map[string]any{}
		for name, ops := range m.Program {
			functions[name] = opValues(ops)
		}
		return map[string]any{"program": functions}
	case m.Network != nil:
		return map[string]any{"network": opValues(m.Network)}
	case m.Pipeline != nil:
		var subs []any
		for _, sub := range m.Pipeline {
			subs = append(subs, sub.plan())
		}
		return map[string]any{"pipeline": subs}
	}
	return nil
}

func opValues(ops []Op) []any {
	all := []any{}
	for _, o := range ops {
		v := map[string]any{"name": o.Name}
		for k, s := range map[string]string{"device": o.Device, "supported": o.Supported, "cost": o.Cost} {
			if s != "" {
				v[k] = s
			}
		}
		if o.Blocks != nil {
			var blocks []any
			for _, b := range o.Blocks {
				blocks = append(blocks, opValues(b))
			}
			v["blocks"] = blocks
		}
		all = append(all, v)
	}
	return all
}

func (f Feature) values() map[string]any {
	v := map[string]any{}
	if f.Type != 0 {
		v["type"] = f.Type
	}
	if f.Shape != nil {
		v["shape"] = anys(f.Shape)
	}
	if f.Shapes != nil {
		var all []any
		for _, s := range f.Shapes {
			all = append(all, anys(s))
		}
		v["shapes"] = all
	}
	if f.Ranges != nil {
		var all []any
		for _, r := range f.Ranges {
			all = append(all, anys(r[:]))
		}
		v["ranges"] = all
	}
	if f.Optional {
		v["optional"] = 1
	}
	if f.Gap != 0 {
		v["gap"] = f.Gap
	}
	if f.Score {
		v["score"] = 1
	}
	return v
}

func anys(ints []int) []any {
	all := make([]any, len(ints))
	for i, n := range ints {
		all[i] = n
	}
	return all
}

// put writes a value as XML of a property list.
func put(b *strings.Builder, v any) {
	switch v := v.(type) {
	case map[string]any:
		b.WriteString("<dict>")
		for _, k := range slices.Sorted(maps.Keys(v)) {
			fmt.Fprintf(b, "<key>%s</key>", escape(k))
			put(b, v[k])
		}
		b.WriteString("</dict>")
	case []any:
		b.WriteString("<array>")
		for _, e := range v {
			put(b, e)
		}
		b.WriteString("</array>")
	case string:
		fmt.Fprintf(b, "<string>%s</string>", escape(v))
	default:
		fmt.Fprintf(b, "<integer>%v</integer>", v)
	}
}

func escape(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(s)
}
