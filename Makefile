# Every target does its own set-up on a Debian machine with Go 1.26, make and git.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
export PATH := $(PATH):/usr/local/go/bin
# Commands, tests and the VM's tests are built alike, so that what they share is compiled once; the race detector needs cgo.
export CGO_ENABLED = 0

# A number of runs, not a duration: the end of a duration can fail a sound test (go.dev/issue/75804).
FUZZTIME ?= 100000x
SOAK_RUNS ?= 1000
CHURN_CALLS ?= 100000
CHURN_SEED ?=
NETWORK_CALLS ?= 10000
SIEGE_FOR ?= 10m
SIEGE_RATIO ?=
SIEGE_ONLY ?=
# Packages that are tested at once. Most of their time they wait for processes.
TEST_AT_ONCE ?= 3
TEST_FLAGS ?=
VET ?= go vet ./...
RACE_FLAGS ?=
BENCH_FLAGS ?=
PEERS_FLAGS ?=
VM_FLAGS ?=
# What the race detector need not see beside packages that start no goroutine: those whose tests drive finished binaries.
RACE_LEAVES_OUT = /(bench|cmd/toolsdk|examples/(hosts/minimal|tools/(fetch|wordcount|python/test))|internal/(archtest|cli/manual|siege|testenv/.*|tools/(adapter|callargs|command)))$$
# SQLite is C made Go: memory of its own, which the detector takes ten times as long for and knows nothing of.
RACE_BUILD = -race -gcflags=modernc.org/sqlite/lib=-race=false -gcflags=modernc.org/libc=-race=false
# Tests take the commands from here instead of linking them anew in each package.
test race browser fleet fleet-suites interop network networkload conformance servers tutorials soak siege: export TEST_TOOLHOST_BIN = $(CURDIR)/bin
# What `make kernel` tests in the VM. A package in this list must have tests, and some must pass.
VM_PACKAGES ?= ./cgroup ./supervisor ./internal/cli/doctor ./cmd/toolhost
# Tests of wire formats, questions, clocks, terminals, configuration and the host's own memory, to which the kernel is all the same, and of granted folders, which the VM's file system cannot map: `make test` runs them.
VM_SKIP ?= ^Test(NotReadyWithoutDescriptors|ACommandWaitsForItsStart|ACallWaitsForItsRecord|AnAbortBesideTheRecordLeavesNothing|Program|ACommandWhoseProcessHasEnded|EmptyPartsTakeNoMemory|FloodIsBoundedAndCounted|ALockKeepsCallsOfAllHostsApart|TimeoutKeepsWhatWasFlushed|GrantsOfOwnFilesAreRefused|ExplainWithoutASandbox|WhyNothingIsPrestarted|BrokenHandshakes|DescribesAreShared|ProfilesOfTheOperator|CallAsksOnTheTerminal|CallIsAnsweredElsewhere|CallOfADaemonThatHangs|Top|TablesOfHostileTools|ErrorsNameHostileTools|ConfigErrorsAreALineEach|ValidateEndsItsLines|(Ps|Explain|Help)FitsThePage|ApprovalTimeoutIsConfigured|TurnCalls|OddJSONOfATool|BrokenProtocol|HostileButOK|QuestionFloodEnds|TimeoutOfARequest|TimeoutHint|SoftBudgetHint|ALateStartNamesWhatIsLate|AQuestionIsAnswered|ResultDuringGraceCounts|WhatWasFoundInTheJournalIsTold|Telling|LiveViewOfATurn|ANameOnATerminal|SecretOnATerminal|ApprovalOnATerminal|ApprovalOfLongArguments|PlainTerminal|HeadlessQuestions|AnOutboundProxy|PeopleAreAskedAboutNames|AToolThatGivesUp|EachKeyOnWorkers|NobodyIsAskedAboutNames|TheCeiling|JSONOnATerminal|TheOutcomeHasItsOwnLine)$$

# PROGRAM=PACKAGE or /FILE=PACKAGE that tests run; node runs the reference MCP servers, grpc the tool in Python.
TEST_NEEDS = dbus-daemon=dbus pgrep=procps newuidmap=uidmap git=git node=nodejs npm=npm jq=jq rg=ripgrep sqlite3=sqlite3 chromium=chromium curl=curl man=man-db \
	/usr/bin/python3=python3 /usr/lib/python3/dist-packages/grpc/__init__.py=python3-grpcio

