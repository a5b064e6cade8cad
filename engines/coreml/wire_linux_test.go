package coreml

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/synapse-module/workers/certify/conformance"
	"github.com/synapse-module/workers/engines/coreml/internal/stubcoreml"
	"github.com/synapse-module/workers/host"
	"github.com/synapse-module/workers/internal/packtest"
	"github.com/synapse-module/workers/internal/wiretest"
	"github.com/synapse-module/workers/protocol"
)

// spawn starts the real worker over the stub and accepts it.
func spawn(t *testing.T) *wiretest.Peer {
	t.Helper()
	return wiretest.Spawn(t, wiretest.Build(t, "cmd/worker-ane"), "--engine-lib", stubcoreml.Dir(t)).Accept(0)
}

// packaged is the LOAD of a model as a package.
func packaged(t *testing.T, m stub) protocol.Load {
	t.Helper()
	return loadOf(t, stubcoreml.WritePackage(t, t.TempDir(), "m.mlpackage", m))
}

func loadOf(t *testing.T, path string) protocol.Load {
	t.Helper()
	digest, err := protocol.TreeDigest(os.DirFS(path), nil)
	if err != nil {
		t.Fatal(err)
	}
	return protocol.Load{ReqID: "1", ArtifactPath: path, ArtifactDigest: digest, Format: formatPackage}
}

// good proves that the connection is in step and the model serves.
func good(t *testing.T, p *wiretest.Peer, ref string) {
	t.Helper()
	row := ids(5, 3)
	if got := p.Embed(ref, false, row); !slices.Equal(got[0], meanOf(row)) {
		t.Fatalf("a good request gives %v, want %v", got[0], meanOf(row))
	}
}

// The whole worker over the real wire: what it says of itself, what it serves,
// and where Core ML means to run it.
func TestWorker(t *testing.T) {
	p := spawn(t)
	if e := p.Hello.Engine; e.Name != "coreml" || e.Version != "macOS 15.1 (24B83)" {
		t.Errorf("HELLO says %+v", e)
	}
	ref := p.Load(packaged(t, planned(hidden(2, 8), onEngine, onEngine, onEngine, onCPU)))
	good(t, p, ref)
	rows := [][]int32{ids(8, 1), ids(1, 2), ids(4, 3)}
	for i, v := range p.Embed(ref, false, rows...) {
		if !slices.Equal(v, meanOf(rows[i])) {
			t.Errorf("row %d is %v", i, v)
		}
	}
	p.Send(protocol.Describe{ReqID: "1", ModelRef: ref})
	var d protocol.Description
	p.Expect(&d)
	if d.Rerank || d.Generate || d.Dims != 6 || d.MaxTokens != 8 || d.Placement == nil || d.Placement.Share != 0.75 || fmt.Sprint(d.Placement.OffEngine) != "[ios16.gather]" {
		t.Errorf("DESCRIPTION is %+v, placement %+v", d, d.Placement)
	}
	if want := `{"allow_range_shapes":false,"compute_units":"cpu_and_neural_engine"}`; string(d.Config) != want {
		t.Errorf("config is %s", d.Config)
	}
	p.Send(protocol.Ping{ReqID: "1"})
	var pong protocol.Pong
	p.Expect(&pong)
	if pong.PlacementShare == nil || *pong.PlacementShare != 0.75 {
		t.Errorf("PONG is %+v", pong)
	}
	p.Send(protocol.Unload{ReqID: "1", ModelRef: ref})
	p.Expect(&protocol.Unloaded{})
	p.Send(protocol.Shutdown{})
	if got := p.Exit(); got != protocol.ExitOK {
		t.Errorf("exit status %d", got)
	}
}

