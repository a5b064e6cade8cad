//go:build unix

package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func openTestRelease(t *testing.T) *release {
	t.Helper()
	r, err := openRelease("../..")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A worker that stands in cmd/ and not in goreleaser.yaml would be left out of
// every release without a word; so would its evidence.
func TestEveryWorkerIsReleasedAndProven(t *testing.T) {
	r := openTestRelease(t)
	dirs, err := filepath.Glob("../../cmd/worker-*")
	if err != nil || len(dirs) == 0 {
		t.Fatalf("%v, %v", dirs, err)
	}
	for _, dir := range dirs {
		name := filepath.Base(dir)
		if !slices.ContainsFunc(r.builds, func(b build) bool { return b.ID == name && b.Main == "./cmd/"+name }) {
			t.Errorf("%s is no build of %s", name, configName)
		}
		_, proven := evidences[name]
		if !proven && name != "worker-fake" && name != "worker-ane" { // no model to embed with; not on this system
			t.Errorf("%s has no evidence", name)
		}
	}
}

// The Makefile stages the libraries by a list of its own.
func TestTheMakefileKnowsEveryPlatformAndEngine(t *testing.T) {
	r := openTestRelease(t)
	text, err := os.ReadFile("release.mk")
	if err != nil {
		t.Fatal(err)
	}
	listed := func(variable string) []string {
		for line := range strings.Lines(string(text)) {
			if name, values, ok := strings.Cut(line, ":="); ok && strings.TrimSpace(name) == variable {
				return strings.Fields(values)
			}
		}
		t.Fatalf("release.mk has no %s", variable)
		return nil
	}
	var platforms, engines, built []string
	for _, p := range r.platforms() {
		platforms = append(platforms, strings.ReplaceAll(string(p), "/", "-"))
		for _, l := range r.libraries(p) {
			engines = append(engines, strings.TrimPrefix(l.dir, "lib/"))
		}
	}
	slices.Sort(engines)
	engines = slices.Compact(engines)
	if got := listed("RELEASE_PLATFORMS"); !slices.Equal(got, platforms) {
		t.Errorf("RELEASE_PLATFORMS are %v, %s builds for %v", got, configName, platforms)
	}
	for p := range r.built {
		built = append(built, strings.ReplaceAll(string(p), "/", "-"))
	}
	slices.Sort(built)
	if got := slices.Sorted(slices.Values(listed("RELEASE_BUILT"))); !slices.Equal(got, built) {
		t.Errorf("RELEASE_BUILT are %v, %s pins %v", got, builtSums, built)
	}
	got := listed("RELEASE_ENGINES")
	slices.Sort(got)
	if !slices.Equal(got, engines) {
		t.Errorf("RELEASE_ENGINES are %v, the lock has libraries of %v", got, engines)
	}
}

// fullLayout writes what an archive of the platform holds, with libraries of no
// content, and returns the names and the release that pins them.
func fullLayout(t *testing.T, p platform) (r *release, dir string, names []string) {
	t.Helper()
	r, dir = openTestRelease(t), t.TempDir()
	names = []string{"LICENSE", "README.md", "LICENSES/go/LICENSE"}
	for _, b := range r.commands(p) {
		names = append(names, p.exe(b.ID))
	}
	for _, l := range r.libraries(p) {
		for i, f := range l.Files {
			names = append(names, l.dir+"/"+f.Path)
			l.Files[i].SHA256 = sumOf(nil)
		}
	}
	for _, name := range names {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return r, dir, names
}

func TestLayout(t *testing.T) {
	const p = platform("linux/amd64")
	r, dir, names := fullLayout(t, p)
	if err := inspectLayout(r, p, dir, names); err != nil {
		t.Fatal(err)
	}
	without := func(name string) []string {
		return slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == name })
	}
	for name, c := range map[string]struct {
		names []string
		says  string
	}{
		"no worker":   {without("worker-onnx"), "lacks worker-onnx"},
		"no licences": {without("LICENSES/go/LICENSE"), "lacks LICENSES"},
		"a stray":     {append(slices.Clone(names), "notes.txt"), "holds notes.txt, which nothing asks for"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := inspectLayout(r, p, dir, c.names); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v does not say %q", err, c.says)
			}
		})
	}
	library := r.libraries(p)[0]
	changed := filepath.Join(dir, library.dir, library.Files[0].Path)
	if err := os.WriteFile(changed, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := inspectLayout(r, p, dir, names); err == nil || !strings.Contains(err.Error(), "the lock pins") {
		t.Errorf("a changed library: %v", err)
	}
}

