package buildinfo_test

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const pkg = "github.com/synapse-module/workers/internal/buildinfo"

// stamped builds a command as a release does.
func stamped(t *testing.T, name string) string {
	t.Helper()
	exe := filepath.Join(t.TempDir(), name)
	build := exec.Command("go", "build", "-o", exe, "-ldflags", "-X "+pkg+".version=1.2.3 -X "+pkg+".commit=0123abcd",
		"github.com/synapse-module/workers/cmd/"+name)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return exe
}

// The linker ignores a -X of a variable that does not exist, so a stamp can be
// lost without a word.
func TestReleaseIsStamped(t *testing.T) {
	out, err := exec.Command(stamped(t, "worker-fake"), "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	var got struct{ Version, Commit string }
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatal(err)
	}
	if got.Version != "1.2.3" || got.Commit != "0123abcd" {
		t.Errorf("worker-fake --version: %s", out)
	}
	out, err = exec.Command(stamped(t, "certify"), "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	if strings.TrimSpace(string(out)) != "1.2.3 (0123abcd)" {
		t.Errorf("certify --version: %s", out)
	}
}
