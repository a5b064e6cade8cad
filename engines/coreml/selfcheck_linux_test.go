package coreml

import (
	"bytes"
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/synapse-module/workers/engines/coreml/internal/stubcoreml"
	"github.com/synapse-module/workers/internal/wiretest"
	"github.com/synapse-module/workers/protocol"
)

// selfcheck runs the command over the stub.
func selfcheck(t *testing.T, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	args = append([]string{"selfcheck", "--engine-lib", stubcoreml.Dir(t), "--cache-dir", t.TempDir()}, args...)
	cmd := exec.Command(wiretest.Build(t, "cmd/worker-ane"), args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// checked is a package of two buckets with a golden row and a plan.
func checked(t *testing.T) string {
	row := ids(5, 1)
	m := planned(twoBuckets(goldenRows(t, golden{IDs: row, Vector: meanOf(row)})), onEngine, onEngine, onEngine, onCPU)
	return stubcoreml.WritePackage(t, t.TempDir(), "m.mlpackage", m)
}

func TestSelfCheckJSON(t *testing.T) {
	path := checked(t)
	out, stderr, status := selfcheck(t, "--json", path)
	var r SelfReport
	if err := json.Unmarshal([]byte(out), &r, json.RejectUnknownMembers(true)); err != nil || status != protocol.ExitOK {
		t.Fatalf("status %d, %v\n%s%s", status, err, out, stderr)
	}
	if r.MacOS != "15.1" || r.Build != "24B83" || r.Messages < 70 || len(r.Devices) != 2 || r.Devices[1] != (DeviceReport{"neural_engine", 16}) || len(r.Failures) != 0 {
		t.Errorf("the system is %+v", r)
	}
	m := r.Model
	if m == nil || m.Arch != "bert" || m.Dims != 6 || m.MaxTokens != 16 || m.FirstLoadMS <= 0 || m.SecondLoadMS <= 0 || m.Placement == nil || m.Placement.Share != 0.75 {
		t.Fatalf("the model is %+v", m)
	}
	for i, b := range m.Buckets {
		if b.Rows != 1 || b.Tokens != []int{8, 16}[i] || b.GoldenRows != 1 || b.Worst == nil || *b.Worst < 0.999 || b.WorstKind != "cosine" || b.MedianMS <= 0 || b.CPUOnlyMS <= 0 || b.Speedup <= 0 {
			t.Errorf("bucket %d is %+v", i, b)
		}
	}
	if len(m.Buckets) != 2 {
		t.Errorf("%d buckets", len(m.Buckets))
	}
	if _, stderr, status := selfcheck(t, "--digest", string(m.Digest), path); status != protocol.ExitOK {
		t.Errorf("with its digest: status %d: %s", status, stderr)
	}
}

func TestSelfCheckText(t *testing.T) {
	out, _, status := selfcheck(t, checked(t))
	for _, want := range []string{
		"macOS 15.1 (24B83), stub", "device neural_engine, 16 cores", "sha256-tree:",
		"planned on the Neural Engine: 75.0 % (3 of 4 operations; GPU 0, CPU 1, unknown 0), coverage 100.0 %",
		"off it: ios16.gather", "1×16", "cosine 1.000000", "all is well",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the text does not say %q:\n%s", want, out)
		}
	}
	if status != protocol.ExitOK {
		t.Errorf("status %d", status)
	}
	if out, _, status := selfcheck(t); status != protocol.ExitOK || !strings.Contains(out, "all is well") || strings.Contains(out, "bucket") {
		t.Errorf("of the system alone: status %d:\n%s", status, out)
	}
}

// In a virtual machine only the CPU may be asked for.
func TestSelfCheckOnTheCPU(t *testing.T) {
	out, _, status := selfcheck(t, "--compute-units", "cpu_only", checked(t))
	if status != protocol.ExitOK || !strings.Contains(out, "placement unknown: the compute units leave the Neural Engine out") {
		t.Errorf("status %d:\n%s", status, out)
	}
}

func TestSelfCheckFails(t *testing.T) {
	row := ids(5, 1)
	wrong := stubcoreml.WritePackage(t, t.TempDir(), "m.mlpackage", twoBuckets(goldenRows(t, golden{IDs: row, Vector: meanOf(ids(5, 9))})))
	for name, c := range map[string]struct {
		args   []string
		says   string
		status int
	}{
		"a golden row":   {[]string{wrong}, "golden row 0 fails in the bucket 1×8", protocol.ExitEngine},
		"another digest": {[]string{"--digest", "sha256-tree:00", wrong}, "wanted is sha256-tree:00", protocol.ExitEngine},
		"no artifact":    {[]string{wrong + "-not"}, "no such file", protocol.ExitEngine},
		"as JSON":        {[]string{"--json", wrong}, `"artifact_invalid: golden row 0 fails`, protocol.ExitEngine},
		"another format": {[]string{"--format", "gguf", wrong}, "--format must be one of", protocol.ExitUsage},
	} {
		t.Run(name, func(t *testing.T) {
			out, stderr, status := selfcheck(t, c.args...)
			if status != c.status || !strings.Contains(out+stderr, c.says) {
				t.Errorf("status %d, wanted %d and %q:\n%s%s", status, c.status, c.says, out, stderr)
			}
		})
	}
}
