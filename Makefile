# Most targets need Go, a shell and a C compiler. A target installs everything else that it needs.

STATICCHECK  := honnef.co/go/tools/cmd/staticcheck@v0.8.2
FUZZTIME     ?= 10s
SOAK         ?= 10m
LATE         ?= 4m
MUTANTS      ?= 200
SEED         ?= 1
SEEDS        ?= 0-99
REDIS_SERVER ?= redis-server
CHROMIUM     ?= chromium
PYTHON       ?= /usr/bin/python3
export REDIS_SERVER CHROMIUM PYTHON

# Systems that make check builds for, and those whose code it vets: linux/arm has the files and the sizes of linux/386.
TARGETS := linux/386 linux/arm windows/amd64 darwin/arm64
VETTED  := linux/386 windows/amd64 darwin/arm64
LIBRARY := ./algorithms/... ./headers/... ./keyfunc/... ./lua/... ./middleware/...

# Packages in which goroutines meet.
RACED := ./algorithms/... ./keyfunc/... ./middleware/... ./examples/... ./internal/logwriter/...

# How many tests of a package run at once. Most tests of Redis wait.
PARALLEL := 4

# The programs that measure and trouble the product. They are a module of their own, so ./... leaves them out.
LAB := internal/lab

# Directories of all nested modules.
NESTED := $(patsubst %/go.mod,%,$(shell find . -mindepth 2 -name go.mod -not -path '*/testdata/*'))

.DEFAULT_GOAL := help
.PHONY: help run site fair observe test test-short test-race test-long test-lab test-386 test-oldest test-newest test-routers test-servers test-valkey cross test-e2e test-clients test-finish \
	tools redis prometheus curl fmt fmt-check vet lint luacheck staticcheck actionlint release-check fuzz bench bench-smoke mutants fleet accuracy soak late night herd outage peers report mod \
	check check-lint check-test check-long check-clients

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' Makefile

run: ## run the example server
	go build -o .bin/chi-server ./examples/chi-server
	@exec .bin/chi-server

site: ## build the example's page without a server, with the lab's tables, into .bin/site
	go -C examples/site run . -o "$(CURDIR)/.bin/site"
	@echo "make site: open $(CURDIR)/.bin/site/index.html"

observe: redis prometheus ## run the example with Prometheus, and with Grafana where it is installed, until Ctrl-C
	go build -o .bin/chi-server ./examples/chi-server
	@exec examples/chi-server/observability/observe "$(CURDIR)/.bin/chi-server"

# make vet vets the same packages, so that tests need not vet them again.
test: redis ## run all tests, except the long ones
	go test -vet=off -shuffle=on -parallel $(PARALLEL) ./...
	@echo "make test: $$(.ci/long count)"

test-short: ## run the fast tests only; without redis-server, leave out the tests that need it
	@.ci/short

# Tests of one goroutine, in which the race detector finds nothing. It makes them 3 to 16 times slower.
SINGLE := Conforms|AnswersAs|^TestModel$$|Cardinality|Figures|Miniredis

# Long replays. The same goroutines meet in the short ones.
REPLAYS := SettledCosts|TiersWithOneLimit|^TestProposal$$|^TestSmallest$$

# The subtests of TestMemoryConforms and TestRedisConforms in which goroutines meet.
CROWDS := Conforms$$/^(Concurrency|Ownership)$$

test-race: redis ## run the tests in which goroutines meet, with the race detector
	@command -v $$(go env CC | cut -d ' ' -f 1) >/dev/null || { echo "make test-race: no C compiler: install gcc" >&2; exit 1; }
	go test -race -shuffle=on -skip '$(SINGLE)|$(REPLAYS)' $(RACED)
	go test -race -shuffle=on -run '$(CROWDS)' ./algorithms/internal/tests ./algorithms/shared
	@echo "make test-race: left out tests of one goroutine ($(SINGLE)) and long replays: make test runs them"
	@echo "make test-race: $$(.ci/long count)"

test-long: redis prometheus curl ## run the tests that wait for long: outages, failovers, Prometheus, README's transcripts
	@.ci/long run

test-lab: redis ## run the tests of the lab, except the long ones
	go -C $(LAB) test -shuffle=on ./...

# By default, all servers that are installed.
SERVERS ?= $(foreach name,redis-server valkey-server redict-server keydb-server,$(shell command -v $(name)))

test-servers: ## run the tests that need Redis on SERVERS="path path ...", and write internal/redistest/SERVERS.md
	go -C $(LAB) run ./servers -o ../redistest/SERVERS.md $(SERVERS)

test-valkey: redis ## run the tests that need Redis on Valkey, if the system has its package
	@if .ci/install valkey-server valkey-server valkey valkey valkey 2>/dev/null; then set -x; go -C $(LAB) run ./servers valkey-server; \
	else echo "make test-valkey: no Valkey here, so the tests ran on $(REDIS_SERVER) only" >&2; fi

