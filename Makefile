# make check   sets up what is missing and runs the main job
# make test    sets up what is missing, lints, and passes the tests and the selftest
# make race    the race detector over all packages, without the simulations and the tests that start the compiler or gate many times
# make workflows  runs the workflows that gate init writes, on this machine, against a GitHub that is simulated
# make pictures  draws what GitHub shows of a verdict into gate/docs/pictures (Debian: cmark-gfm chromium fonts-liberation fonts-dejavu-core fonts-noto-color-emoji)
# make mutants changes the code of what judges, one operator at a time, and says which changes no test notices; about an hour
# make tidy    clang-tidy over the harness (Debian: clang-tidy)
# make man     writes bin/gate.1, the manual page
# make lint    format, vet, go.mod, staticcheck, dead code; the tools are pinned in .ci/tools/go.mod
.PHONY: check test race tidy mutants workflows pictures man lint bench fuzz tools clean
.DEFAULT_GOAL := check

GO    ?= go
GATE  := bin/gate
LINTER = $(GO) tool -modfile=.ci/tools/go.mod
# NVML's header marks functions of the binding, which gate does not call, as deprecated.
export CGO_CFLAGS ?= -O2 -g -Wno-deprecated-declarations

SANITIZER := bin/sanitizer/nvidia/cu13/bin/compute-sanitizer
check: $(GATE) compiler
	$(GATE) check

test: $(GATE) compiler $(SANITIZER) lint
	CUDA_HOME="$$(cat bin/cuda-home)" GATE_REQUIRE_NVCC=1 GATE_SANITIZER="$(CURDIR)/$(SANITIZER)" $(GO) test -timeout 40m ./...
	CUDA_HOME="$$(cat bin/cuda-home)" $(GATE) selftest

race: $(GATE) compiler
	CUDA_HOME="$$(cat bin/cuda-home)" GATE_REQUIRE_NVCC=1 $(GO) test -race -short -timeout 20m ./...

workflows: $(GATE) compiler
	$(GO) build -C .ci/act -o $(CURDIR)/bin/act github.com/nektos/act
	CUDA_HOME="$$(cat bin/cuda-home)" GATE_ACT=$(CURDIR)/bin/act $(GO) test -count=1 -timeout 20m -run 'TestWorkflows|TestShortestWorkflow' ./gate/internal/github

pictures: $(GATE) compiler
	CUDA_HOME="$$(cat bin/cuda-home)" $(GO) test -count=1 -timeout 20m -run TestPictures ./gate -pictures $(CURDIR)/gate/docs/pictures

# The packages that decide, by their own tests but for the laws over random facts, which
# take most of the time.
MUTANTS ?= policy plan judge compare
LAWS = TestDeleting|TestAddingARule|TestOrderLeaves|TestWorseNever|TestEverySubject|TestEqualSides|TestWaiversAndTrades|TestTheJudgeCounts|TestExitFollows
LAWS := $(LAWS)|TestSlowerNever|TestLevel|TestDetectable|TestDeleted|TestTails|TestScale|TestEqualArms|TestMore|TestStoredLevel|TestPValuesOver|TestCoverage|TestPower|TestOrders|TestContinued|TestImprovementAmong
mutants: tools
	GOBIN="$(CURDIR)/bin" $(GO) install github.com/go-gremlins/gremlins/cmd/gremlins@v0.6.0
	@set -e; for pkg in $(MUTANTS); do \
	  (cd gate/internal/$$pkg && GOFLAGS='-short -skip=$(LAWS)' "$(CURDIR)/bin/gremlins" unleash --workers 2 --timeout-coefficient 30); \
	done

tidy: compiler
	@command -v clang-tidy >/dev/null || { echo "make tidy needs clang-tidy (Debian: apt-get install clang-tidy)"; exit 3; }
	cd kernels/harness && printf '%s\n' *.cu | xargs -P 2 -I{} clang-tidy --quiet {} -- -x c++ -std=c++17 -I testdata/standin -I . -I "$$(cat ../../bin/cuda-home)/include"

man: $(GATE)
	$(GATE) help --format man >bin/gate.1

lint:
	@test -z "$$(gofmt -l gate ncu ptxas kernels)" || { gofmt -l gate ncu ptxas kernels; echo "gofmt would change these files"; exit 1; }
	$(GO) vet ./...
	$(GO) mod tidy -diff
	$(LINTER) staticcheck ./...
	@dead="$$($(LINTER) deadcode -test ./...)" && test -z "$$dead" || { echo "$$dead"; echo "no command and no test reaches these functions"; exit 1; }

bench:
	$(GO) test -run '^$$' -bench . -benchmem ./...

# Every fuzz target, for FUZZTIME. The default is a number of inputs, since Go can
# call the end of a time a failure. Go minimises a new input for a minute
# unless told otherwise, and finds nothing else meanwhile.
FUZZTIME ?= 250000x
fuzz:
	@set -e; for pkg in ptxas ncu; do \
	  targets="$$(grep -ho '^func Fuzz[A-Za-z]*' $$pkg/*_test.go | sed 's/func //')"; test -n "$$targets"; \
	  for target in $$targets; do \
	    $(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x ./$$pkg; \
	  done; \
	done

# The compiler that is found, or gate's own, which is installed without root.
.PHONY: compiler
compiler: $(GATE)
	@nvcc="$$($(GATE) toolchain install --if-missing)" && dirname "$$(dirname "$$nvcc")" >bin/cuda-home

# compute-sanitizer tells without a GPU which options it knows.
$(SANITIZER): .ci/sanitizer.txt
	python3 -m pip install --quiet --root-user-action=ignore --disable-pip-version-check --no-deps --only-binary=:all: --require-hashes --upgrade --target bin/sanitizer --requirement $<
	touch $@

.PHONY: $(GATE)
$(GATE): tools
	@mkdir -p bin
	$(GO) build -o $@ ./gate

tools:
	@for tool in $(GO) git g++ python3; do \
	  command -v $$tool >/dev/null || { echo "gate needs $$tool, which is not on PATH (Debian: apt-get install golang git g++ python3 python3-pip)"; exit 3; }; \
	done

clean:
	rm -rf bin
