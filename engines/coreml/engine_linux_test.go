package coreml

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/synapse-module/workers/engines/coreml/internal/objc"
	"github.com/synapse-module/workers/engines/coreml/internal/stubcoreml"
	"github.com/synapse-module/workers/protocol"
	"github.com/synapse-module/workers/workerkit"
)

// several is an artifact of four buckets as functions, as one package each, and
// as enumerated shapes.
var several = map[string]func(r *rig) (workerkit.Model, error){
	"functions": func(r *rig) (workerkit.Model, error) {
		m := with(hidden(1, 8), keyFunctions, "s8,b4s8,s16,s32")
		m.Functions = map[string]stub{}
		for name, shape := range map[string][2]int{"s8": {1, 8}, "b4s8": {4, 8}, "s16": {1, 16}, "s32": {1, 32}} {
			f := hidden(shape[0], shape[1])
			m.Functions[name] = stub{Inputs: f.Inputs, Outputs: f.Outputs}
		}
		return r.loadPackage(m, "")
	},
	"packages": func(r *rig) (workerkit.Model, error) {
		dir := r.TempDir()
		for name, m := range map[string]stub{"s8": hidden(1, 8), "b4s8": hidden(4, 8), "s16": hidden(1, 16), "s32": hidden(1, 32)} {
			stubcoreml.WritePackage(r, dir, name+".mlpackage", m)
		}
		return r.load(dir, formatPackage, "")
	},
	"compiled": func(r *rig) (workerkit.Model, error) {
		dir := r.TempDir()
		for name, m := range map[string]stub{"s8": hidden(1, 8), "b4s8": hidden(4, 8), "s16": hidden(1, 16), "s32": hidden(1, 32)} {
			stubcoreml.WriteCompiled(r, dir, name+".mlmodelc", m)
		}
		return r.load(dir, formatCompiled, "")
	},
	"enumerated": func(r *rig) (workerkit.Model, error) {
		m := hidden(1, 8)
		f := stubcoreml.Feature{Type: stubcoreml.Int32, Shape: []int{1, 8}, Shapes: [][]int{{1, 8}, {4, 8}, {1, 16}, {1, 32}}}
		m.Inputs = map[string]stubcoreml.Feature{"input_ids": f, "attention_mask": f}
		return r.loadPackage(m, "")
	},
	"range": func(r *rig) (workerkit.Model, error) {
		m := hidden(1, 8)
		f := stubcoreml.Feature{Type: stubcoreml.Int32, Shape: []int{1, 8}, Ranges: [][2]int{{1, 4}, {1, 32}}}
		m.Inputs = map[string]stubcoreml.Feature{"input_ids": f, "attention_mask": f}
		return r.loadPackage(m, `{"allow_range_shapes":true}`)
	},
}

// Rows of all lengths, in one request, in any order, over every kind of bucket:
// each vector is its row's own, whatever stands beside it.
func TestEmbedOverBuckets(t *testing.T) {
	for name, load := range several {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			m, err := load(r)
			if err != nil {
				t.Fatal(err)
			}
			d := m.Describe()
			if d.MaxTokens != 32 || d.VocabSize != 1000 || d.Dims != 6 || d.DefaultPooling != "mean" || d.Arch != "bert" || fmt.Sprint(d.Poolings) != "[mean cls last]" {
				t.Fatalf("described as %+v", d)
			}
			var rows [][]int32
			for i, n := range []int{32, 1, 8, 9, 2, 16, 17, 5, 1, 31, 8, 8, 7, 3, 20} {
				rows = append(rows, ids(n, i))
			}
			for p, want := range map[workerkit.Pooling]func(row []int32) []float32{
				workerkit.PoolingMean: meanOf,
				workerkit.PoolingCLS:  func(row []int32) []float32 { return stateOf(row[0]) },
				workerkit.PoolingLast: func(row []int32) []float32 { return stateOf(row[len(row)-1]) },
			} {
				got, err := m.(workerkit.Embedder).Embed(t.Context(), rows, p)
				if err != nil {
					t.Fatal(err)
				}
				for i, row := range rows {
					if !slices.Equal(got[i], want(row)) {
						t.Fatalf("%s of row %d (%d tokens) is %v, want %v", p, i, len(row), got[i], want(row))
					}
				}
			}
			m.Close()
			settled(t)
		})
	}
}

