// Package examples_test runs the example modules against real workers.
package examples_test

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/synapse-module/workers/engines/fake"
	"github.com/synapse-module/workers/internal/wiretest"
)

// output runs a program that must succeed.
func output(t *testing.T, cmd *exec.Cmd) []byte {
	t.Helper()
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s%s", cmd.Args, err, out, stderr.String())
	}
	return out
}

func fakeModel(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "model.fake")
	if err := os.WriteFile(path, []byte(fake.Magic+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// expected is what the fake engine gives for a row, by its own definition.
func expected(row ...int32) []float64 {
	v := make([]float64, 8)
	norm := 0.0
	for j := range v {
		for _, id := range row {
			v[j] += fake.State(id, j) / float64(len(row))
		}
		norm += v[j] * v[j]
	}
	for j := range v {
		v[j] /= math.Sqrt(norm)
	}
	return v
}

func near(t *testing.T, got, want []float64, tolerance float64) {
	t.Helper()
	if len(got) < len(want) {
		t.Fatalf("%d values, want at least %d", len(got), len(want))
	}
	for i, w := range want {
		if math.Abs(got[i]-w) > tolerance {
			t.Fatalf("begins %v, want %v", got[:len(want)], want)
		}
	}
}

func TestGoModuleExplainsItsErrors(t *testing.T) {
	module, worker, model := wiretest.Build(t, "examples/go-module"), wiretest.Build(t, "cmd/worker-fake"), fakeModel(t)
	for _, c := range []struct{ name, worker, config, says string }{
		{"refusal", worker, `{"dims":0}`, "the request is at fault, a second try is of no use: config_invalid"},
		{"crash", worker, `{"fault":"exit"}`, "the engine cannot do this here: engine crashed in stage embed, cause exit"},
		{"no worker", worker + "-missing", `{}`, "the installation is at fault: no worker can be started"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			out, err := exec.Command(module, c.worker, model, "fake", c.config, "1,2,3").CombinedOutput()
			if err == nil || !strings.Contains(string(out), c.says) {
				t.Errorf("%v, and it does not say %q:\n%s", err, c.says, out)
			}
		})
	}
}

func TestGoModuleEmbeds(t *testing.T) {
	cmd := exec.Command(wiretest.Build(t, "examples/go-module"), wiretest.Build(t, "cmd/worker-fake"), fakeModel(t), "fake", "{}", "1,2,3")
	var got []float64
	if err := json.Unmarshal(output(t, cmd), &got); err != nil {
		t.Fatal(err)
	}
	near(t, got, expected(1, 2, 3), 1e-6)
}

// Where the module wants certificates, what has none is not loaded.
func TestGoModuleWantsCertificates(t *testing.T) {
	key := filepath.Join(t.TempDir(), "key.pem")
	const public = "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n-----END PUBLIC KEY-----\n" // RFC 8410, section 10.1
	if err := os.WriteFile(key, []byte(public), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(wiretest.Build(t, "examples/go-module"), wiretest.Build(t, "cmd/worker-fake"), fakeModel(t), "fake", "{}", "1,2,3")
	cmd.Env = append(os.Environ(), "SYNAPSE_CERTIFICATES="+t.TempDir(), "SYNAPSE_KEY="+key)
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "nobody has certified this here: ") || !strings.Contains(string(out), "certify run SUITE --worker") {
		t.Errorf("%v:\n%s", err, out)
	}
}