func TestWorkerReranks(t *testing.T) {
	p := spawn(t)
	ref := p.Load(packaged(t, ranker(2, 16)))
	query, docs := ids(3, 1), [][]int32{ids(10, 2), ids(2, 3), ids(5, 4)}
	m := protocol.Rerank{ReqID: "1", ModelRef: ref, QueryNTokens: len(query)}
	raw := slices.Clone(query)
	for _, d := range docs {
		m.Candidates = append(m.Candidates, protocol.Candidate{NTokens: len(d)})
		raw = append(raw, d...)
	}
	p.Send(m, protocol.Bytes(raw))
	var s protocol.Scores
	p.Expect(&s)
	got := p.Floats()
	for i, d := range docs {
		if want := scoreOf(query, d); got[i] != want {
			t.Errorf("score %d is %v, want %v", i, got[i], want)
		}
	}
	p.Send(wiretest.EmbedBatch(ref, "", false, query))
	p.ExpectErr(protocol.CodeUnsupported)
	p.Send(protocol.Generate{ReqID: "1", ModelRef: ref, MaxTokens: 1}, protocol.Bytes(query))
	p.ExpectErr(protocol.CodeUnsupported)
}

// Packed artifacts serve as the directories that they hold.
func TestPackedArtifacts(t *testing.T) {
	p := spawn(t)
	dir := t.TempDir()
	for path, format := range map[string]string{
		stubcoreml.WritePackage(t, dir, "m.mlpackage", hidden(1, 8)):  formatPackage,
		stubcoreml.WriteCompiled(t, dir, "m.mlmodelc", hidden(1, 16)): formatCompiled,
	} {
		packed, digest := packtest.Dir(t, path)
		m := protocol.Load{ReqID: "1", ArtifactPath: packed, ArtifactDigest: digest, Format: format + "+tar.zst"}
		for range 2 { // made, and found in the cache
			ref := p.Load(m)
			good(t, p, ref)
			p.Send(protocol.Unload{ReqID: "1", ModelRef: ref})
			p.Expect(&protocol.Unloaded{})
		}
		if n := strings.Count(p.Stderr.String(), "found in the cache"); format == formatPackage && n == 0 {
			t.Error("the second load compiled again")
		}
		m.Format = format + "+zstd"
		p.Send(m)
		p.ExpectErr(protocol.CodeArtifactInvalid)
	}
	packed, digest := packtest.Dir(t, stubcoreml.WritePackage(t, dir, "other.mlpackage", hidden(1, 8)))
	p.Send(protocol.Load{ReqID: "1", ArtifactPath: packed, ArtifactDigest: digest, Format: formatCompiled + "+tar.zst"})
	if e := p.ExpectErr(protocol.CodeArtifactInvalid); !strings.Contains(e.Msg, "is no mlmodelc") {
		t.Errorf("a package under another's format: %s", e.Msg)
	}
}

