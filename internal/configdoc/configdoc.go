// Package configdoc holds docs/configuration.md to the tables that decode
// runtime_config: each engine's tests call [Check] for its section.
package configdoc

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/synapse-module/workers/workerkit"
)

// UpdateVariable is the environment variable that has [Check] write the section
// instead of comparing it; `make docs` sets it.
const UpdateVariable = "SYNAPSE_UPDATE_DOCS"

// Check fails the test where the engine's section is not what its table says.
// options is called more than once, since a default may depend on the machine.
func Check(t *testing.T, engine string, options func() []workerkit.Option) {
	t.Helper()
	path, err := docPath()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := string(raw)
	begin, end := fmt.Sprintf("<!-- begin %s: written by make docs -->\n", engine), fmt.Sprintf("<!-- end %s -->\n", engine)
	before, rest, ok := strings.Cut(text, begin)
	got, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no lines %q and %q: put them where the table is to stand", path, begin, end)
	}
	want := table(options)
	if got == want {
		return
	}
	if os.Getenv(UpdateVariable) == "" {
		t.Fatalf("the section of %s in %s is not what the engine's table says: run `make docs`\n--- it should be\n%s", engine, path, want)
	}
	if err := os.WriteFile(path, []byte(before+begin+want+end+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

// docPath finds the document from the directory of the package under test.
func docPath() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return filepath.Join(dir, "docs", "configuration.md"), nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("no go.mod above the working directory")
		}
	}
}

func table(options func() []workerkit.Option) string {
	var b strings.Builder
	b.WriteString("| member | values | default | what it does |\n| --- | --- | --- | --- |\n")
	one, other := withCPUs(1, options), withCPUs(2, options)
	for i, o := range one {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", o.Name, cell(o.Allowed()), defaultOf(o, other[i]), cell(o.Help))
	}
	return b.String()
}

// withCPUs makes the table as on a machine with so many CPUs for this process.
func withCPUs(n int, options func() []workerkit.Option) []workerkit.Option {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(n))
	return options()
}

// defaultOf is an option's default in words; the two are of different machines.
func defaultOf(a, b workerkit.Option) string {
	switch {
	case a.Default == nil:
		return "absent"
	case !reflect.DeepEqual(a.Default, b.Default):
		return "the machine's"
	}
	raw, err := json.Marshal(a.Default)
	if err != nil {
		return fmt.Sprint(a.Default)
	}
	return "`" + string(raw) + "`"
}

func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }
