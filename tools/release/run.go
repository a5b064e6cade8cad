package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/synapse-module/workers/certify/suite"
	"github.com/synapse-module/workers/certify/suites"
	"github.com/synapse-module/workers/host"
	"github.com/synapse-module/workers/protocol"
)

// run proves the commands of an archive as far as this machine can run them.
func (v *prover) run(ctx context.Context) error {
	switch {
	case string(v.platform) == runtime.GOOS+"/"+runtime.GOARCH:
		return v.runNative(ctx)
	case runtime.GOOS == "linux" && v.platform.os() == "linux":
		return v.runEmulated(ctx)
	case runtime.GOOS == "linux" && v.platform == "windows/amd64":
		return v.runWine(ctx)
	}
	return nil // inspected above, and vetted by `make release-test`
}

func (v *prover) runNative(ctx context.Context) error {
	if v.release.built[v.platform] != nil {
		v.note(rpcServer, "starts", "", helped(v.start(ctx, v.rpcServer(), "--help")))
	}
	for _, b := range v.release.commands(v.platform) {
		exe := filepath.Join(v.dir, v.platform.exe(b.ID))
		v.note(b.ID, "starts with nothing in its environment, in a read-only folder", "", v.version(ctx, exe))
		e, ok := evidences[b.ID]
		if !ok {
			continue
		}
		v.note(b.ID, "names a library that is missing", "", v.missingLibrary(ctx, exe))
		q, want, err := v.question(ctx, b.ID, e)
		if err != nil {
			return err
		}
		result, err := converse(ctx, q, want, e.minCosine)
		v.note(b.ID, "embeds", result, err)
		if certified(e) {
			v.note(b.ID, "passes certify, both as another user", e.suite, v.certify(ctx, b.ID, e, q))
		}
	}
	return nil
}

// rpcServer serves a part of a model to a worker on another machine. It is built with
// llama.cpp's libraries, and lies beside them.
const rpcServer = "ggml-rpc-server"

func (v *prover) rpcServer() string {
	return filepath.Join(v.dir, "lib", builtEngine, v.platform.exe(rpcServer))
}

// helped holds a program of llama.cpp's to having started: it found its libraries.
func helped(out []byte, err error) error {
	if err == nil && !bytes.Contains(out, []byte("--port")) {
		err = errors.New("--help does not say --port")
	}
	if err != nil {
		return fmt.Errorf("%w: %s", err, lastLine(out))
	}
	return nil
}

// start runs a program as another user where it can, with an empty environment.
func (v *prover) start(ctx context.Context, exe string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, startDeadline)
	defer cancel()
	cmd := exec.CommandContext(ctx, exe, args...)
	cmd.Env, cmd.Dir = []string{}, "/"
	asNobody(cmd)
	return cmd.CombinedOutput()
}

// version runs a command's --version as another user where it can, with an empty
// environment, and holds the stamp to the commit.
func (v *prover) version(ctx context.Context, exe string) error {
	return v.stamped(v.start(ctx, exe, "--version"))
}

func (v *prover) stamped(out []byte, err error) error {
	if err != nil {
		return fmt.Errorf("%w: %s", err, lastLine(out))
	}
	if !bytes.Contains(out, []byte(v.cmd.Commit)) {
		return fmt.Errorf("--version does not say the commit %s: %s", v.cmd.Commit, out)
	}
	return nil
}

// missingLibrary gives a worker a folder without libraries: one line, and no HELLO.
func (v *prover) missingLibrary(ctx context.Context, exe string) error {
	ctx, cancel := context.WithTimeout(ctx, startDeadline)
	defer cancel()
	cmd := exec.CommandContext(ctx, exe, "--version", "--engine-lib", v.scratch)
	cmd.Env = []string{}
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case !errors.As(err, &exit) || exit.ExitCode() != protocol.ExitEngine:
		return fmt.Errorf("its end: %w, due is exit status %d", cmp.Or(err, errors.New("exit status 0")), protocol.ExitEngine)
	case strings.Count(string(out), "\n") != 1 || !strings.Contains(string(out), v.scratch):
		return fmt.Errorf("it said not one line that names the folder, but %q", out)
	}
	return nil
}

// converse is a module's whole conversation over package host, which gives the
// worker an empty environment and / for a working directory.
func converse(ctx context.Context, q probe, want [][]float32, least float64) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, probeDeadline)
	defer cancel()
	w, err := host.Start(ctx, host.Spec{Path: q.Worker})
	if err != nil {
		return "", err
	}
	defer w.Kill()
	m, err := w.Load(ctx, host.LoadRequest{Path: q.Path, Digest: q.digest(), Format: q.Format, Config: q.Config})
	if err != nil {
		return "", err
	}
	got, err := w.Embed(ctx, host.EmbedRequest{Model: m.Ref, Normalize: true, Rows: q.Rows})
	if err != nil {
		return "", err
	}
	vectors := make([][]float32, got.N)
	for i := range vectors {
		vectors[i] = got.Row(i)
	}
	if err := w.Close(ctx); err != nil {
		return "", fmt.Errorf("SHUTDOWN: %w", err)
	}
	return judge(vectors, want, least)
}

// certified says whether the suite has the artifact among those that it certifies.
func certified(e evidence) bool {
	s, err := suites.Load(e.suite)
	return err == nil && slices.ContainsFunc(s.Artifacts, func(a suite.Artifact) bool { return a.Name == e.asset })
}

