//go:build cgo

package onnx

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	ort "github.com/yalue/onnxruntime_go"

	"github.com/synapse-module/workers/protocol"
	"github.com/synapse-module/workers/workerkit"
)

// The execution providers of the library. cpu takes what the others leave and
// need not be named.
const (
	providerCPU      = "cpu"
	providerCUDA     = "cuda"
	providerTensorRT = "tensorrt"
	providerDirectML = "directml"
	providerCoreML   = "coreml"
	providerOpenVINO = "openvino"
)

var providerNames = []string{providerCPU, providerCUDA, providerTensorRT, providerDirectML, providerCoreML, providerOpenVINO}

// onCPU is the library's own name for the provider cpu.
const onCPU = "CPUExecutionProvider"

// accelerated are the providers asked for beside the CPU.
func accelerated(c workerkit.Config) []string {
	return slices.DeleteFunc(slices.Clone(c.Strings(optProviders)), func(name string) bool { return name == providerCPU })
}

// appendProviders adds them in order of preference. One that this build of the
// library lacks refuses the LOAD: the CPU in its place would be slower in silence.
func appendProviders(o *ort.SessionOptions, names []string) error {
	for _, name := range names {
		if !slices.Contains(providerNames, name) {
			return workerkit.ConfigInvalid("runtime_config.%s: %.32q is none of %s", optProviders, name, strings.Join(providerNames, ", "))
		}
		if err := appendProvider(o, name); err != nil {
			return workerkit.ConfigInvalid("runtime_config.%s: this build of ONNX Runtime or this machine has no %s: %s", optProviders, name, words(err))
		}
	}
	return nil
}

func appendProvider(o *ort.SessionOptions, name string) error {
	switch name {
	case providerCUDA:
		cuda, err := ort.NewCUDAProviderOptions()
		if err != nil {
			return err
		}
		return errors.Join(o.AppendExecutionProviderCUDA(cuda), cuda.Destroy())
	case providerTensorRT:
		trt, err := ort.NewTensorRTProviderOptions()
		if err != nil {
			return err
		}
		return errors.Join(o.AppendExecutionProviderTensorRT(trt), trt.Destroy())
	case providerDirectML:
		return o.AppendExecutionProviderDirectML(0)
	case providerCoreML:
		return o.AppendExecutionProviderCoreMLV2(map[string]string{"ModelFormat": "MLProgram"})
	default:
		return o.AppendExecutionProviderOpenVINO(nil)
	}
}

// place runs the graph once under the library's profiler and says which provider
// ran how many of its nodes: what is asked for and what is used differ wherever a
// provider lacks an operator. It is nil for the CPU alone.
func place(src source, p plan, c workerkit.Config) (*protocol.Placement, error) {
	asked := accelerated(c)
	if len(asked) == 0 {
		return nil, nil
	}
	counts, err := profile(src.path, p, c)
	if err != nil {
		return nil, err
	}
	all, off := 0, counts[onCPU]
	for _, n := range counts {
		all += n
	}
	if all == off {
		return nil, workerkit.ConfigInvalid("runtime_config.%s: none of the graph's %d nodes runs on %s; leave it out, or export another graph", optProviders, all, strings.Join(asked, ", "))
	}
	return &protocol.Placement{
		Share: float64(all-off) / float64(all), Coverage: 1,
		GPU: counts["CUDAExecutionProvider"] + counts["TensorrtExecutionProvider"] + counts["DmlExecutionProvider"],
		CPU: off,
		// Core ML and OpenVINO choose a device themselves and do not tell.
		Unknown:      counts["CoreMLExecutionProvider"] + counts["OpenVINOExecutionProvider"],
		ComputeUnits: strings.Join(asked, ","), OS: runtime.GOOS, Chip: cpuClass(), OffEngine: []string{},
	}, nil
}

// profile counts the nodes that each provider ran for one short row.
func profile(path string, p plan, c workerkit.Config) (counts map[string]int, err error) {
	dir, err := os.MkdirTemp("", "onnx-profile-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	o, err := sessionOptions(c)
	if err != nil {
		return nil, err
	}
	if err := o.EnableProfiling(filepath.Join(dir, "run")); err != nil {
		return nil, errors.Join(loadError(err), o.Destroy())
	}
	inputs, outputs := p.names()
	session, err := createSession(path, inputs, outputs, o)
	if err != nil {
		return nil, err
	}
	_, err = probe(session, p)
	// The library writes its profile when the session ends.
	if err := errors.Join(err, session.Destroy()); err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(dir, "run*.json"))
	if err != nil || len(files) != 1 {
		return nil, workerkit.EngineFailed("ONNX Runtime wrote %d profiles, wanted is one (%v)", len(files), err)
	}
	b, err := os.ReadFile(files[0])
	if err != nil {
		return nil, err
	}
	return countNodes(b)
}

// countNodes reads a profile: a list of events, of which a node's run names its
// provider.
func countNodes(profile []byte) (map[string]int, error) {
	var events []struct {
		Category string `json:"cat"`
		Name     string `json:"name"`
		Args     struct {
			Provider string `json:"provider"`
		} `json:"args"`
	}
	if err := json.Unmarshal(profile, &events, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)); err != nil {
		return nil, fmt.Errorf("the profile of ONNX Runtime: %w", err)
	}
	counts := map[string]int{}
	for _, e := range events {
		if e.Category == "Node" && strings.HasSuffix(e.Name, "_kernel_time") && e.Args.Provider != "" {
			counts[e.Args.Provider]++
		}
	}
	return counts, nil
}