# And what `make network` runs, with the servers.
NETWORK_NEEDS = wget=wget ssh=openssh-client /usr/sbin/sshd=openssh-server musl-gcc=musl-tools javac=default-jdk-headless psql=postgresql-client \
	/usr/share/doc/postgresql=postgresql /bin/busybox=busybox-static openssl=openssl perl=perl bwrap=bubblewrap socat=socat ip=iproute2 \
	/usr/lib/python3/dist-packages/requests/__init__.py=python3-requests /usr/lib/python3/dist-packages/pip/__init__.py=python3-pip \
	ruby=ruby /usr/share/perl5/LWP/UserAgent.pm=libwww-perl /usr/share/perl5/LWP/Protocol/https.pm=liblwp-protocol-https-perl php=php-cli /usr/share/doc/php8.2-curl=php-curl \
	/usr/share/doc/php8.2-mbstring=php-mbstring /usr/share/doc/php8.2-zip=php-zip composer=composer lua5.4=lua5.4 /usr/share/lua/5.4/socket.lua=lua-socket /usr/share/lua/5.4/ssl.lua=lua-sec tclsh=tcl \
	/usr/share/doc/tcl-tls=tcl-tls /usr/lib/python3/dist-packages/aiohttp/__init__.py=python3-aiohttp /usr/lib/python3/dist-packages/httpx/__init__.py=python3-httpx \
	/usr/share/doc/python3-pycurl=python3-pycurl /usr/lib/python3/dist-packages/websockets/__init__.py=python3-websockets /usr/bin/cargo=cargo git-lfs=git-lfs hg=mercurial \
	svnserve=subversion rsync=rsync lftp=lftp aria2c=aria2 axel=axel wget2=wget2 w3m=w3m http=httpie rclone=rclone nghttp=nghttp2-client mariadb=mariadb-client mariadbd=mariadb-server \
	redis-cli=redis-tools redis-server=redis-server mosquitto_pub=mosquitto-clients /usr/sbin/mosquitto=mosquitto swaks=swaks nc=netcat-openbsd dig=bind9-dnsutils

