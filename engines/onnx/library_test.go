//go:build cgo && unix

package onnx

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/synapse-module/workers/workerkit"
)

// fakeLibrary stands for another build: it has the library's entry point and
// says the version.
const fakeLibrary = `
static const void *get_api(unsigned v) { return 0; }
static const char *get_version(void) { return VERSION; }
static const struct { const void *(*api)(unsigned); const char *(*version)(void); } base = { get_api, get_version };
const void *ENTRY(void) { return &base; }
`

// libraryDir makes a directory with a library of the version.
func libraryDir(t *testing.T, version, entry string) string {
	t.Helper()
	dir := t.TempDir()
	source := filepath.Join(dir, "fake.c")
	if err := os.WriteFile(source, []byte(fakeLibrary), 0o600); err != nil {
		t.Fatal(err)
	}
	compile := exec.Command("cc", "-shared", "-fPIC", "-o", filepath.Join(dir, libraryFile()), `-DVERSION="`+version+`"`, "-DENTRY="+entry, source)
	if out, err := compile.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return dir
}

func TestReport30_LibraryThatDoesNotFit(t *testing.T) {
	notALibrary := t.TempDir()
	if err := os.WriteFile(filepath.Join(notALibrary, libraryFile()), []byte("no library\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	empty := t.TempDir()
	older := libraryDir(t, "1.23.2", "OrtGetApiBase")
	newer := libraryDir(t, "1.31.1", "OrtGetApiBase") // with telemetry
	other := libraryDir(t, "1.24.4", "SomethingElse")
	for _, c := range []struct {
		name, dir string
		says      []string
	}{
		{"older", older, []string{filepath.Join(older, libraryFile()), "1.23.2", "1.24.4"}},
		{"newer", newer, []string{filepath.Join(newer, libraryFile()), "1.31.1", "1.24.4"}},
		{"another library", other, []string{filepath.Join(other, libraryFile()), "OrtGetApiBase"}},
		{"no library", notALibrary, []string{filepath.Join(notALibrary, libraryFile()), "1.24.4"}},
		{"missing", empty, []string{filepath.Join(empty, libraryFile()), "1.24.4"}},
		{"relative", "lib", []string{"absolute", `"lib"`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Open(workerkit.Setup{LibDir: c.dir})
			if err == nil {
				t.Fatal("it was opened")
			}
			for _, s := range c.says {
				if !strings.Contains(err.Error(), s) {
					t.Errorf("%q does not say %q", err, s)
				}
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("%q is more than one line", err)
			}
		})
	}
}