func writeTar(t *testing.T, headers ...*tar.Header) string {
	t.Helper()
	var b bytes.Buffer
	gz := gzip.NewWriter(&b)
	w := tar.NewWriter(gz)
	for _, h := range headers {
		h.Size = int64(len(h.Name))
		if h.Typeflag != tar.TypeReg {
			h.Size = 0
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if h.Size > 0 {
			if _, err := w.Write([]byte(h.Name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := gz.Close(); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "a.tar.gz")
	if err := os.WriteFile(name, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestUnpack(t *testing.T) {
	dir := t.TempDir()
	exe := &tar.Header{Name: "bin", Mode: 0o755, Typeflag: tar.TypeReg}
	lib := &tar.Header{Name: "lib/x/a.so", Mode: 0o644, Typeflag: tar.TypeReg}
	names, err := unpack(writeTar(t, exe, lib), dir)
	if err != nil || !slices.Equal(names, []string{"bin", "lib/x/a.so"}) {
		t.Fatalf("%v, %v", names, err)
	}
	for name, want := range map[string]os.FileMode{"bin": readOnlyExe, "lib/x/a.so": readOnlyFile} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	if err := closeTree(dir); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(dir, "lib", "x")); err != nil || info.Mode().Perm() != readOnlyDir {
		t.Errorf("%v, %v", info, err)
	}
	if err := removeTree(dir); err != nil {
		t.Error(err)
	}
}

func TestUnpackRefuses(t *testing.T) {
	for name, h := range map[string]*tar.Header{
		"a way out": {Name: "../out", Mode: 0o644, Typeflag: tar.TypeReg},
		"a link":    {Name: "link", Linkname: "/etc/passwd", Typeflag: tar.TypeSymlink},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := unpack(writeTar(t, h), t.TempDir()); err == nil {
				t.Error("it was unpacked")
			}
		})
	}
}

func writeZip(t *testing.T, dir string, files map[string]string) string {
	t.Helper()
	name := filepath.Join(dir, "a.zip")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z := zip.NewWriter(f)
	for file, text := range files {
		w, err := z.Create(file)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestSameNamesWhatDiffers(t *testing.T) {
	a := writeZip(t, t.TempDir(), map[string]string{"worker": "one"})
	if err := same(a, writeZip(t, t.TempDir(), map[string]string{"worker": "one"})); err != nil {
		t.Error(err)
	}
	err := same(a, writeZip(t, t.TempDir(), map[string]string{"worker": "two"}))
	if err == nil || !strings.Contains(err.Error(), "[worker]") {
		t.Errorf("%v does not name the entry", err)
	}
}

func TestJudge(t *testing.T) {
	want := [][]float32{{1, 0}, {0, 1}}
	if _, err := judge([][]float32{{2, 0}, {0, 3}}, want, 0.99999); err != nil {
		t.Error(err) // length is no part of a cosine
	}
	nan := float32(math.NaN())
	for name, got := range map[string][][]float32{
		"swapped rows": {{0, 1}, {1, 0}},
		"one short":    {{1, 0}},
		"other dims":   {{1, 0}, {0, 1, 0}},
		"not a number": {{1, 0}, {0, nan}},
		"zeros":        {{1, 0}, {0, 0}},
	} {
		if s, err := judge(got, want, 0.99999); err == nil {
			t.Errorf("%s passed: %s", name, s)
		}
	}
}

func TestVersionLess(t *testing.T) {
	for _, c := range []struct {
		a, b string
		less bool
	}{
		{"", "2.17", true}, {"2.9", "2.34", true}, {"2.34", "2.34", false}, {"14.0", "13.6", false}, {"2.2.5", "2.17", true},
	} {
		if got := versionLess(c.a, c.b); got != c.less {
			t.Errorf("%q < %q is %v", c.a, c.b, got)
		}
	}
}

// Texts lie beside the programs and are none.
func TestTextsNeedNothing(t *testing.T) {
	text := filepath.Join(t.TempDir(), "LICENSE")
	if err := os.WriteFile(text, []byte(strings.Repeat("words ", 100)), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, p := range []platform{"linux/amd64", "darwin/arm64", "windows/amd64"} {
		if _, ok, err := needsOf(p, text); ok || err != nil {
			t.Errorf("%s: a text is taken for a program: %v, %v", p, ok, err)
		}
	}
}

// A program without cgo is static and has no symbols to import, which is no fault.
func TestStaticProgramsNeedNothing(t *testing.T) {
	exe := filepath.Join(t.TempDir(), "worker-fake")
	cmd := exec.Command("go", "build", "-o", exe, "github.com/synapse-module/workers/cmd/worker-fake")
	cmd.Env = append(os.Environ(), "GOOS=linux", "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	n, ok, err := elfNeeds(exe)
	if err != nil || !ok || len(n.libraries) > 0 || n.searchPath != "" || n.floor != "" {
		t.Errorf("%+v, %v, %v", n, ok, err)
	}
}

// Debug information is seen, since it is compressed and would hide the folders that
// it names.
func TestDebugInformationIsSeen(t *testing.T) {
	for name, c := range map[string]struct {
		p     platform
		strip string
		debug bool
	}{
		"linux with": {"linux/amd64", "", true}, "linux without": {"linux/amd64", "-s -w", false},
		"macOS with": {"darwin/arm64", "", true}, "macOS without": {"darwin/arm64", "-s -w", false},
		"windows with": {"windows/amd64", "", true}, "windows without": {"windows/amd64", "-s -w", false},
	} {
		t.Run(name, func(t *testing.T) {
			exe := filepath.Join(t.TempDir(), c.p.exe("hello"))
			cmd := exec.Command("go", "build", "-o", exe, "-ldflags", c.strip, "github.com/synapse-module/workers/tools/release/testdata/hello")
			cmd.Env = append(os.Environ(), "GOOS="+c.p.os(), "GOARCH="+c.p.arch(), "CGO_ENABLED=0")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			n, ok, err := needsOf(c.p, exe)
			if err != nil || !ok || n.debug != c.debug {
				t.Errorf("%+v, %v, %v", n, ok, err)
			}
		})
	}
}
