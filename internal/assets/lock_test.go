package assets_test

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/synapse-module/workers/internal/assets"
)

// goodLock is a lock with one asset of each sort.
const goodLock = `version: 1
assets:
  - name: lib
    version: "1"
    licence: MIT
    platform: linux/amd64
    main: lib.so
    fits: {module: example.org/binding, version: v1.0.0}
    package:
      client: pip
      name: lib
      version: "1"
      platform: manylinux_2_27_x86_64
      file: lib-1.whl
      size: 10
      sha256: a000000000000000000000000000000000000000000000000000000000000001
    files:
      - {path: lib.so, from: a/lib.so, kind: library, sha256: a000000000000000000000000000000000000000000000000000000000000002}
      - {path: doc/LICENSE, from: LICENSE, kind: licence, sha256: a000000000000000000000000000000000000000000000000000000000000003}
  - name: made
    version: "1"
    licence: MIT
    main: model.mlpackage
    made: {script: tools/t/make.py, requirements: tools/t/requirements.txt, args: [--q8], inputs: [lib]}
    files:
      - {path: model.mlpackage/Manifest.json, kind: model, sha256: a000000000000000000000000000000000000000000000000000000000000004}
`

func loadText(t *testing.T, text string) error {
	t.Helper()
	name := filepath.Join(t.TempDir(), assets.LockName)
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := assets.LoadLock(name)
	if err != nil && !strings.HasPrefix(err.Error(), name+": ") {
		t.Errorf("error does not begin with the file's name: %v", err)
	}
	return err
}

func TestGoodLock(t *testing.T) {
	if err := loadText(t, goodLock); err != nil {
		t.Fatal(err)
	}
}

// Each fault is one edit of the good lock, and its error names the field.
func TestLockFaultsAreNamed(t *testing.T) {
	for name, c := range map[string]struct{ old, new, want string }{
		"unknown key":         {"    licence: MIT\n    platform", "    license: MIT\n    platform", `unknown field "license"`},
		"unknown file key":    {"from: LICENSE,", "source: LICENSE,", `unknown field "source"`},
		"duplicated key":      {"    main: lib.so\n", "    main: lib.so\n    main: lib.so\n", `"main" already defined`},
		"wrong type":          {"size: 10", "size: ten", "[15:13] cannot unmarshal string"},
		"version as number":   {"version: \"1\"\n    licence: MIT\n    main", "version: 1.10\n    licence: MIT\n    main", "[21:14] version: 1.10 is not a string, quote it"},
		"second document":     {"version: 1\nassets", "version: 1\n---\nversion: 1\nassets", "second document"},
		"empty":               {goodLock, "", "the file is empty"},
		"version of format":   {"version: 1\nassets", "version: 2\nassets", "version: this tool reads 1, the file says 2"},
		"nameless":            {"- name: lib\n", "- name: \"\"\n", "asset number 1: name"},
		"hidden name":         {"- name: lib\n", "- name: .lib\n", "asset .lib: name"},
		"name with a slash":   {"- name: lib\n", "- name: a/b\n", "asset a/b: name"},
		"name twice":          {"- name: made", "- name: lib", "asset lib: name: stands twice"},
		"no version":          {"    version: \"1\"\n    licence: MIT\n    platform", "    licence: MIT\n    platform", "asset lib: version: missing"},
		"no licence":          {"    licence: MIT\n    platform", "    platform", "asset lib: licence: missing"},
		"platform":            {"linux/amd64", "linux", `asset lib: platform: "linux" is not GOOS/GOARCH`},
		"library everywhere":  {"    platform: linux/amd64\n", "", "asset lib: platform: missing"},
		"library fits nobody": {"    fits: {module: example.org/binding, version: v1.0.0}\n", "", "asset lib: fits: missing"},
		"fits no version":     {", version: v1.0.0}", "}", "asset lib: fits: missing"},
		"main is no file":     {"main: lib.so", "main: lib", `asset lib: main: "lib"`},
		"no source":           {"    made: {script", "    # made: {script", "asset made: package, made: one of the two"},
		"client":              {"client: pip", "client: curl", `asset lib: package.client: "curl"`},
		"option as a name":    {"      name: lib\n", "      name: --index-url=x\n", "asset lib: package.name"},
		"option as a version": {"      version: \"1\"\n", "      version: \"-1\"\n", "asset lib: package.version"},
		"package in a folder": {"file: lib-1.whl", "file: a/lib-1.whl", "asset lib: package.file"},
		"unknown archive":     {"file: lib-1.whl", "file: lib-1.rar", "asset lib: package.file"},
		"no size":             {"      size: 10\n", "", "asset lib: package.size: missing"},
		"package digest":      {"sha256: a000000000000000000000000000000000000000000000000000000000000001", "sha256: 01", "asset lib: package.sha256"},
		"file digest":         {"a000000000000000000000000000000000000000000000000000000000000003", strings.Repeat("G", 64), "asset lib: files[1].sha256"},
		"kind":                {"kind: licence", "kind: license", "asset lib: files[1].kind"},
		"path out of asset":   {"path: doc/LICENSE", "path: ../LICENSE", `asset lib: files[1].path: "../LICENSE"`},
		"absolute path":       {"path: doc/LICENSE", "path: /LICENSE", "asset lib: files[1].path"},
		"windows path":        {"path: doc/LICENSE", `path: 'C:\LICENSE'`, "asset lib: files[1].path"},
		"path twice":          {"path: doc/LICENSE", "path: lib.so", "asset lib: files[1].path"},
		"from out of package": {"from: LICENSE", "from: a/../../LICENSE", "asset lib: files[1].from"},
		"from twice":          {"from: LICENSE", "from: a/lib.so", "asset lib: files[1].from"},
		"from of a made file": {"{path: model.mlpackage", "{from: x, path: model.mlpackage", "asset made: files[0].from"},
		"script outside":      {"script: tools", "script: ../tools", "asset made: made.script"},
		"requirements":        {"requirements: tools/t/requirements.txt, ", "", "asset made: made.requirements"},
		"unknown input":       {"inputs: [lib]", "inputs: [nosuch]", `asset made: made.inputs: "nosuch" does not stand before`},
		"input of itself":     {"inputs: [lib]", "inputs: [made]", "asset made: made.inputs"},
	} {
		t.Run(name, func(t *testing.T) {
			if strings.Count(goodLock, c.old) == 0 {
				t.Fatalf("%q is not in the good lock", c.old)
			}
			err := loadText(t, strings.Replace(goodLock, c.old, c.new, 1))
			if err == nil {
				t.Fatal("accepted")
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("got  %v\nwant ... %s", err, c.want)
			}
		})
	}
}

// The lock of this repository decodes, its pairs are those of go.mod, and every
// script that it names is there.
func TestLockOfRepository(t *testing.T) {
	store, err := assets.Open(".", assets.NewProgress(io.Discard))
	if err != nil {
		t.Fatal(err)
	}
	list, err := store.List()
	if err != nil {
		t.Fatal(err)
	}
	if len(list) == 0 {
		t.Fatal("no assets")
	}
}
