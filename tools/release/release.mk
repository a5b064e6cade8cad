# The release: archives, their papers and their proof. Included by the Makefile.

GORELEASER_VERSION := v2.15.1
GORELEASER    := github.com/goreleaser/goreleaser/v2@$(GORELEASER_VERSION)
CYCLONEDX     := github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0

# Of these engines and platforms the native libraries are fetched, but for llama.cpp
# where it is built: docs/adr/0021 says why, and why not for macOS.
RELEASE_ENGINES   := onnxruntime llama
RELEASE_PLATFORMS := linux-amd64 linux-arm64 darwin-arm64 windows-amd64
RELEASE_BUILT     := linux-amd64 linux-arm64 windows-amd64
RELEASE_FETCHED   := $(filter-out $(RELEASE_BUILT:%=llama-%),$(foreach e,$(RELEASE_ENGINES),$(addprefix $(e)-,$(RELEASE_PLATFORMS))))

# How goreleaser runs under release-snapshot; on a tag --skip=publish makes the very
# archives that `make release` uploads.
RELEASE_MODE := --snapshot

RELEASE := $(CURDIR)/out/release
# Asked of the shell: make's own wildcard remembers folders from before zig came.
ZIG      = $(shell ls $(RELEASE)/zig/lib/python3*/site-packages/ziglang/zig 2>/dev/null)
STORE    = $(or $(SYNAPSE_ASSETS_DIR),$(CURDIR)/.assets)

# What a person's own settings must not change in a release's bytes. CGO_LDFLAGS is
# the Go command's own less -g, by which zig would keep its debug information.
RELEASE_ENV = env $(if $(RELEASE_GOCACHE),GOCACHE="$(RELEASE_GOCACHE)") GOFLAGS= CGO_CFLAGS= CGO_LDFLAGS=-O2 GOAMD64=v1 GOARM64=v8.0 \
	ZIG="$(ZIG)" ZIG_GLOBAL_CACHE_DIR=$(RELEASE)/zig-cache ZIG_LOCAL_CACHE_DIR=$(RELEASE)/zig-cache \
	PATH="$(CURDIR)/tools/release:$(RELEASE)/bin:$$PATH" \
	COMMIT=$$(git rev-parse HEAD) COMMIT_EPOCH=$$(git log -1 --format=%ct) \
	COMMIT_DATE=$$(TZ=UTC git log -1 --date=format-local:%Y-%m-%dT%H:%M:%SZ --format=%cd) \
	GORELEASER_VERSION=$(GORELEASER_VERSION) ZIG_VERSION=$$("$(ZIG)" version)

.PHONY: release-tools release-llama release-pin release-prepare release-snapshot release release-test release-test-here release-reproduce

$(RELEASE)/zig/ready: tools/llama-libs/requirements.txt tools/release/requirements.txt
	rm -rf $(RELEASE)/zig
	python3 -m venv $(RELEASE)/zig
	$(RELEASE)/zig/bin/pip install --disable-pip-version-check --no-input --quiet --require-hashes -r $<
	touch $@

# About 5 minutes a platform on two cores; what is built is kept until its recipe changes.
$(RELEASE)/llama-libs/%/LICENSE: $(wildcard tools/llama-libs/*) tools/release/requirements.txt $(RELEASE)/zig/ready
	rm -rf $(@D)
	TOOLS=$(RELEASE)/zig tools/llama-libs/build.sh $* $(@D) $(RELEASE)/llama-libs-build
	touch $@

release-llama: $(RELEASE_BUILT:%=$(RELEASE)/llama-libs/%/LICENSE)

release-pin: ## After a change of tools/llama-libs: build its libraries, and pin their bytes.
	grep 'tar\.gz$$' tools/llama-libs/SHA256SUMS >$(RELEASE)/pins && cp $(RELEASE)/pins tools/llama-libs/SHA256SUMS
	$(MAKE) release-llama
	cd $(RELEASE)/llama-libs && export LC_ALL=C && sha256sum $(RELEASE_BUILT:%=%/*) >>$(CURDIR)/tools/llama-libs/SHA256SUMS

release-tools: $(RELEASE)/zig/ready
	$(GO) build -o $(RELEASE)/bin/release ./tools/release
	GOBIN=$(RELEASE)/bin $(GO) install $(CYCLONEDX)
	GOBIN=$(RELEASE)/bin $(GO) install $(GORELEASER)

release-prepare: release-tools release-llama
	$(ASSETS) sync $(RELEASE_FETCHED)
	$(RELEASE)/bin/release licences $(RELEASE)/LICENSES --zig "$(dir $(ZIG))"
	rm -rf $(RELEASE)/stage $(RELEASE)/programs
	for a in $(RELEASE_FETCHED); do \
	  lib=$(RELEASE)/stage/$${a#*-}/lib/$${a%%-*} && mkdir -p "$${lib%/*}" && cp -R "$(STORE)/$$a" $$lib || exit 1; \
	done
	for p in $(RELEASE_BUILT); do \
	  cp -R $(RELEASE)/llama-libs/$$p $(RELEASE)/stage/$$p/lib/llama && mkdir -p $(RELEASE)/programs/$$p && \
	  mv $(RELEASE)/stage/$$p/lib/llama/ggml-rpc-server* $(RELEASE)/programs/$$p/ || exit 1; \
	done

# One build at a time: archives list their files in the order in which builds end.
release-snapshot: release-prepare ## Make the archives of all platforms, their checksums, SBOMs and provenance, in dist/.
	$(RELEASE_ENV) goreleaser release $(RELEASE_MODE) --clean --parallelism 1

release: release-prepare ## On a tagged commit: the same, uploaded as a draft to the repository's releases.
	$(RELEASE_ENV) goreleaser release --clean --parallelism 1

$(RELEASE)/wine/bcryptprimitives.dll: tools/release/wine/bcryptprimitives.c $(RELEASE)/zig/ready
	mkdir -p $(@D)
	$(RELEASE_ENV) GOOS=windows GOARCH=amd64 zigcc -shared -O2 -s -o $@ $< -ladvapi32

release-test: release-tools $(RELEASE)/wine/bcryptprimitives.dll ## Unpack every archive and prove that its workers run.
	GOOS=darwin GOARCH=arm64 CGO_ENABLED=0 $(GO) vet ./cmd/worker-ane ./cmd/worker-llama ./cmd/certify ./engines/coreml/...
	GOOS=windows GOARCH=amd64 CGO_ENABLED=0 $(GO) build -o $(RELEASE)/wine/pipeprobe.exe ./tools/release/pipeprobe
	ZIG="$(ZIG)" $(RELEASE)/bin/release prove dist --commit $$(git rev-parse HEAD) \
		--wine-shim $(RELEASE)/wine/bcryptprimitives.dll --wine-probe $(RELEASE)/wine/pipeprobe.exe

release-test-here: ## The same for this machine's own platform alone, as it is in dist/.
	$(GO) run ./tools/release prove dist --platform $(GOOS)/$(GOARCH) --commit $$(git rev-parse HEAD)

release-reproduce: ## Build HEAD once more, in another folder with empty caches: the bytes must be those of dist/.
	@again="$$(mktemp -d)" && trap 'rm -rf "$$again"' EXIT && git clone --quiet . "$$again" && \
	SYNAPSE_ASSETS_DIR="$(STORE)" $(MAKE) -C "$$again" release-snapshot RELEASE_MODE="$(RELEASE_MODE)" RELEASE_GOCACHE="$$again/out/gocache" && \
	$(RELEASE)/bin/release same dist "$$again/dist"