// settled waits until nothing of Core ML's lives.
func settled(t *testing.T) {
	t.Helper()
	var live stubcoreml.Live
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if live, _ = stubcoreml.Counters(t); live == (stubcoreml.Live{}) && objc.LiveBlocks() == 0 {
			return
		}
	}
	t.Errorf("left behind: %+v, %d blocks", live, objc.LiveBlocks())
}

func TestPooledModelHasItsOwnPoolingOnly(t *testing.T) {
	r := newRig(t)
	m := r.must(pooled(2, 8), "")
	if d := m.Describe(); fmt.Sprint(d.Poolings) != "[mean]" || d.Dims != 6 {
		t.Fatalf("described as %+v", d)
	}
	rows := [][]int32{ids(8, 1), ids(3, 2), ids(5, 3)} // an odd row: the bucket has two
	got, err := m.(workerkit.Embedder).Embed(t.Context(), rows, workerkit.PoolingMean)
	if err != nil {
		t.Fatal(err)
	}
	for i, row := range rows {
		if !slices.Equal(got[i], meanOf(row)) {
			t.Errorf("row %d is %v, want %v", i, got[i], meanOf(row))
		}
	}
}

// Without a mask the padding's id is the mask, so a row may not hold it.
func TestModelWithoutMask(t *testing.T) {
	r := newRig(t)
	m := pooled(1, 8)
	delete(m.Inputs, "attention_mask")
	if _, err := r.loadPackage(m, ""); true {
		refusal(t, err, protocol.CodeArtifactInvalid, keyPadID)
	}
	e := r.must(with(m, keyPadID, "0"), "").(workerkit.Embedder)
	got, err := e.Embed(t.Context(), [][]int32{{5, 9}}, workerkit.PoolingMean)
	if err != nil || !slices.Equal(got[0], meanOf([]int32{5, 9})) {
		t.Errorf("got %v, %v", got, err)
	}
	_, err = e.Embed(t.Context(), [][]int32{{5}, {5, 0, 9}}, workerkit.PoolingMean)
	refusal(t, err, protocol.CodeRequestInvalid, "row 1 holds the id 0 as token 1")
}

