package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// The fakes serve packages out of FAKE_INDEX and note each call in FAKE_CALLS.
// FAKE_FAIL names a package that the index cannot deliver; FAKE_GATE a file
// without which a download does not end.

func fakePython() {
	args := os.Args[1:]
	switch {
	case args[0] == "-c", slices.Equal(args, []string{"-m", "pip", "--version"}):
	case args[0] == "-B":
		runScript(args[1:])
	case slices.Equal(args[:2], []string{"-m", "venv"}):
		note("venv")
		makeVenv(args[2])
	case slices.Equal(args[:3], []string{"-m", "pip", "install"}):
		note("pip install %s", filepath.Base(args[len(args)-1]))
	case slices.Equal(args[:3], []string{"-m", "pip", "download"}):
		name, version, _ := strings.Cut(args[len(args)-1], "==")
		dest := args[slices.Index(args, "--dest")+1]
		platform := "any"
		if i := slices.Index(args, "--platform"); i >= 0 {
			platform = args[i+1]
		}
		note("pip download %s %s", name, platform)
		serve(name, fmt.Sprintf("%s-%s-%s.whl", name, version, platform), dest)
	default:
		fail("fake python: unexpected %q", args)
	}
}

func fakeNPM() {
	args := os.Args[1:]
	if args[0] == "--version" {
		return
	}
	spec := args[len(args)-1]
	at := strings.LastIndex(spec, "@")
	note("npm pack %s", spec)
	file := strings.NewReplacer("@", "", "/", "-").Replace(spec[:at]) + "-" + spec[at+1:] + ".tgz"
	serve(spec[:at], file, args[slices.Index(args, "--pack-destination")+1])
}

func fakeMaven() {
	var artifact, dest string
	for _, arg := range os.Args[1:] {
		if arg == "--version" {
			return
		}
		if rest, ok := strings.CutPrefix(arg, "-Dartifact="); ok {
			artifact = rest
		}
		if rest, ok := strings.CutPrefix(arg, "-DoutputDirectory="); ok {
			dest = rest
		}
	}
	part := strings.Split(artifact, ":")
	note("mvn copy %s", part[1])
	serve(part[1], part[1]+"-"+part[2]+".jar", dest)
}

// runScript "runs" a script by writing its text to made.txt, after the text of
// the input that it is given; the argument --extra adds a file.
func runScript(args []string) {
	note("run %s", filepath.Base(args[0]))
	out := args[slices.Index(args, "--out")+1]
	text, err := os.ReadFile(args[0])
	check(err)
	input, err := os.ReadFile(filepath.Join(args[len(args)-1], "weights"))
	check(err)
	if strings.Contains(string(text), "raise") {
		fail("Traceback: the script raised")
	}
	check(os.WriteFile(filepath.Join(out, "made.txt"), append(input, text...), 0o644))
	if slices.Contains(args, "--extra") {
		check(os.WriteFile(filepath.Join(out, "extra.txt"), nil, 0o644))
	}
}

func makeVenv(dir string) {
	bin, name := "bin", "python"
	if runtime.GOOS == "windows" {
		bin, name = "Scripts", "python.exe"
	}
	check(os.MkdirAll(filepath.Join(dir, bin), 0o755))
	self, err := os.Executable()
	check(err)
	content, err := os.ReadFile(self)
	check(err)
	check(os.WriteFile(filepath.Join(dir, bin, name), content, 0o755))
}

// serve puts a package of the index into dest.
func serve(name, file, dest string) {
	if gate := os.Getenv("FAKE_GATE"); gate != "" {
		// Bounded, so that a script that fails leaves nothing running.
		end := time.Now().Add(awaitDeadline)
		for _, err := os.Stat(gate); err != nil; _, err = os.Stat(gate) {
			if time.Now().After(end) {
				fail("fake: the gate did not open")
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	if os.Getenv("FAKE_FAIL") == name {
		fail("connection reset by the index")
	}
	r, err := os.Open(filepath.Join(os.Getenv("FAKE_INDEX"), file))
	check(err)
	defer r.Close()
	w, err := os.Create(filepath.Join(dest, file))
	check(err)
	_, err = io.Copy(w, r)
	check(err)
	check(w.Close())
}

func note(format string, args ...any) {
	f, err := os.OpenFile(os.Getenv("FAKE_CALLS"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	check(err)
	_, err = fmt.Fprintf(f, format+"\n", args...)
	check(err)
	check(f.Close())
}

func check(err error) {
	if err != nil {
		fail("fake: %v", err)
	}
}

func fail(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
	os.Exit(1)
}
