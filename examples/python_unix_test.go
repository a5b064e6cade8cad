//go:build unix

// Python's standard library cannot serve a named pipe, so its module is not for
// Windows.

package examples_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/synapse-module/workers/engines/fake"
	"github.com/synapse-module/workers/internal/assetstest"
	"github.com/synapse-module/workers/internal/wiretest"
)

func python(t *testing.T, script string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("python3", append([]string{"-B", filepath.Join("python-module", script)}, args...)...)
	// What a module leaves behind is seen here. The name is short because a socket's path must be.
	tmp, err := os.MkdirTemp("", "ex")
	if err != nil {
		t.Fatal(err)
	}
	cmd.Env = append(os.Environ(), "TMPDIR="+tmp)
	t.Cleanup(func() {
		left, err := os.ReadDir(tmp)
		if err != nil || len(left) != 0 {
			t.Errorf("left behind in the temporary directory: %v, %v", left, err)
		}
		os.RemoveAll(tmp)
	})
	return cmd
}

func TestPythonSurvivesItsWorkers(t *testing.T) {
	out := output(t, python(t, "survive.py", wiretest.Build(t, "cmd/worker-fake"), fakeModel(t)))
	type step struct {
		Step, Engine, Code, Message, Stage, Cause, Last string
		Vectors                                         [][]float64
		Models, Status, Tail                            int
	}
	var steps []step
	for line := range bytes.Lines(out) {
		var s step
		if err := json.Unmarshal(line, &s); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		steps = append(steps, s)
	}
	var names []string
	for _, s := range steps {
		names = append(names, s.Step)
	}
	if got, want := strings.Join(names, ", "), "started, embedded, refused, served on, crashed, gone, crashed, embedded, closed"; got != want {
		t.Fatalf("the steps were %s, want %s", got, want)
	}
	for _, i := range []int{1, 7} { // before everything went wrong, and after
		if len(steps[i].Vectors) != 2 {
			t.Fatalf("%d vectors", len(steps[i].Vectors))
		}
		near(t, steps[i].Vectors[0], expected(11, 72, 12), 1e-6)
		near(t, steps[i].Vectors[1], expected(11, 28, 12, 9), 1e-6)
	}
	if s := steps[2]; s.Code != "request_invalid" || !strings.Contains(s.Message, "has 3 tokens, this model takes at most 2") {
		t.Errorf("refused: %+v", s)
	}
	if s := steps[3]; s.Models != 2 {
		t.Errorf("served on: %+v", s)
	}
	// Outside of Linux the Go runtime turns the fake engine's signal into an exit.
	cause := "signal"
	if runtime.GOOS != "linux" {
		cause = "exit"
	}
	if s := steps[4]; s.Stage != "embed" || s.Cause != cause || s.Tail > 8<<10 || (cause == "signal" && s.Last != fake.LastWords) {
		t.Errorf("crashed: %+v", s)
	}
	if s := steps[6]; s.Stage != "embed" || s.Cause != "timeout" || s.Status != -9 {
		t.Errorf("timed out: %+v", s)
	}
	if s := steps[8]; s.Status != 0 {
		t.Errorf("closed: %+v", s)
	}
}

// Two modules in two languages get the vector that others publish for "Hello
// World" (Anush008/fastembed-go#12).
func TestModulesEmbedHelloWorld(t *testing.T) {
	want := []float64{-0.034477, 0.031023, 0.006735, 0.026109, -0.039362, -0.160302}
	worker := workerONNX(t)
	model := assetstest.Path(t, "minilm-onnx-f32")
	const ids, config = "101,7592,2088,102", `{"pooling":"mean"}`
	for name, cmd := range map[string]*exec.Cmd{
		"python": python(t, "embed.py", worker, model, "onnx", ids, "--config", config),
		"go":     exec.Command(wiretest.Build(t, "examples/go-module"), worker, model, "onnx", config, ids),
	} {
		t.Run(name, func(t *testing.T) {
			var got []float64
			if err := json.Unmarshal(output(t, cmd), &got); err != nil {
				t.Fatal(err)
			}
			near(t, got, want, 2e-6)
		})
	}
}

// workerONNX lies as it does in a release: its library beside it.
func workerONNX(t *testing.T) string {
	t.Helper()
	exe := wiretest.Build(t, "cmd/worker-onnx")
	lib := filepath.Join(filepath.Dir(exe), "lib")
	if err := os.MkdirAll(lib, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(assetstest.LibDir(t, "onnxruntime"), filepath.Join(lib, "onnxruntime")); err != nil && !os.IsExist(err) {
		t.Fatal(err)
	}
	return exe
}