func TestRefusals(t *testing.T) {
	r := newRig(t)
	input := func(m stub, name string, f stubcoreml.Feature) stub {
		m.Inputs[name] = f
		return m
	}
	rename := func(m stub, from, to string) stub {
		m.Inputs[to] = m.Inputs[from]
		delete(m.Inputs, from)
		return m
	}
	ranged := stubcoreml.Feature{Type: stubcoreml.Int32, Shape: []int{1, 8}, Ranges: [][2]int{{1, 1}, {1, 512}}}
	endless := stubcoreml.Feature{Type: stubcoreml.Int32, Shape: []int{1, 8}, Ranges: [][2]int{{1, 1}, {1, 0}}}
	outputs := func(m stub, f map[string]stubcoreml.Feature) stub {
		m.Outputs = f
		return m
	}
	newer := pooled(1, 8)
	newer.Spec = 10
	big := pooled(1, 8)
	big.CompiledBytes = engineLimit + 1
	const invalid, config = protocol.CodeArtifactInvalid, protocol.CodeConfigInvalid
	for name, c := range map[string]struct {
		model  stub
		config string
		code   protocol.Code
		says   string
	}{
		"unknown input":            {input(pooled(1, 8), "pixel_values", stubcoreml.IDs(1, 8)), "", invalid, "pixel_values (int32 [1 8]) has no known role"},
		"no ids":                   {rename(pooled(1, 8), "input_ids", "attention_mask"), "", invalid, "has no input of token ids (input_ids)"},
		"two of a role":            {input(pooled(1, 8), "token_ids", stubcoreml.IDs(1, 8)), "", invalid, "have the same role"},
		"float ids":                {input(pooled(1, 8), "input_ids", stubcoreml.Feature{Type: stubcoreml.Float32, Shape: []int{1, 8}}), "", invalid, "input_ids (float32 [1 8]) is none of token ids: those are int32"},
		"ids of one dimension":     {input(pooled(1, 8), "input_ids", stubcoreml.Feature{Type: stubcoreml.Int32, Shape: []int{8}}), "", invalid, "those are [rows, tokens]"},
		"an image":                 {input(pooled(1, 8), "input_ids", stubcoreml.Feature{}), "", invalid, "input_ids (no array)"},
		"shapes that differ":       {input(pooled(1, 8), "attention_mask", stubcoreml.IDs(1, 16)), "", invalid, "attention_mask (int32 [1 16]) does not take [1 8]"},
		"range":                    {input(input(pooled(1, 8), "input_ids", ranged), "attention_mask", ranged), "", invalid, "takes a range of shapes, which the Neural Engine runs only at one"},
		"range without an end":     {input(input(pooled(1, 8), "input_ids", endless), "attention_mask", endless), `{"allow_range_shapes":true}`, config, "set runtime_config.max_tokens"},
		"two outputs":              {outputs(pooled(1, 8), map[string]stubcoreml.Feature{"a": {Type: stubcoreml.Float16, Shape: []int{1, 6}}, "b": {Type: stubcoreml.Float16, Shape: []int{1, 6}}}), "", invalid, "has the outputs a (float16 [1 6]), b (float16 [1 6])"},
		"no output":                {outputs(pooled(1, 8), map[string]stubcoreml.Feature{"a": {}}), "", invalid, "has the outputs a (no array)"},
		"output of another name":   {pooled(1, 8), `{"output":"pooler"}`, invalid, `has no output "pooler"`},
		"output of four":           {outputs(pooled(1, 8), map[string]stubcoreml.Feature{"a": {Type: stubcoreml.Float16, Shape: []int{1}}}), "", invalid, "has the shape [1] where 1 rows are due"},
		"one value a row":          {outputs(pooled(1, 8), map[string]stubcoreml.Feature{"a": {Type: stubcoreml.Float16, Shape: []int{1, 1}}}), "", invalid, "which is a ranking head's"},
		"integers out":             {outputs(pooled(1, 8), map[string]stubcoreml.Feature{"a": {Type: stubcoreml.Int32, Shape: []int{1, 6}}}), "", invalid, "an array of int32 is none of floats"},
		"fewer rows out than in":   {failing(pooled(8, 8), "fewer_rows"), "", invalid, "has the shape [1 6] where 8 rows are due"},
		"vocabulary unknown":       {without(pooled(1, 8), keyVocabSize), "", config, "set runtime_config.vocab_size"},
		"vocabulary too large":     {pooled(1, 8), `{"vocab_size":1001}`, config, "runtime_config.vocab_size is 1001, the artifact says 1000"},
		"pooling unknown":          {without(pooled(1, 8), keyPooling), "", config, "set runtime_config.pooling"},
		"pooling contradicted":     {pooled(1, 8), `{"pooling":"cls"}`, config, `runtime_config.pooling is "cls", the artifact says "mean"`},
		"more tokens than there":   {pooled(1, 8), `{"max_tokens":9}`, config, "the longest bucket has 8 tokens"},
		"metadata unknown":         {with(pooled(1, 8), "synapse.poolling", "mean"), "", invalid, `"synapse.poolling" is unknown`},
		"metadata no number":       {with(pooled(1, 8), keyVocabSize, "many"), "", invalid, `synapse.vocab_size is "many"`},
		"metadata no pooling":      {with(pooled(1, 8), keyPooling, "max"), "", invalid, `synapse.pooling is "max"`},
		"metadata no pair":         {with(pooled(1, 8), keyPair, "$A"), "", invalid, "synapse.pair: a pair has"},
		"metadata no golden rows":  {with(pooled(1, 8), keyGolden, `[{"idz":[1]}]`), "", invalid, "synapse.golden is no JSON list"},
		"a function of none":       {pooled(1, 8), `{"functions":["s9"]}`, invalid, "Core ML could not load"},
		"an empty list":            {pooled(1, 8), `{"functions":[]}`, config, "runtime_config.functions is an empty list"},
		"a newer macOS's":          {newer, "", invalid, "specification version 10, which needs macOS 26.0; this is macOS 15.1"},
		"over the engine's size":   {big, "", invalid, "the compiled model model has 2048 MiB; over 2048 MiB macOS 15.1 runs all of it on the CPU"},
		"compile fails":            {failing(pooled(1, 8), "compile_error"), "", invalid, "Core ML could not compile: Unable to parse the model"},
		"load fails":               {failing(pooled(1, 8), "load_error"), "", invalid, "Core ML could not load: Failed to build"},
		"load gives nothing":       {failing(pooled(1, 8), "load_nil"), "", invalid, "gave no reason"},
		"describes nothing":        {failing(pooled(1, 8), "nil_description"), "", invalid, "it has none"},
		"predicts nothing":         {failing(pooled(1, 8), "predict_error"), "", invalid, "fails on a row of one token in its bucket 1×8: Core ML could not predict"},
		"hides its memory":         {failing(pooled(1, 8), "hidden_memory"), "", invalid, "the array's memory was not shown"},
		"layout of no ranker":      {with(pooled(1, 8), keyPair, "1 $A 2 $B 2"), "", invalid, "gives 6 values a row where a ranking head gives one"},
		"layout too long":          {ranker(1, 4), "", invalid, "a pair has 5 tokens at least, the longest bucket 4"},
		"layout over vocabulary":   {with(ranker(1, 8), keyVocabSize, "102"), "", invalid, "the pair's layout has the id 102"},
		"layout needs token types": {with(outputs(pooled(1, 8), ranker(1, 8).Outputs), keyPair, "101 $A 102 $B:1 102:1"), "", invalid, "no input for token types"},
		"pair told wrongly":        {ranker(1, 8), `{"pair":["$A"]}`, config, "runtime_config.pair: a pair has"},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := r.loadPackage(c.model, c.config)
			if m != nil {
				m.Close()
			}
			refusal(t, err, c.code, c.says)
		})
	}
	settled(t)
}