COMMANDS = $(patsubst %/,./%,$(sort $(dir $(wildcard cmd/*/*.go examples/tools/*/*.go examples/hosts/*/*.go))))
SOAK_PACKAGES = $(patsubst %,./%,$(wildcard supervisor cmd/toolhost internal/journal turn))
# The others do the same more often here than in `make test`.
SOAK_TESTS = ^Test(Soak|FloodIsBoundedAndCounted|LargeOutputIsAnsweredInTime|FlippedBits|FlippedBitsAfterACrash|KeptProcessesInDisorder|CallsLeaveNothingInTheHost|CallsKilledAtBirthLeaveNothing|KillTurns|Interleavings|ManySupervisedCalls)$$
BENCH_PACKAGES = $(if $(wildcard bench),./bench/...)
PROTO = plugin/proto/v1/plugin.proto
FLEET_PROTO = fleet/proto/v1/fleet.proto
LAUNCHERS = sandbox/launcher_linux_amd64 sandbox/launcher_linux_arm64

# $(call need,PROGRAM=PACKAGE ...) installs what is missing, as root, or says what is missing.
need = ./internal/testenv/need $(1)
# $(call or_die,CONDITION,MESSAGE)
or_die = { $(1); } || { echo "make: $(2)" >&2; exit 1; }

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z][a-z-]*:.*## / { printf "  %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: setup
setup:
	@$(call or_die,command -v go >/dev/null,Go is missing: install Go 1.26 from https://go.dev/dl/)
	@[ -n "$${SSL_CERT_FILE:-}$${SSL_CERT_DIR:-}" ] || ! command -v apt-get >/dev/null || $(call need,/etc/ssl/certs/ca-certificates.crt=ca-certificates)

.PHONY: setup-cc
setup-cc: setup
	@$(call need,gcc=gcc /usr/include/stdio.h=libc6-dev)

.PHONY: setup-all
setup-all: setup-proto setup-launcher ## install what the targets of .ci/run need
	@$(call need,$(TEST_NEEDS) qemu-system-x86_64=qemu-system-x86)

.PHONY: build
build: setup ## build all commands, example tools and example hosts into bin/
	@$(call or_die,[ -n "$(COMMANDS)" ],there is no command to build)
	go build -o bin/ $(COMMANDS)

.PHONY: demo
demo: build ## see it work: run examples/demo.sh
	./examples/demo.sh

.PHONY: test
test: build ## go vet, and all tests but those with targets of their own
	@$(call need,$(TEST_NEEDS))
	$(VET)
	AT_ONCE=$(TEST_AT_ONCE) ./internal/testenv/all $(TEST_FLAGS)

# The detector computes where the tests alone wait: few packages keep two processors busy. Without GORACE each process that
# tests begin would sleep for a second at its end.
RACE = GORACE=atexit_sleep_ms=0 CGO_ENABLED=1 AT_ONCE=3 ONLY_GOROUTINES=yes LEAVE_OUT='$(RACE_LEAVES_OUT)' ./internal/testenv/all
.PHONY: race
race: setup-cc build ## the tests of packages with goroutines, under the race detector
	@$(call need,$(TEST_NEEDS))
	$(RACE) $(RACE_BUILD) -parallel 4 $(RACE_FLAGS)

# What `make race` compiles, ahead of it and without linking.
.PHONY: race-compile
race-compile: setup-cc
	COMPILE_ONLY=yes $(RACE) $(RACE_BUILD)

# $(call stage,NAME,EXPRESSION,PACKAGES) runs tests that `make test` leaves out (internal/testenv/stage); none may be left out here.
stage = TOOLHOST_TEST_STAGE=$(1) go test -count=1 -p 1 -parallel 4 -v -timeout 1h -run '$(2)' $(3) | \
	awk '{ print; fflush() } /^ *--- SKIP/ { skipped = 1 } /^ok .*no tests to run/ { skipped = 1 } /^--- PASS/ { ok = 1 } \
		END { if (skipped || !ok) { print "make: a test of stage $(1) did not run"; exit 1 } }'

.PHONY: browser
browser: build ## a headless Chromium uses the web console
	@$(call need,$(TEST_NEEDS))
	$(call stage,browser,^TestInABrowser$$,./internal/serve/console)

.PHONY: fleet
fleet: build ## workers, callers and servers that are gone for good, which takes as long as a lease, and the tutorial on two machines
	@$(call need,$(TEST_NEEDS) ip=iproute2 openssl=openssl)
	$(call stage,fleet,^Test(AWorkerIs(Gone|Stopped)|Remove|ACallerIsGone|AServerIsKilled|TheRuleHoldsWithAnImpliedGo|TheTutorialOnTwoMachines)$$,./fleet ./fleet/internal/start ./cmd/toolhost)

.PHONY: fleet-suites
fleet-suites: build ## the tests of supervisor and turn over fleets: without a worker, with one, and with three NATS servers
	@$(call need,$(TEST_NEEDS))
	$(call stage,fleet-suites,^TestSuitesOverFleets$$,./fleet)

# FLEET_PAUSE is the longest pause between two faults of a party: with 10s workers are full nearly all the time.
FLEET_FAULTS ?= 1000
FLEET_PAUSE ?= 500ms
.PHONY: fleet-soak
fleet-soak: build ## FLEET_FAULTS random faults of callers, workers, the servers between them, links, disks and clocks under calls, each judged by what its tool has done
	@$(call need,$(TEST_NEEDS))
	./internal/testenv/clockstep/overlay bin/clockstep
	FLEET_FAULTS=$(FLEET_FAULTS) FLEET_PAUSE=$(FLEET_PAUSE) $(call stage,fleet-soak,^TestFleetSoak$$,-overlay=$(CURDIR)/bin/clockstep/overlay.json -tags=clockstep ./fleet)

# Its waits are of a machine that does nothing else.
.PHONY: fleet-load
fleet-load: build ## how long calls wait for one of 48 worker processes at 85% and at 95% load, beside a queue group
	@$(call need,$(TEST_NEEDS))
	$(call stage,fleet-load,^TestFleetLoad$$,./fleet)

.PHONY: interop
interop: build ## the reference MCP servers, the MCP Inspector, and clients in TypeScript and Go
	@$(call need,$(TEST_NEEDS))
	$(call stage,interop,^TestScripts$$/^mcp_servers$$|^Test(Pairs|Hostile(Servers|Clients)|Inspector|DocumentedInspector|TypeScriptClient|EverythingServer|FilesystemServer|MemoryServer|ALongOperationIsStopped)$$,./cmd/toolhost ./internal/tools/adapter/mcp ./internal/serve/mcpserver ./internal/testenv/mcpsuite)

.PHONY: network
network: build ## programs and examples that reach servers by name, and what is refused them, beside npm's sandbox-runtime; prints a table
	@$(call need,$(TEST_NEEDS) $(NETWORK_NEEDS))
	$(call stage,network,^Test(Programs|TheExample)$$,./internal/testenv/programs)

.PHONY: conformance
conformance: build ## the MCP project's own conformance suite, for servers and for clients
	@$(call need,$(TEST_NEEDS))
	$(call stage,conformance,^Test((Client)?Conformance|EveryKind)$$,./internal/testenv/mcpsuite)

.PHONY: clients
clients: build ## four clients of MCP servers, by each feature, over both transports: a table; programs that read what mcp install writes
	@$(call need,$(TEST_NEEDS))
	$(call stage,clients,^Test(Clients|ProgressBesideAResult|OwnParsers)$$,./internal/testenv/mcpsuite)

.PHONY: servers
servers: build ## twelve MCP servers that people use, from npm, wrapped: used, and killed at a deadline
	@$(call need,$(TEST_NEEDS))
	$(call stage,servers,^TestServers$$,./internal/testenv/mcpsuite)

.PHONY: tutorials
tutorials: build ## what the tutorial for tool authors says, typed and compiled
	@$(call need,$(TEST_NEEDS))
	$(call stage,tutorials,^TestTheTutorials(Code|Commands)$$,./cmd/toolsdk)

.PHONY: soak
soak: build ## run the stubborn tool SOAK_RUNS times (1000), 16 at once, and look for leftovers
	@$(call or_die,[ -n "$(SOAK_PACKAGES)" ],there is no package to soak)
	TOOLHOST_SOAK_RUNS=$(SOAK_RUNS) go test -count=1 -p 1 -v -timeout 1h -run '$(SOAK_TESTS)' $(SOAK_PACKAGES) | \
		awk '{ print; fflush() } /^--- PASS: TestSoak/ { ok = 1 } END { if (!ok) { print "make: no soak test passed"; exit 1 } }'

# Their lab is a network and mount namespace of its own, so they take root.
.PHONY: networkload
networkload: build ## many connections and bytes, and NETWORK_CALLS calls (10000) that are killed with full buffers, over the network by name
	TOOLHOST_NETWORK_CALLS=$(NETWORK_CALLS) $(call stage,networkload,^Test(AThousandIdleConnections|OneGigabyteEachWay|TenThousandConnections|CallsWithFullBuffersLeaveNothing|AFloodDelaysNoKill)$$,./supervisor)

.PHONY: churn
churn: setup ## make CHURN_CALLS short calls (100000), 16 at once; host and zygote must need no more than before
	TOOLHOST_CHURN_CALLS=$(CHURN_CALLS) TOOLHOST_CHURN_SEED=$(CHURN_SEED) go test -count=1 -v -timeout 12h -run '^TestChurn$$' ./cmd/toolhost

# SIEGE_RATIO=3 is for a machine that does nothing else. SIEGE_ONLY=EXPRESSION picks clients and "calls TOOL" by name.
.PHONY: siege
siege: build ## a daemon with 512 MiB under hostile tools and clients for SIEGE_FOR (10m), and a report
	TOOLHOST_SIEGE=$(SIEGE_FOR) TOOLHOST_SIEGE_RATIO=$(SIEGE_RATIO) TOOLHOST_SIEGE_ONLY='$(SIEGE_ONLY)' \
		go test -count=1 -v -timeout 12h -run '^TestSiege$$' ./internal/siege

# Two tokens, one greedy: p99 of the other's calls, judged where the machine does nothing else (load under 2).
.PHONY: greedy
greedy: build ## one agent's calls beside another that has 1,000 queued, bodies of 8 MiB and 300 streams; a ratio
	$(call stage,greedy,^TestGreedy$$,./internal/serve/daemon)

.PHONY: flood
flood: build ## h2load and slowhttptest against a daemon whose other client goes on
	@$(call need,h2load=nghttp2-client slowhttptest=slowhttptest)
	$(call stage,flood,^TestFloods$$,./internal/serve/daemon)

.PHONY: nightly
nightly: ## what .ci/run leaves out or does in small numbers; takes hours
	$(MAKE) race
	$(MAKE) kernel VM_SKIP=
	$(MAKE) soak churn fleet-suites fleet-soak fleet-load network networkload siege greedy flood collector clients servers service fuzz

.PHONY: kernel
kernel: setup ## run VM_PACKAGES' tests on a real cgroup v2 kernel in a small VM
	@$(call need,qemu-system-x86_64=qemu-system-x86)
	go run ./internal/testenv/vm -each 20m -all 1h -skip '$(VM_SKIP)' $(VM_FLAGS) $(VM_PACKAGES)

.PHONY: packages
packages: setup ## build the deb and the rpm into dist/ (VERSION, ARCH; see deploy/build-packages)
	./deploy/build-packages dist

# Two versions of each package, so that one can be upgraded to the other. A second processor only costs the emulator time.
.PHONY: service
service: setup ## install, run, upgrade and remove toolhost under a real systemd in a small VM
	@$(call need,qemu-system-x86_64=qemu-system-x86 debootstrap=debootstrap cpio=cpio)
	for version in 1.0.0 2.0.0; do \
		VERSION=$$version ARCH=amd64 DEB_COMPRESSION=none ./deploy/build-packages dist/service; \
	done
	go run ./internal/testenv/vm -system -cpus 1 -each 25m -all 30m $(VM_FLAGS) -add dist/service/toolhost_1.0.0-1_amd64.deb=/packages/old.deb \
		-add dist/service/toolhost_2.0.0-1_amd64.deb=/packages/new.deb \
		-add dist/service/toolhost-1.0.0-1.x86_64.rpm=/packages/old.rpm -add dist/service/toolhost-2.0.0-1.x86_64.rpm=/packages/new.rpm \
		./internal/testenv/service

# It needs 316 MB of modules that nothing else does.
.PHONY: collector
collector: setup ## have what is sent over OTLP taken by the OpenTelemetry Collector's own receiver
	go test -count=1 -tags collector -run '^TestRealCollector$$' ./internal/serve/daemon

.PHONY: kernel-bench
kernel-bench: setup ## what supervision adds to a call on cgroup v2, in the same VM: a ratio, its times are emulated
	@$(call need,qemu-system-x86_64=qemu-system-x86)
	go run ./internal/testenv/vm -bench FreshCall -benchtime 100x $(VM_FLAGS) ./bench

.PHONY: fuzz
fuzz: setup ## run each fuzz test with FUZZTIME inputs (100000x)
	@list=$$(go test -list '^Fuzz' ./... | awk '/^Fuzz/ { f[++n] = $$1 } /^ok/ { for (i = 1; i <= n; i++) print $$2, f[i]; n = 0 }'); \
	$(call or_die,[ -n "$$list" ],there is no fuzz test); \
	while read -r package function; do \
		echo "fuzz $$package $$function"; \
		go test -run '^$$' -fuzz "^$$function$$" -fuzztime $(FUZZTIME) "$$package" </dev/null; \
	done <<<"$$list"

.PHONY: bench
bench: setup ## run the benchmarks
	@$(call or_die,[ -n "$(BENCH_PACKAGES)" ],there is no folder bench)
	go test -run '^$$' -bench . $(BENCH_FLAGS) $(BENCH_PACKAGES)

# Peers that are on PATH take part: go-judge, bwrap, runc, crun, firejail, nsjail, isolate, minijail0, landrun, srt, codex.
.PHONY: bench-peers
bench-peers: build ## toolhost beside the sandboxes that are on PATH, as Markdown and SVG in bench/results
	@$(call need,bwrap=bubblewrap)
	go run ./bench/peers $(PEERS_FLAGS)

.PHONY: lint
lint: setup ## gofumpt, go vet, staticcheck, govulncheck, go mod tidy
	@unformatted=$$(go tool gofumpt -l . | { xargs -r grep -LE '^// Code generated .* DO NOT EDIT\.$$' || true; }); \
	$(call or_die,[ -z "$$unformatted" ],not gofumpt-clean (go tool gofumpt -w .): $$unformatted)
	go vet ./...
	go vet -tags fleetsuite ./supervisor ./turn
	go tool staticcheck ./...
	@echo "go tool govulncheck ./..."; \
	code=0; said=$$(go tool govulncheck ./... 2>&1) || code=$$?; \
	if [ $$code = 0 ]; then echo "$$said"; \
	elif [ $$code != 3 ] && grep -q 'fetching vulnerabilities' <<<"$$said"; then \
		echo "WARNING: the vulnerability scan could NOT be done, the database cannot be reached: $$said"; \
	else echo "$$said" >&2; exit $$code; fi
	go mod tidy -diff

MODULE = github.com/toolhost/toolhost
# $(call generate,DIR): the service is generated into a package of its own, see there; plugins come from the tool lines of go.mod, so that go.mod pins their versions.
generate = go build -o bin/protoc/ google.golang.org/protobuf/cmd/protoc-gen-go google.golang.org/grpc/cmd/protoc-gen-go-grpc && \
	PATH="$(CURDIR)/bin/protoc:$$PATH" protoc -I . --go_out=$(1) --go_opt=paths=source_relative \
		--go-grpc_out=$(1) --go-grpc_opt='module=$(MODULE),M$(PROTO)=$(MODULE)/$(dir $(PROTO))toolgrpc;toolgrpc' $(PROTO) && \
	./plugin/proto/v1/toolgrpc/aliases $(PROTO) > $(1)/$(dir $(PROTO))toolgrpc/aliases.go && \
	PATH="$(CURDIR)/bin/protoc:$$PATH" protoc -I . --go_out=$(1) --go_opt=paths=source_relative $(FLEET_PROTO)

.PHONY: setup-proto
setup-proto: setup
	@$(call need,protoc=protobuf-compiler)

.PHONY: proto
proto: setup-proto ## regenerate the Go code of the wire contract
	$(call generate,.)

# protoc's own version stands in a comment of its output and may differ.
.PHONY: proto-check
proto-check: setup-proto ## fail if the generated code is stale
	@fresh=$$(mktemp -d); trap 'rm -rf "$$fresh"' EXIT; \
	$(call generate,"$$fresh"); \
	(cd "$$fresh" && find . -name '*.go') | while read -r file; do \
		$(call or_die,diff -u -I '^// [-[:space:]]*protoc  *v' "$$file" "$$fresh/$$file",$$file is stale: run make proto); \
	done

.PHONY: setup-launcher
setup-launcher: setup-cc
	@$(call need,x86_64-linux-gnu-gcc=gcc-x86-64-linux-gnu aarch64-linux-gnu-gcc=gcc-aarch64-linux-gnu \
		/usr/aarch64-linux-gnu/include/asm/unistd.h=linux-libc-dev-arm64-cross)

.PHONY: launcher
launcher: setup-launcher ## rebuild the launcher that package sandbox embeds, for each architecture
	for file in $(LAUNCHERS); do ./sandbox/launcher/build $$file; done

# The bytes depend on the compiler: sandbox/launcher/build says which one built those that are committed.
.PHONY: launcher-check
launcher-check: setup-launcher ## fail if an embedded launcher is not what its source builds; analyze the source, and fuzz what it decodes
	@fresh=$$(mktemp -d); trap 'rm -rf "$$fresh"' EXIT; \
	for file in $(LAUNCHERS); do \
		$(call or_die,[ -f "$$file" ],$$file is missing: run make launcher); \
		./sandbox/launcher/build "$$fresh/$${file##*/}"; \
		$(call or_die,cmp "$$file" "$$fresh/$${file##*/}",$$file is not what its source builds: run make launcher); \
		echo "$$file: reproduced"; \
	done; \
	./sandbox/launcher/build --analyze "$$fresh/analyzed_amd64"
	for fuzz in TheLaunchersDecoder TheAdaptersHeaders; do \
		TOOLHOST_TEST_STAGE=launcher-check go test -count=1 -run "^Test$$fuzz\$$" -fuzz "^Fuzz$$fuzz\$$" -fuzztime $(FUZZTIME) ./sandbox/internal/wire; \
	done

.PHONY: clean
clean: ## remove what the other targets built
	rm -rf bin dist
