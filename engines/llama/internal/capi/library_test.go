package capi

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/synapse-module/workers/internal/assetstest"
)

// opened is the process's one library and what it logged while it was opened.
var opened struct {
	once sync.Once
	lib  *Library
	err  error
	mu   sync.Mutex
	log  []string
}

func openLibrary(t *testing.T) *Library {
	t.Helper()
	dir := assetstest.LibDir(t, "llama")
	opened.once.Do(func() {
		opened.lib, opened.err = Open(dir, func(l Level, line string) {
			opened.mu.Lock()
			defer opened.mu.Unlock()
			opened.log = append(opened.log, fmt.Sprintf("%d %s", l, line))
		})
	})
	if opened.err != nil {
		t.Fatal(opened.err)
	}
	return opened.lib
}

func TestOpenNamesWhatIsInForce(t *testing.T) {
	l := openLibrary(t)
	if !slices.Contains(Versions, l.LlamaCPP) || l.GGML == "" {
		t.Errorf("llama.cpp %q, ggml %q", l.LlamaCPP, l.GGML)
	}
	if !slices.Contains(l.Backends, "CPU") || len(l.Features) == 0 {
		t.Errorf("backends %v, features %v", l.Backends, l.Features)
	}
	chosen := filepath.Join(l.Dir, names.prefix+"ggml-cpu-"+l.Variant+names.module)
	if _, err := os.Stat(chosen); err != nil {
		t.Errorf("the variant %q is no file: %v", l.Variant, err)
	}
	opened.mu.Lock()
	defer opened.mu.Unlock()
	if !slices.ContainsFunc(opened.log, func(s string) bool { return strings.Contains(s, chosen) }) {
		t.Errorf("llama.cpp's log does not name %s: %q", chosen, opened.log)
	}
	if os.Getenv("GGML_NO_BACKTRACE") != "1" {
		t.Error("GGML_NO_BACKTRACE is not set")
	}
}

func TestOpenRefusesADirectoryThatHasNoLibrary(t *testing.T) {
	empty := t.TempDir()
	for dir, want := range map[string]string{
		"lib":                          "not absolute",
		empty:                          "holds no",
		filepath.Join(empty, "absent"): "read the library directory",
	} {
		if _, err := Open(dir, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", dir, err, want)
		}
	}
}

func TestOpenRefusesTwoBuildsSideBySide(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"ggml-base", "ggml-base.v0.4.0"} {
		if err := os.WriteFile(filepath.Join(dir, names.prefix+name+names.suffix), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Open(dir, nil); err == nil || !strings.Contains(err.Error(), "several builds of ggml-base") {
		t.Errorf("got %v", err)
	}
}

func TestOpenRefusesAnotherVersionBeforeUsingIt(t *testing.T) {
	dir := t.TempDir()
	for _, lib := range []string{"ggml-base", "ggml", "llama"} {
		source := "int present;"
		if lib == "llama" {
			source = `const char * llama_version(void) { return "9.9.9"; }`
		}
		compile(t, filepath.Join(dir, names.prefix+lib+names.suffix), source)
	}
	_, err := Open(dir, nil)
	for _, want := range []string{dir, `"9.9.9"`, Versions[0]} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want it to say %s", err, want)
		}
	}
}

// compile makes a shared library out of C.
func compile(t *testing.T, path, source string) {
	t.Helper()
	cmd := exec.Command("cc", "-shared", "-fPIC", "-o", path, "-x", "c", "-")
	cmd.Stdin = strings.NewReader(source)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("cc: %v\n%s", err, out)
	}
}

func TestALayoutShiftedByOneFieldIsSeen(t *testing.T) {
	l := openLibrary(t)
	m, c := l.ModelDefaultParams(), l.ContextDefaultParams()
	if err := checkLayout(m, c); err != nil {
		t.Fatal(err)
	}
	// What a library without the field defrag_thold would look like from here on.
	c.DefragThold, c.TypeK, c.TypeV = 0, 0, TypeF16
	if err := checkLayout(m, c); err == nil || !strings.Contains(err.Error(), "llama_context_params") {
		t.Errorf("got %v", err)
	}
}

func TestTheLogIsPutTogetherFromPieces(t *testing.T) {
	var got []string
	s := logSink{emit: func(l Level, line string) { got = append(got, fmt.Sprintf("%d %s", l, line)) }}
	s.write(LevelInfo, []byte("one"))
	s.write(levelContinue, []byte(" and a half\ntwo\n"))
	s.write(LevelError, []byte("lost its newline"))
	s.write(LevelWarn, []byte(strings.Repeat("x", 2*maxLogLine)+"\n"))
	want := []string{"2 one and a half", "2 two", "4 lost its newline", "3 " + strings.Repeat("x", maxLogLine)}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}