// Bad input is an ERR, and the same worker serves the next request.
func TestBadInput(t *testing.T) {
	p := spawn(t)
	ref := p.Load(packaged(t, hidden(1, 8)))
	own := p.Load(packaged(t, pooled(1, 8)))
	path := func(m protocol.Load, name string) string { return filepath.Join(m.ArtifactPath, name) }
	const model = "Data/com.apple.CoreML/model.mlmodel"
	for name, c := range map[string]struct {
		send func(t *testing.T)
		code protocol.Code
		says string
	}{
		"a file missing": {func(t *testing.T) {
			m := packaged(t, hidden(1, 8))
			os.Remove(path(m, model))
			p.Send(m)
		}, protocol.CodeArtifactInvalid, "has the digest"},
		"a flipped byte": {func(t *testing.T) {
			m := packaged(t, hidden(1, 8))
			if err := os.WriteFile(path(m, model), []byte{8, 6}, 0o644); err != nil {
				t.Fatal(err)
			}
			p.Send(m)
		}, protocol.CodeArtifactInvalid, "has the digest"},
		"a symbolic link inside": {func(t *testing.T) {
			m := packaged(t, hidden(1, 8))
			if err := os.Symlink("/etc/hostname", path(m, "link")); err != nil {
				t.Fatal(err)
			}
			p.Send(m)
		}, protocol.CodeArtifactInvalid, "symbolic link"},
		"other inputs": {func(t *testing.T) {
			m := hidden(1, 8)
			m.Inputs["image"] = stubcoreml.IDs(1, 8)
			p.Send(packaged(t, m))
		}, protocol.CodeArtifactInvalid, "no known role"},
		"other types": {func(t *testing.T) {
			m := hidden(1, 8)
			m.Inputs["input_ids"] = stubcoreml.Feature{Type: stubcoreml.Float32, Shape: []int{1, 8}}
			p.Send(packaged(t, m))
		}, protocol.CodeArtifactInvalid, "those are int32"},
		"a missing file matches its digest": {func(t *testing.T) {
			m := packaged(t, hidden(1, 8))
			os.Remove(path(m, model))
			p.Send(loadOf(t, m.ArtifactPath))
		}, protocol.CodeArtifactInvalid, "the model that its Manifest.json names is missing"},
		"config": {func(t *testing.T) {
			m := packaged(t, hidden(1, 8))
			m.RuntimeConfig = jsontext.Value(`{"compute_units":"gpu"}`)
			p.Send(m)
		}, protocol.CodeConfigInvalid, "runtime_config.compute_units"},
		"least share": {func(t *testing.T) {
			m := packaged(t, planned(hidden(1, 8), onCPU))
			m.RuntimeConfig = jsontext.Value(`{"min_placement_share":0.9}`)
			p.Send(m)
		}, protocol.CodeArtifactInvalid, "0.0 % of the operations"},
		"row too long": {func(*testing.T) { p.Send(wiretest.EmbedBatch(ref, "", false, ids(9, 1))) }, protocol.CodeRequestInvalid, "has 9 tokens, this model takes at most 8"},
		"row empty":    {func(*testing.T) { p.Send(wiretest.EmbedBatch(ref, "", false, []int32{1}, nil)) }, protocol.CodeRequestInvalid, "n_tokens 0"},
		"id negative":  {func(*testing.T) { p.Send(wiretest.EmbedBatch(ref, "", false, []int32{-1})) }, protocol.CodeRequestInvalid, "id -1"},
		"id too large": {func(*testing.T) { p.Send(wiretest.EmbedBatch(ref, "", false, []int32{1000})) }, protocol.CodeRequestInvalid, "vocabulary is 0 to 999"},
		"pooling":      {func(*testing.T) { p.Send(wiretest.EmbedBatch(own, "cls", false, []int32{1})) }, protocol.CodeUnsupported, "this model has [mean]"},
		"rerank": {func(*testing.T) {
			p.Send(protocol.Rerank{ReqID: "1", ModelRef: ref, QueryNTokens: 1, Candidates: []protocol.Candidate{}}, protocol.Bytes([]int32{1}))
		}, protocol.CodeUnsupported, "ranking head"},
		"generate": {func(*testing.T) {
			p.Send(protocol.Generate{ReqID: "1", ModelRef: ref, MaxTokens: 1}, protocol.Bytes([]int32{1}))
		}, protocol.CodeUnsupported, "no generating model"},
	} {
		t.Run(name, func(t *testing.T) {
			c.send(t)
			if e := p.ExpectErr(c.code); !strings.Contains(e.Msg, c.says) {
				t.Errorf("msg is %q, wanted %q", e.Msg, c.says)
			}
			good(t, p, ref)
		})
	}
	p.Send(wiretest.EmbedBatch(ref, "", false)) // no rows: an answer of no vectors
	if v := p.Vectors(); len(v) != 0 {
		t.Errorf("no rows give %v", v)
	}
}

// What Core ML does wrong at a request, once a model has loaded: a typed error
// and a worker that lives on.
func TestFaultsOfAPrediction(t *testing.T) {
	for fault, says := range map[string]string{
		"predict_error":  "Unable to compute the prediction",
		"predict_nil":    "gave no reason",
		"predict_nan":    "not finite",
		"fewer_rows":     "where 2 rows are due",
		"fewer_sets":     "1 of 2 sets of inputs were answered",
		"missing_output": "Core ML gave no array",
		"short_memory":   "does not fit its memory",
		"wrong_type":     "none of floats",
	} {
		t.Run(fault, func(t *testing.T) {
			m := failing(hidden(2, 8), fault)
			m.FaultAfter = 1 // the probe passes
			p := spawn(t)
			ref := p.Load(packaged(t, m))
			other := p.Load(packaged(t, hidden(1, 8)))
			p.Send(wiretest.EmbedBatch(ref, "", false, ids(8, 1), ids(3, 1), ids(2, 1), ids(1, 1)))
			if e := p.ExpectErr(protocol.CodeEngineFailed); !strings.Contains(e.Msg, says) {
				t.Errorf("msg is %q, wanted %q", e.Msg, says)
			}
			good(t, p, other)
		})
	}
}