# Some 64-bit kernels cannot run 32-bit programs: then the shell says 126.
test-386: redis ## run the fast tests of the library on 32 bits, if the machine can run them
	CGO_ENABLED=0 GOOS=linux GOARCH=386 go build -o .bin/386 ./internal/luasource
	@.bin/386 >/dev/null 2>&1; case $$? in \
	0) set -x; CGO_ENABLED=0 GOARCH=386 go test -short $(LIBRARY) ;; \
	126) echo "make test-386: this machine runs no 386 programs, so no tests on 32 bits" >&2 ;; \
	*) echo "make test-386: internal/luasource fails on 32 bits" >&2; exit 1 ;; \
	esac

test-routers: redis ## test the recipes, OpenTelemetry, and the documented lines for each stack with the real framework or proxy
	@.ci/install nginx nginx-light nginx nginx nginx
	@.ci/install haproxy haproxy haproxy haproxy haproxy
	go -C internal/routers test ./...
	go -C examples/recipes test ./...
	go -C middleware/otelmetrics test ./...

# The go command gets an older version by itself, where it can be had.
OLDEST := go$(shell sed -n 's/^go //p' go.mod)

test-oldest: redis ## run the fast tests with the oldest Go that go.mod allows, if it can be had
	@if ! GOTOOLCHAIN=$(OLDEST) go version >/dev/null 2>&1; then echo "make test-oldest: $(OLDEST) cannot be had here, so it was not tested" >&2; \
	else set -x; GOTOOLCHAIN=$(OLDEST) go test -short ./... && for dir in examples/recipes middleware/otelmetrics; do GOTOOLCHAIN=$(OLDEST) go -C $$dir test ./... || exit 1; done; fi

# The flag leaves go.mod alone.
test-newest: redis ## run the fast tests with the newest versions of all dependencies
	@mkdir -p .bin && cp go.mod .bin/newest.mod && cp go.sum .bin/newest.sum
	go get -modfile=.bin/newest.mod -u -t ./...
	go test -modfile=.bin/newest.mod -short ./...

cross: ## build and vet for other systems, and for 32 bits
	@for target in $(TARGETS); do (export CGO_ENABLED=0 GOOS=$${target%/*} GOARCH=$${target#*/}; set -x; go build ./...) || exit 1; done
	@for target in $(VETTED); do (export CGO_ENABLED=0 GOOS=$${target%/*} GOARCH=$${target#*/}; set -x; go vet ./...) || exit 1; done

test-e2e: redis ## test the example's page, and the one without a server, with a headless Chromium, installed if it is missing
	@.ci/install "$(CHROMIUM)" chromium chromium chromium chromium
	@.ci/install npm npm npm npm node
	npm --prefix examples/chi-server/e2e ci --silent
	go -C examples/chi-server/e2e test -count=1 -timeout 20m ./...

# Debian installs the Python clients for /usr/bin/python3. To use another interpreter that has them, set PYTHON.
test-clients: ## test how clients of npm, Python, Go, gRPC, Connect and MCP understand responses
	@.ci/install node nodejs nodejs nodejs node
	@.ci/install npm npm npm npm node
	@$(PYTHON) -c 'import httpx, requests' 2>/dev/null || { apt-get -qq update && \
		DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends python3-httpx python3-requests; } || \
		{ echo "install Python's httpx and requests yourself, or set PYTHON" >&2; exit 1; }
	npm --prefix internal/clients ci --silent
	go -C internal/clients test -count=1 ./...

test-finish: ## compare the client with others against 28 servers, up to 30 minutes, and write internal/finish/RESULTS.md
	@.ci/install node nodejs nodejs nodejs node
	@.ci/install npm npm npm npm node
	@.ci/install nginx nginx-light nginx nginx nginx
	@.ci/install haproxy haproxy haproxy haproxy haproxy
	npm --prefix internal/finish ci --silent
	go -C internal/finish test -count=1 -timeout 40m -v ./...

tools: redis prometheus curl ## install redis-server, prometheus and curl if they are missing

redis:
	@.ci/install "$(REDIS_SERVER)" redis-server redis redis redis

prometheus:
	@.ci/install prometheus prometheus golang-github-prometheus prometheus prometheus
	@.ci/install promtool prometheus golang-github-prometheus prometheus prometheus

curl:
	@.ci/install curl curl curl curl curl

fmt: ## format all Go files
	gofmt -s -w .

fmt-check:
	@files=$$(gofmt -s -l .) || exit 1; \
	if [ -n "$$files" ]; then echo "not formatted, run make fmt:" $$files >&2; exit 1; fi

vet: ## run go vet, also in nested modules
	go vet ./...
	@for dir in $(NESTED); do (set -x; go -C $$dir vet ./...) || exit 1; done

