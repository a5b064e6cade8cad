# Every target runs from a clean clone; what it needs it brings itself.
# Tools are pinned here, libraries and models in assets.lock.

GOTESTSUM     := gotest.tools/gotestsum@v1.13.0
GOFUMPT       := mvdan.cc/gofumpt@v0.12.0
GOLANGCI_LINT := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
GOVULNCHECK   := golang.org/x/vuln/cmd/govulncheck@v1.1.4
ACTIONLINT    := github.com/rhysd/actionlint/cmd/actionlint@v1.7.12

GO       ?= go
GOOS     := $(shell $(GO) env GOOS)
GOARCH   := $(shell $(GO) env GOARCH)
ASSETS   := $(GO) run ./cmd/assets
COMMANDS := worker-onnx worker-llama worker-ane worker-fake certify
LIBS     := onnxruntime llama

# What is tested on Windows too: the rest drives workers over Unix sockets.
PORTABLE := ./protocol/... ./certify/gate ./certify/suite ./certify/report ./internal/assets ./internal/buildinfo \
            ./engines/internal/... ./engines/llama/internal/... ./engines/onnx/internal/...

# What `make certify` measures: e5-small's weights exist here for ONNX Runtime alone.
SUITES       := all-minilm-l6-v2 bge-small-en-v1.5 e5-small-v2 minilm-cross-encoder smollm2-135m-instruct
LLAMA_SUITES := $(filter-out e5-small-v2,$(SUITES))

# The artifacts whose vectors must agree between the engines; the quantised are shown.
PARITY := minilm-onnx-f32 minilm-jar-onnx-f32 bge-small-onnx-f32 minilm-gguf-f32 minilm-gguf-f16 bge-small-gguf-f32

# A directory of llama.cpp's libraries in place of the ones beside the worker.
LLAMA_LIBS ?=

# How long one fuzz target runs under `make fuzz`.
FUZZTIME ?= 5m

.DEFAULT_GOAL := help
.PHONY: help assets asset build test test-portable certify page llama-libs llama-rpc lint lint-workflows fuzz bench docs chaos clean

help: ## Show this list.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

assets: ## Fetch, make and verify the pinned engines and models of this platform.
	$(ASSETS) sync

asset: ## Print the path of one asset: make -s asset NAME=minilm-onnx-f32
	@$(ASSETS) path $(NAME)

build: ## Build every command into bin/, the engines' libraries beside them.
	$(GO) build -trimpath -o bin/ $(addprefix ./cmd/,$(COMMANDS))
	@# New files, not new bytes in the old ones: a worker that runs has those mapped.
	@for lib in $(LIBS); do \
	  main="$$($(ASSETS) path $$lib-$(GOOS)-$(GOARCH))" || exit 1; \
	  rm -rf bin/lib/$$lib && mkdir -p bin/lib/$$lib && cp -R "$$(dirname "$$main")"/. bin/lib/$$lib/ || exit 1; \
	done

coreml-models: ## Make the Core ML packages of MiniLM (on any system).
	$(ASSETS) sync minilm-coreml-packages minilm-coreml-functions minilm-coreml-conv minilm-coreml-ranker

test: assets coreml-models build ## Run all tests with the race detector; an unexpected skip fails.
	@mkdir -p out
	$(GO) vet ./...
	$(GO) run $(GOTESTSUM) --format pkgname --jsonfile out/test.json -- -race -timeout 20m ./...
	@GO="$(GO)" .ci/skips out/test.json

test-portable: ## The tests that need neither an engine nor a Unix socket: what Windows runs in CI.
	$(GO) vet ./...
	$(GO) test -timeout 20m $(PORTABLE)

certify-ane: coreml-models build ## Hold worker-ane to the wire and to its suite, and show what this Mac's Core ML is.
	bin/certify protocol --worker bin/worker-ane
	bin/certify run all-minilm-l6-v2 --worker bin/worker-ane --out out/certify-ane
	bin/worker-ane selfcheck "$$($(ASSETS) path minilm-coreml-functions)"

