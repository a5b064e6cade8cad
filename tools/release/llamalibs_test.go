//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestBuiltLlama(t *testing.T) {
	sum := strings.Repeat("a", 64)
	source := sum + "  llama_cpp_python-0.3.36.tar.gz\n"
	read := func(text string) (*release, error) {
		file := filepath.Join(t.TempDir(), "SHA256SUMS")
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		built, err := builtLlama(file)
		return &release{built: built}, err
	}
	r, err := read(source + sum + "  linux-arm64/libggml-cpu-armv8.0_1.so\n" + sum + "  windows-amd64/llama.dll\n")
	if err != nil {
		t.Fatal(err)
	}
	a := r.built["linux/arm64"]
	if a == nil || a.Name != "llama-linux-arm64" || a.Licence != builtLicence || len(a.Files) != 1 || a.Files[0].Path != "libggml-cpu-armv8.0_1.so" || a.Files[0].SHA256 != sum {
		t.Errorf("linux/arm64: %+v", a)
	}
	if w := r.built["windows/amd64"]; w == nil || w.Licence != builtLicenceWindows {
		t.Errorf("windows/amd64: %+v", w)
	}
	url, err := packageURL(a.Package)
	if err != nil || url != "pkg:pypi/llama-cpp-python@0.3.36" || a.Package.SHA256 != sum {
		t.Errorf("%s, %v, %+v", url, err, a.Package)
	}
	for name, text := range map[string]string{
		"no sources":        sum + "  linux-arm64/libllama.so\n",
		"a folder too deep": source + sum + "  linux-arm64/lib/libllama.so\n",
		"a way out":         source + sum + "  ../libllama.so\n",
		"a short digest":    source + "aa  linux-arm64/libllama.so\n",
		"another archive":   sum + "  something-1.0.tar.gz\n",
	} {
		if _, err := read(text); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

// An archive whose llama.cpp is built names no library that the lock has in its place.
func TestWhatIsBuiltStandsForWhatIsFetched(t *testing.T) {
	r := openTestRelease(t)
	for _, p := range r.platforms() {
		for _, l := range r.libraries(p) {
			if l.dir != "lib/"+builtEngine {
				continue
			}
			if fetched := l.Package.Client == "npm"; fetched != (r.built[p] == nil) {
				t.Errorf("%s has llama.cpp of the package %s %s", p, l.Package.Name, l.Package.Version)
			}
		}
	}
}
