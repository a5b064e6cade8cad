package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/synapse-module/workers/engines/fake"
	"github.com/synapse-module/workers/workerkit"
)

// TestMain makes this binary play the command and its worker as well, each under
// its own name.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"certify": main, "worker-fake": workerFake})
}

func workerFake() {
	var stream fake.Stream
	workerkit.Main(workerkit.Worker{
		Name:     "worker-fake",
		Open:     func(workerkit.Setup) (workerkit.Engine, error) { return fake.New(&stream), nil },
		WrapConn: stream.Wrap,
	})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:   "testdata",
		Setup: setup,
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"fakesuite":   fakeSuite,
			"faketask":    fakeTask,
			"checkschema": checkSchema,
			"exits":       exits,
			"interrupt":   interrupt,
			"interrupted": interrupted,
			"replace":     replace,
			"newkey":      newKey,
		},
	})
}

// setup gives scripts the worker's path and the fake model: its digest is in the
// suite that fakesuite writes.
func setup(env *testscript.Env) error {
	worker, err := program("worker-fake")
	if err != nil {
		return err
	}
	env.Setenv("WORKER", worker)
	env.Setenv("MODEL", filepath.Join(env.WorkDir, "model.fake"))
	return os.WriteFile(filepath.Join(env.WorkDir, "model.fake"), []byte(fakeModel), 0o600)
}

// program finds one of the names that TestMain plays.
func program(name string) (string, error) {
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		for _, ending := range []string{"", ".exe"} {
			path := filepath.Join(dir, name+ending)
			if _, err := os.Stat(path); err == nil {
				return filepath.Abs(path)
			}
		}
	}
	return "", fmt.Errorf("%s is not in PATH", name)
}

// replace puts new in place of old, everywhere in a file.
func replace(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: replace OLD NEW FILE")
	}
	text := ts.ReadFile(args[2])
	if !strings.Contains(text, args[0]) {
		ts.Fatalf("%s does not hold %q", args[2], args[0])
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[2]), []byte(strings.ReplaceAll(text, args[0], args[1])), 0o600))
}

// exits runs a command and wants this very exit status.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits STATUS COMMAND [ARG...]")
	}
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if want, err := strconv.Atoi(args[0]); err != nil || got != want {
		ts.Fatalf("exit status %d, wanted %s", got, args[0])
	}
}

// checkSchema holds a JSON file to a schema of package certify.
func checkSchema(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: checkschema SCHEMA FILE")
	}
	root, err := os.Getwd()
	ts.Check(err)
	schema, err := jsonschema.NewCompiler().Compile(filepath.Join(root, "..", "..", "certify", args[0]))
	ts.Check(err)
	f, err := os.Open(ts.MkAbs(args[1]))
	ts.Check(err)
	defer f.Close()
	doc, err := jsonschema.UnmarshalJSON(f)
	ts.Check(err)
	ts.Check(schema.Validate(doc))
}