certify: assets build ## Hold the workers to independent references, and to one another: the main job.
	bin/certify run $(SUITES) --worker bin/worker-onnx --out out/certify/onnx
	bin/certify run $(LLAMA_SUITES) --worker bin/worker-llama --out out/certify/llama $(if $(LLAMA_LIBS),--engine-lib $(LLAMA_LIBS))
	bin/certify compare out/certify/onnx/result.json out/certify/llama/result.json --parity 0.99999 $(addprefix --only ,$(PARITY))

llama-libs: ## Build llama.cpp's libraries as releases hold them, with RPC, into out/llama-libs (6 minutes).
	tools/llama-libs/build.sh $(GOOS)-$(GOARCH) out/llama-libs out/llama-libs-build
	@echo "use them: worker-llama --engine-lib $(CURDIR)/out/llama-libs, or make certify LLAMA_LIBS=out/llama-libs"

llama-rpc: assets llama-libs ## The same, and a model over two RPC servers of this machine computes what it does here.
	SYNAPSE_TEST_LLAMA_LIBS=$(CURDIR)/out/llama-libs $(GO) test -count 1 -v -run '^TestAModelOverTwoServers$$' ./engines/llama

page: ## Hold certify's page to a headless browser, light and dark (RESULT=result.json for a real one, SHOTS=DIR for pictures).
	SYNAPSE_RESULT=$(abspath $(RESULT)) SYNAPSE_SHOTS=$(abspath $(SHOTS)) $(GO) test -tags browser -count 1 -run '^TestThePageInABrowser$$' ./certify/report

lint-workflows: ## actionlint over .github/workflows.
	$(GO) run $(ACTIONLINT)

lint: ## gofumpt, vet, golangci-lint, govulncheck.
	@test -z "$$($(GO) run $(GOFUMPT) -l . | tee /dev/stderr)"
	$(GO) vet ./...
	GOOS=windows $(GO) vet ./protocol ./workerkit ./host ./engines/fake ./cmd/worker-fake
	GOOS=darwin GOARCH=arm64 CGO_ENABLED=0 $(GO) build ./...
	GOOS=darwin GOARCH=arm64 CGO_ENABLED=0 $(GO) vet ./...
	$(GO) run $(GOLANGCI_LINT) run
	@$(GO) run $(GOVULNCHECK) ./... || { test $$? -ne 3 && echo "govulncheck could not run (its database is fetched at run time)"; }

fuzz: ## Run every fuzz target for FUZZTIME each.
	@for p in $$(grep -l '^func Fuzz' -r --include='*_test.go' . | xargs -n1 dirname | sort -u); do \
	  for f in $$(grep -ho '^func Fuzz[A-Za-z0-9_]*' $$p/*_test.go | sed 's/^func //'); do \
	    echo "== $$p $$f"; $(GO) test -run '^$$' -fuzz "^$$f\$$" -fuzztime $(FUZZTIME) $$p || exit 1; \
	  done; done

bench: assets build ## Benchmarks of the wire and of the engines behind it.
	$(GO) test -run '^$$' -bench . -benchtime 5s ./...

docs: ## Write docs/configuration.md from the tables that decode runtime_config.
	SYNAPSE_UPDATE_DOCS=1 $(GO) test -count 1 -p 1 -run '^TestConfigurationIsDocumented$$' ./engines/...

chaos: assets build ## 10,000 seeded faults in real workers (SEED=n to repeat, ARGS for the rest).
	$(GO) run ./cmd/chaos --seed $(or $(SEED),0) \
		--engine "onnx=bin/worker-onnx=$$($(ASSETS) path minilm-onnx-f32)" \
		--engine "gguf=bin/worker-llama=$$($(ASSETS) path minilm-gguf-q8_0)" $(ARGS)

clean: ## Remove what was built; fetched assets stay (rm -rf .assets).
	rm -rf bin out dist

include tools/release/release.mk