# Tools with the versions of internal/release/go.mod.
TOOL := go tool -modfile=internal/release/go.mod

lint: staticcheck luacheck actionlint ## run staticcheck, luacheck and actionlint

actionlint:
	$(TOOL) actionlint

# A file proxy serves the checkout, so the checks need the network only for the database of vulnerabilities.
release-check: mod ## check what a release promises: API, licences, module files, an adopter's first minutes, vulnerabilities
	go -C internal/release test -count=1 ./...
	go -C internal/release run .

staticcheck:
	go run $(STATICCHECK) ./...
	go -C $(LAB) run $(STATICCHECK) ./...

# There is no pipe from go run: if go run failed, luacheck would pass an empty script.
luacheck:
	@.ci/install luacheck lua-check luacheck luacheck luacheck
	@script=$$(go run ./internal/luasource) || exit 1; \
	printf '%s\n' "$$script" | luacheck --no-color --config .luacheckrc --filename script.lua -

fuzz: redis ## run every fuzz target for FUZZTIME (10s)
	@listed=$$(go test -list '^Fuzz' ./...) || { echo "$$listed" >&2; exit 1; }; \
	printf '%s\n' "$$listed" | awk '/^Fuzz/ { names = names " " $$1 } \
		$$1 == "ok" { n = split(names, name, " "); for (i = 1; i <= n; i++) print $$2, name[i]; names = "" }' | \
	while read -r package target; do \
		(set -x; go test -run '^$$' -fuzz "^$$target\$$" -fuzzminimizetime 1x -fuzztime $(FUZZTIME) "$$package" </dev/null) || exit 1; \
	done

bench: redis ## compare with peers for ten minutes, into internal/lab/bench/RESULTS.md
	go -C $(LAB) run ./bench -o bench

bench-smoke: redis ## run each benchmark for an instant: fail on allocations, ignore times
	go -C $(LAB) run ./bench -quick

mutants: redis ## break the code that decides MUTANTS (200) times, and count what the tests notice; takes hours
	go -C $(LAB) run ./mutants -n $(MUTANTS) -seed $(SEED)

fleet: ## simulate fleets with outages and deploys from SEEDS (0-99), a day of one fleet, and bugs of the past that are put back
	PENSTOCK_SEEDS=$(SEEDS) go test -count=1 -run TestFleet ./algorithms/internal/fleet
	PENSTOCK_DAY=24h go test -count=1 -timeout 30m -run TestDay ./algorithms/internal/fleet
	go -C $(LAB) run ./mutants -past

soak: redis ## trouble Redis under load for SOAK (10m), and check the promises
	go -C $(LAB) run ./soak -for $(SOAK)

late: redis ## keep both cores busy for LATE (4m), stop a process now and then, and check that its circuit stays closed
	PENSTOCK_LATE=$(LATE) go test -count=1 -v -run TestLateProcess ./algorithms/shared

night: redis prometheus ## give pairs of the example one fault each under load, beside Prometheus: which alert fires, and what names the cause
	PENSTOCK_NIGHT=1 go test -count=1 -v -parallel 6 -timeout 40m -run '^TestNight$$' ./examples/chi-server

herd: ## simulate crowds of denied clients, and write internal/lab/herd/RESULTS.md
	go -C $(LAB) run ./herd -o herd

fair: redis ## nine tenants beside one that asks for everything: a table and a picture in internal/lab/fair
	go -C $(LAB) run ./fair -o fair

outage: redis ## kill Redis under four rate limiters, let it stall, and draw what clients notice into internal/lab/outage
	go -C $(LAB) run ./outage -o outage
	cp internal/lab/outage/outage.svg examples/chi-server/playground/assets/
	go -C $(LAB) run ./outage -story ../../examples/chi-server/playground/assets/redis-dies.json

accuracy: ## compare each algorithm with an exact log, and write internal/lab/accuracy/ACCURACY.md
	go -C $(LAB) run ./accuracy -o accuracy

peers: redis ## hold limiters of other libraries to the same promises for four minutes, and write internal/lab/peers/RESULTS.md
	go -C $(LAB) run ./peers -o peers

report: ## print lines, density and names of each package
	@go run ./internal/report

mod: ## check go.mod and go.sum
	go mod tidy -diff && go mod verify
	@for dir in $(NESTED); do (set -x; go -C $$dir mod tidy -diff && go -C $$dir mod verify) || exit 1; done

check: ## run everything that a change must pass
	@.ci/run

# The jobs of CI. Each runs by itself, too.
check-lint: fmt-check mod vet cross lint release-check
# The fast tests run once more without Redis: with Redis they are a part of make test.
check-test: test test-race test-386 test-routers test-lab
	REDIS_SERVER=none .ci/short
check-long: test-long test-valkey test-oldest
check-clients: test-e2e test-clients bench-smoke
