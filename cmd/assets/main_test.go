package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain makes the test binary stand for the tool and, on the PATH of the
// scripts, for the package clients: faults of an index cannot be had from the
// real ones on demand. That the real ones work is what `assets sync` shows.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"assets":  main,
		"python3": fakePython,
		"python":  fakePython,
		"npm":     fakeNPM,
		"mvn":     fakeMaven,
		"logged":  logged,
	})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(env *testscript.Env) error {
			tool, err := exec.LookPath("assets")
			if err != nil {
				return err
			}
			env.Setenv("ASSETS", tool) // for scripts that take the PATH away
			// The race detector's runtime sleeps a second at the end of each process.
			env.Setenv("GORACE", "atexit_sleep_ms=0")
			env.Setenv("FAKE_INDEX", filepath.Join(env.WorkDir, "index"))
			env.Setenv("FAKE_CALLS", filepath.Join(env.WorkDir, "calls"))
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"pack":  packCmd,
			"pin":   pinCmd,
			"flip":  flipCmd,
			"await": awaitCmd,
		},
	})
}

// packCmd is `pack ARCHIVE ENTRY=FILE...`: makes a zip or a gzipped tar. FILE
// can be `->` for a symbolic link.
func packCmd(ts *testscript.TestScript, _ bool, args []string) {
	var buf bytes.Buffer
	var add func(name, content string, mode os.FileMode) error
	var finish func() error
	if strings.HasSuffix(args[0], ".tgz") {
		gz := gzip.NewWriter(&buf)
		t := tar.NewWriter(gz)
		add = func(name, content string, mode os.FileMode) error {
			header := &tar.Header{Name: name, Mode: 0o644, Size: int64(len(content)), Typeflag: tar.TypeReg}
			if mode&os.ModeSymlink != 0 {
				header = &tar.Header{Name: name, Typeflag: tar.TypeSymlink, Linkname: content}
				content = ""
			}
			if err := t.WriteHeader(header); err != nil {
				return err
			}
			_, err := io.WriteString(t, content)
			return err
		}
		finish = func() error { ts.Check(t.Close()); return gz.Close() }
	} else {
		z := zip.NewWriter(&buf)
		add = func(name, content string, mode os.FileMode) error {
			header := &zip.FileHeader{Name: name, Method: zip.Deflate}
			header.SetMode(mode)
			w, err := z.CreateHeader(header)
			if err != nil {
				return err
			}
			_, err = io.WriteString(w, content)
			return err
		}
		finish = z.Close
	}
	for _, arg := range args[1:] {
		name, file, _ := strings.Cut(arg, "=")
		if file == "->" {
			ts.Check(add(name, "/etc/hostname", os.ModeSymlink|0o777))
			continue
		}
		ts.Check(add(name, ts.ReadFile(file), 0o644))
	}
	ts.Check(finish())
	target := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(filepath.Dir(target), 0o755))
	ts.Check(os.WriteFile(target, buf.Bytes(), 0o644))
}

var pinPattern = regexp.MustCompile(`(sha256|size)\((.*?)\)`)

// pinCmd is `pin TEMPLATE`: writes assets.lock with sha256(FILE) and size(FILE)
// filled in.
func pinCmd(ts *testscript.TestScript, _ bool, args []string) {
	text := pinPattern.ReplaceAllStringFunc(ts.ReadFile(args[0]), func(call string) string {
		m := pinPattern.FindStringSubmatch(call)
		content := ts.ReadFile(m[2])
		if m[1] == "size" {
			return fmt.Sprint(len(content))
		}
		return fmt.Sprintf("%x", sha256.Sum256([]byte(content)))
	})
	ts.Check(os.WriteFile(ts.MkAbs("assets.lock"), []byte(text), 0o644))
}

// logged is `logged FILE PROGRAM ARG...`: runs a program with its stderr in a
// file, where awaitCmd can follow it while it runs.
func logged() {
	w, err := os.Create(os.Args[1])
	check(err)
	cmd := exec.Command(os.Args[2], os.Args[3:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, w
	check(cmd.Run())
}

// awaitDeadline bounds a wait for something that does happen, however slowly.
const awaitDeadline = time.Minute

// awaitCmd is `await FILE TEXT`: waits until the file holds the text.
func awaitCmd(ts *testscript.TestScript, _ bool, args []string) {
	file := ts.MkAbs(args[0])
	for end := time.Now().Add(awaitDeadline); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if content, err := os.ReadFile(file); err == nil && strings.Contains(string(content), args[1]) {
			return
		}
	}
	ts.Fatalf("%s has no %q after %v", args[0], args[1], awaitDeadline)
}

// flipCmd is `flip FILE`: changes one byte of a read-only file.
func flipCmd(ts *testscript.TestScript, _ bool, args []string) {
	file := ts.MkAbs(args[0])
	content := []byte(ts.ReadFile(args[0]))
	content[len(content)/2] ^= 1
	ts.Check(os.Chmod(file, 0o644))
	ts.Check(os.WriteFile(file, content, 0o444))
}