func TestMalformedPackages(t *testing.T) {
	r := newRig(t)
	write := func(t *testing.T) string {
		return stubcoreml.WritePackage(t, t.TempDir(), "m.mlpackage", pooled(1, 8))
	}
	for name, c := range map[string]struct {
		spoil func(path string) error
		says  string
	}{
		"no manifest":            {remove("Manifest.json"), `holds the directory "Data", which is no mlpackage`},
		"manifest of no JSON":    {put("Manifest.json", "{"), "its Manifest.json is no JSON"},
		"manifest of no model":   {put("Manifest.json", "{}"), "its Manifest.json names no model"},
		"manifest leads out":     {put("Manifest.json", `{"rootModelIdentifier":"A","itemInfoEntries":{"A":{"path":"../../../../etc/passwd"}}}`), "its Manifest.json names no model"},
		"no model":               {remove("Data/com.apple.CoreML/model.mlmodel"), "the model that its Manifest.json names is missing"},
		"an empty model":         {put("Data/com.apple.CoreML/model.mlmodel", ""), "its model is empty"},
		"a model of other bytes": {put("Data/com.apple.CoreML/model.mlmodel", "PK\x03\x04"), "does not begin with a specification version"},
		"a model cut short":      {put("Data/com.apple.CoreML/model.mlmodel", "\x08\xff"), "does not begin with a specification version"},
	} {
		t.Run(name, func(t *testing.T) {
			path := write(t)
			if err := c.spoil(path); err != nil {
				t.Fatal(err)
			}
			_, err := r.load(path, formatPackage, "")
			refusal(t, err, protocol.CodeArtifactInvalid, c.says)
		})
	}
	_, err := r.load(write(t), formatCompiled, "")
	refusal(t, err, protocol.CodeArtifactInvalid, "which is no mlmodelc (it has no coremldata.bin)")
}

func remove(name string) func(string) error {
	return func(dir string) error { return os.Remove(filepath.Join(dir, name)) }
}

func put(name, text string) func(string) error {
	return func(dir string) error { return os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644) }
}

func TestOlderMacOS(t *testing.T) {
	functions := with(pooled(1, 8), keyFunctions, "s8")
	functions.Functions = map[string]stub{"s8": {}}
	r := newRigOn(t, objc.System{Version: "14.7", Build: "23H1", Chip: "M1"})
	_, err := r.loadPackage(functions, "")
	refusal(t, err, protocol.CodeArtifactInvalid, "needs macOS 15; this is macOS 14.7")
	_, err = r.loadPackage(pooled(1, 8), `{"functions":["s8"]}`)
	refusal(t, err, protocol.CodeConfigInvalid, "needs macOS 15, this is macOS 14.7")

	old := newRigOn(t, objc.System{Version: "13.6", Build: "22G1", Chip: "M1"})
	m := old.must(planned(pooled(1, 8), op{Name: "linear", Device: "N"}), "")
	if m.Describe().Placement != nil || !strings.Contains(old.log.String(), "compute plans need macOS 14.4") {
		t.Errorf("macOS 13 has the placement %v; log:\n%s", m.Describe().Placement, old.log)
	}
}

func TestInfo(t *testing.T) {
	info := newRig(t).engine.Info()
	if info.Name != "coreml" || info.Version != "macOS 15.1 (24B83)" || fmt.Sprint(info.Formats) != "[mlpackage mlpackage+tar.zst mlmodelc mlmodelc+tar.zst]" || !slices.Contains(info.BuildFlags, "chip=stub") {
		t.Fatalf("info is %+v", info)
	}
}
