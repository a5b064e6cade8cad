//go:build unix

package conformance

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/synapse-module/workers/protocol"
)

// pythonWorker makes an executable of testdata/worker.py, changed by pairs of
// old and new text, and a model for it.
func pythonWorker(t *testing.T, change ...string) Options {
	t.Helper()
	python, err := exec.Command("python3", "-c", "import sys; print(sys.executable)").Output()
	if err != nil {
		t.Fatalf("python3 must be in PATH, at least 3.11: %v", err)
	}
	source, err := os.ReadFile("testdata/worker.py")
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(change); i += 2 {
		if !strings.Contains(string(source), change[i]) {
			t.Fatalf("worker.py does not hold %q", change[i])
		}
	}
	script := "#!" + strings.TrimSpace(string(python)) + "\n" + strings.NewReplacer(change...).Replace(string(source))
	dir := t.TempDir()
	o := Options{Worker: filepath.Join(dir, "worker"), Artifact: &Artifact{Path: filepath.Join(dir, "model"), Format: "toy"}}
	model := []byte("toy")
	sum := sha256.Sum256(model)
	o.Artifact.Digest = protocol.Digest("sha256:" + hex.EncodeToString(sum[:]))
	if err := os.WriteFile(o.Worker, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(o.Artifact.Path, model, 0o600); err != nil {
		t.Fatal(err)
	}
	return o
}

func outcomes(t *testing.T, o Options, verdict Verdict) []string {
	t.Helper()
	r, err := Run(t.Context(), o, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Outcomes) != len(Cases()) {
		t.Errorf("%d outcomes of %d cases", len(r.Outcomes), len(Cases()))
	}
	var found []string
	for _, out := range r.Outcomes {
		if out.Verdict == verdict {
			found = append(found, fmt.Sprintf("%s: %s\n%s", out.Name, out.Detail, out.LogTail))
		}
	}
	return found
}

// Another language's worker, written from the wire's description alone, keeps
// every rule.
func TestPythonWorkerKeepsEveryRule(t *testing.T) {
	o := pythonWorker(t)
	for _, b := range outcomes(t, o, Broken) {
		t.Error(b)
	}
	skipped := outcomes(t, o, Skipped)
	if len(skipped) != 2 || !strings.HasPrefix(skipped[0], "packed/loaded") || !strings.HasPrefix(skipped[1], "generate/grammar") {
		t.Errorf("skipped: %q; an encoder that unpacks nothing skips packed/loaded and generate/grammar alone", skipped)
	}
}

// A worker that breaks one rule breaks the case that states it.
func TestEachBrokenRuleIsFound(t *testing.T) {
	for _, c := range []struct {
		broken   string // the case that must find it
		old, new string
	}{
		{"handshake/hello", `"nonce": nonce`, `"nonce": nonce[::-1]`},
		{"handshake/hello", `os.getpid()`, `os.getppid()`},
		{"handshake/refused", `not ack.get("accept", bool) or`, ``},
		{"handshake/early request", `raise Violation(f"{ack.type[:64]} where HELLO_ACK is due")`, `return False`},
		{"frames/one byte too large", `if length > self.limit:`, `if length > self.limit + 1:`},
		{"frames/no UTF-8", `payload.decode("utf-8")`, `payload.decode("latin-1")`},
		{"frames/two objects", `!= len(text)`, `> len(text)`},
		{"frames/half a frame", `raise Violation("the stream ended inside a frame's payload")`, `sys.exit(0)`},
		{"requests/req_id", `"req_id":{header.req_id}`, `"req_id":{json.dumps(json.loads(header.req_id))}`},
		{"requests/bad req_id", `<= 128`, `<= 129`},
		{"requests/doubled member", `if len(values) != 1 or`, `if not values or`},
		{"requests/raw frames of an unknown type", `announced[-1] if announced and not known else 0`, `0`},
		{"load/wrong digest", `if found != digest:`, `if False:`},
		{"load/unknown option", `runtime_config.{name}: `, ``},
		{"load/refs are never used twice", `self._loads += 1`, `self._loads = len(self._models) + 1`},
		{"load/describe", `dims=DIMS, max_tokens`, `dims=DIMS + 1, max_tokens`},
		{"packed/cut", `if model_format != "toy":`, `if not model_format.startswith("toy"):`},
		{"packed/hostile names", `if model_format != "toy":`, `if not model_format.startswith("toy"):`},
		{"embed/vectors", `for row in rows]`, `for row in reversed(rows)]`},
		{"embed/normalize", `if normalize and length else`, `if False else`},
		{"embed/raw frame too long", `if sum(lengths) != len(ids):`, `if sum(lengths) > len(ids):`},
		{"embed/token ids", `if not 0 <= i < VOCAB_SIZE:`, `if not -1 <= i < VOCAB_SIZE:`},
		{"embed/row lengths", `if not 1 <= length <= MAX_TOKENS:`, `if length > MAX_TOKENS:`},
		{"embed/max_tokens", `if not 1 <= length <= MAX_TOKENS:`, `if not 1 <= length:`},
		{"embed/answer too large", `* 4 > limit`, `* 4 > limit * 2`},
		{"rerank/scores", `raise Refusal("unsupported", "RERANK`, `raise Refusal("engine_failed", "RERANK`},
		{"end/shutdown", `            return
        try:`, `            raise Violation("asked to stop")
        try:`},
	} {
		t.Run(c.broken, func(t *testing.T) {
			t.Parallel()
			all := Cases()
			at := slices.IndexFunc(all, func(tried Case) bool { return tried.Name == c.broken })
			r := runner{o: pythonWorker(t, c.old, c.new)}
			r.o.Patience = 10 * time.Second // some wait for ever
			defer r.drop()
			if out := r.try(t.Context(), all[at]); out.Verdict != Broken || out.Detail == "" {
				t.Errorf("not found: %+v", out)
			} else {
				t.Log(out.Detail)
			}
		})
	}
}

func TestCaseNamesAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range Cases() {
		if seen[c.Name] || c.Rule == "" {
			t.Errorf("%q stands there twice or has no rule", c.Name)
		}
		seen[c.Name] = true
	}
}