// certify has the archive's own certify hold the archive's own worker to the whole
// suite, both as another user.
func (v *prover) certify(ctx context.Context, worker string, e evidence, q probe) error {
	args := []string{"run", e.suite, "--worker", filepath.Join(v.dir, v.platform.exe(worker)), "--only", e.asset, "--artifact", q.Path}
	judgements, err := v.judgements(ctx, e)
	if err != nil {
		return err
	}
	if judgements != "" {
		args = append(args, "--artifact", judgements)
	}
	cmd := exec.CommandContext(ctx, filepath.Join(v.dir, v.platform.exe("certify")), args...)
	cmd.Env, cmd.Dir = []string{}, "/"
	asNobody(cmd)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w:\n%s", err, out)
	}
	return nil
}

// judgements are what people said of the suite's texts, NAME=PATH in a place that every
// user can read; empty where the suite has none.
func (v *prover) judgements(ctx context.Context, e evidence) (string, error) {
	s, err := suites.Load(e.suite)
	if err != nil || s.People == nil {
		return "", err
	}
	from, err := v.store.Path(ctx, s.People.Asset)
	if err != nil {
		return "", err
	}
	to := filepath.Join(v.scratch, s.People.Asset)
	if err := os.CopyFS(to, os.DirFS(from)); err != nil && !errors.Is(err, fs.ErrExist) { // another worker's proof copied them
		return "", err
	}
	return s.People.Asset + "=" + to, nil
}

// runEmulated lets qemu interpret the commands of another processor. Its libc
// comes from the distribution's cross packages.
func (v *prover) runEmulated(ctx context.Context) error {
	const sysroot = "/usr/aarch64-linux-gnu"
	qemu, err := exec.LookPath("qemu-aarch64-static")
	if err == nil {
		_, err = os.Stat(filepath.Join(sysroot, "lib", "libstdc++.so.6"))
	}
	if err != nil {
		v.note("archive", "runs under qemu", "", fmt.Errorf("%w: apt-get install qemu-user-static libc6-arm64-cross libstdc++6-arm64-cross", err))
		return nil
	}
	v.note(rpcServer, "starts under qemu", "", helped(v.start(ctx, qemu, "-L", sysroot, v.rpcServer(), "--help")))
	for _, b := range v.release.commands(v.platform) {
		exe := filepath.Join(v.dir, b.ID)
		// host starts one file, so a script stands for the emulator and its arguments.
		script := filepath.Join(v.scratch, b.ID+".sh")
		text := fmt.Sprintf("#!/bin/sh\nexec %s -L %s %s \"$@\"\n", qemu, sysroot, exe)
		if err := os.WriteFile(script, []byte(text), 0o755); err != nil {
			return err
		}
		v.note(b.ID, "starts under qemu with nothing in its environment", "", v.version(ctx, script))
		e, ok := evidences[b.ID]
		if !ok {
			continue
		}
		q, want, err := v.question(ctx, b.ID, e)
		if err != nil {
			return err
		}
		q.Worker = script
		maps.Copy(q.Config, e.emulated)
		result, err := converse(ctx, q, want, e.minCosine)
		v.note(b.ID, "embeds under qemu", result, err)
	}
	return nil
}

// runWine plays the module in a Windows program of ours that runs under wine
// beside the worker, since the pipe between them is a thing of wine's world.
func (v *prover) runWine(ctx context.Context) error {
	wine, err := newWine(ctx, v.cmd.WineShim, v.scratch)
	if err != nil {
		v.note("archive", "runs under wine", "", err)
		return nil
	}
	defer wine.close()
	out, err := wine.exec(ctx, v.rpcServer(), "--help").CombinedOutput()
	v.note(rpcServer, "starts under wine", "", helped(out, err))
	for _, b := range v.release.commands(v.platform) {
		exe := filepath.Join(v.dir, v.platform.exe(b.ID))
		v.note(b.ID, "starts under wine", "", v.stamped(wine.run(ctx, exe, "--version")))
		e, ok := evidences[b.ID]
		if !ok {
			continue
		}
		q, want, err := v.question(ctx, b.ID, e)
		if err != nil {
			return err
		}
		result, err := v.converseInWine(ctx, wine, q, want, e.minCosine)
		v.note(b.ID, "connects to a named pipe and embeds under wine", result, err)
	}
	return nil
}

func (v *prover) converseInWine(ctx context.Context, w *wine, q probe, want [][]float32, least float64) (string, error) {
	q.Worker, q.Path = w.path(q.Worker), w.path(q.Path)
	raw, err := json.Marshal(q)
	if err != nil {
		return "", err
	}
	file := filepath.Join(v.scratch, "probe.json")
	if err := os.WriteFile(file, raw, 0o644); err != nil {
		return "", err
	}
	out, err := w.run(ctx, v.cmd.WineProbe, w.path(file))
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	var vectors [][]float32
	if err := json.Unmarshal(out, &vectors); err != nil {
		return "", fmt.Errorf("pipeprobe printed no vectors: %w: %s", err, out)
	}
	return judge(vectors, want, least)
}

func lastLine(out []byte) string {
	text := strings.TrimSpace(string(out))
	return text[strings.LastIndexByte(text, '\n')+1:]
}