// What ends the process: the host sees a crash with its stage, its signal and the
// log, and nothing worse.
func TestCrashes(t *testing.T) {
	exe, lib := wiretest.Build(t, "cmd/worker-ane"), stubcoreml.Dir(t)
	for fault, c := range map[string]struct {
		after       int
		stage       host.Stage
		signal, log string
	}{
		"compile_segv":  {0, host.StageLoad, "SIGSEGV", ""},
		"load_raise":    {0, host.StageLoad, "", "unrecognized option"}, // GNUstep exits, macOS aborts
		"predict_kill":  {0, host.StageLoad, "SIGKILL", ""},             // found by the probe
		"predict_abort": {1, host.StageEmbed, "SIGABRT", ""},
	} {
		t.Run(fault, func(t *testing.T) {
			m := failing(hidden(1, 8), fault)
			m.FaultAfter = c.after
			w, err := host.Start(t.Context(), host.Spec{Path: exe, Args: []string{"--engine-lib", lib, "--cache-dir", t.TempDir()}})
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close(t.Context())
			load := packaged(t, m)
			loaded, err := w.Load(t.Context(), host.LoadRequest{Path: load.ArtifactPath, Digest: load.ArtifactDigest, Format: load.Format})
			if err == nil {
				_, err = w.Embed(t.Context(), host.EmbedRequest{Model: loaded.Ref, Rows: [][]int32{ids(3, 1)}})
			}
			var crash *host.EngineCrashed
			if !errors.As(err, &crash) || crash.Stage != c.stage || crash.Signal != c.signal || !strings.Contains(crash.LogTail, c.log) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// A load that Core ML never finishes is ended by the module's going away.
func TestHangEndsWithTheModule(t *testing.T) {
	p := spawn(t)
	p.Send(packaged(t, failing(hidden(1, 8), "load_hang")))
	p.Conn.Close()
	if got := p.Exit(); got != protocol.ExitIO {
		t.Errorf("exit status %d", got)
	}
}

// The worker keeps every rule of the wire that a worker in any language is held
// to.
func TestConformance(t *testing.T) {
	load := packaged(t, hidden(1, 64))
	r, err := conformance.Run(t.Context(), conformance.Options{
		Worker:   wiretest.Build(t, "cmd/worker-ane"),
		Args:     []string{"--engine-lib", stubcoreml.Dir(t), "--cache-dir", t.TempDir()},
		Artifact: &conformance.Artifact{Path: load.ArtifactPath, Digest: load.ArtifactDigest, Format: load.Format},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, out := range r.Outcomes {
		if out.Verdict == conformance.Broken {
			t.Errorf("%s: %s\n%s", out.Name, out.Detail, out.LogTail)
		}
	}
	t.Logf("%d rules kept, %d broken, %d skipped", r.Count(conformance.Kept), r.Count(conformance.Broken), r.Count(conformance.Skipped))
	if kept := r.Count(conformance.Kept); kept < 40 {
		t.Errorf("%d rules kept, %d skipped", kept, r.Count(conformance.Skipped))
	}
}

// On Linux the worker says what it needs.
func TestWithoutCoreML(t *testing.T) {
	exe := wiretest.Build(t, "cmd/worker-ane")
	out, err := exec.Command(exe, "--version").CombinedOutput()
	var status *exec.ExitError
	if !errors.As(err, &status) || status.ExitCode() != protocol.ExitEngine || !strings.Contains(string(out), "run worker-ane on a Mac") {
		t.Errorf("%v: %s", err, out)
	}
	out, err = exec.Command(exe, "--version", "--engine-lib", stubcoreml.Dir(t)).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "macOS 15.1 (24B83)") {
		t.Errorf("%v: %s", err, out)
	}
}
