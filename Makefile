# Larder: a daemon that stands between the programs on one machine and a REST API.
# `make` alone lists what there is to do.

PREFIX  ?= /usr/local
DESTDIR ?=
# Where systemd and sysusers look for a package's files; PREFIX=/usr gives the distribution's own folders.
UNITDIR     ?= $(PREFIX)/lib/systemd/system
SYSUSERSDIR ?= $(PREFIX)/lib/sysusers.d
SHAREDIR    ?= $(PREFIX)/share/larder

SWIFT ?= swift
# Debug builds, for tests, and release builds keep apart in .build; the release build brings its own Swift runtime.
RELEASE  = -c release --static-swift-stdlib
# What `make lint` builds with; STRICT=1 has the tests use the same build instead of one of their own.
STRICT  ?=
strict   = -Xswiftc -warnings-as-errors
# Package.swift leaves out what the tests of this room do not need.
ROOM    =
ifneq ($(ROOM),)
ifeq ($(wildcard Tests/$(ROOM)Tests),)
$(error there is no room called $(ROOM): take one of $(filter-out EndToEnd,$(patsubst Tests/%Tests,%,$(wildcard Tests/*Tests))))
endif
export LARDER_ROOM = $(ROOM)
endif
binary   = $(shell $(SWIFT) build $(RELEASE) --show-bin-path)/larder
sources  = Package.swift Sources Tests

.DEFAULT_GOAL := help
.PHONY: help build run clean-run test fuzz sanitize coverage soak conformance bench lint reference format man deb can-test-package test-package image can-test-image test-image test-network install uninstall clean dependencies

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

dependencies:
	@scripts/check-swift $(firstword $(SWIFT))
	@scripts/dependencies build

build: dependencies ## build the release binary
	$(SWIFT) build $(RELEASE) --product larder
	@scripts/check-linkage $(binary)

run: build ## run it before the bundled sample API, or before UPSTREAM=https://…; LISTEN=, ADMIN=, STORE= choose other places
	@scripts/dependencies run
	@scripts/run $(binary) $(ARGUMENTS)

clean-run: ## forget what `make run` has stored
	rm -rf .build/run

test: dependencies ## run all tests, the whole daemon included; ROOM=Store builds and runs those of one room, FILTER=… some of them
	@scripts/dependencies test
	$(SWIFT) build --build-tests $(if $(STRICT),$(strict))
	@scripts/test $(SWIFT) test --skip-build --disable-xctest $(if $(STRICT),$(strict)) $(if $(FILTER),--filter '$(FILTER)')

fuzz: dependencies ## try the parsers with made-up inputs: TARGET=request, response, json, composer, store or fields, SECONDS=60 each, INPUT=FILE again
	@scripts/dependencies test
ifneq ($(TARGET),fields)
	@scripts/fuzz $(SWIFT) '$(or $(INPUT),$(SECONDS),60)' $(or $(TARGET),request response json composer store)
endif
ifneq ($(filter fields,$(or $(TARGET),fields)),)
	$(SWIFT) build --build-tests
	LARDER_FUZZ_ROUNDS=$(or $(ROUNDS),100000) $(if $(SEED),LARDER_FUZZ_SEED=$(SEED)) \
		$(SWIFT) test --skip-build --disable-xctest --filter 'FuzzTests'
endif

sanitize: dependencies ## run the tests but the end-to-end ones, and a short soak, with the thread and the address sanitizer; SANITIZER=, FILTER=, SEEDS=
	@scripts/dependencies test
	@failed=0; for sanitizer in $(or $(SANITIZER),thread address); do \
		SEEDS='$(SEEDS)' SEED='$(SEED)' scripts/sanitize $(SWIFT) $$sanitizer '$(FILTER)' || failed=1; done; exit $$failed

coverage: dependencies ## show by room how much of the sources the tests run; FILTER=… instead of all but the end-to-end ones
	@scripts/dependencies test
	@scripts/coverage $(SWIFT) '$(FILTER)'

soak: build ## random histories against the reference model: STEPS=1000000, MINUTES=…, JOBS=…, SEED=… for one history alone; FLEET=1 for several machines
	@scripts/dependencies test
	$(SWIFT) build --build-tests
	LARDER_SOAK=1 LARDER_BINARY='$(binary)' $(if $(wildcard /dev/shm),TMPDIR=/dev/shm) $(if $(STEPS),LARDER_SOAK_STEPS=$(STEPS)) \
		$(if $(MINUTES),LARDER_SOAK_MINUTES=$(MINUTES)) $(if $(JOBS),LARDER_SOAK_JOBS=$(JOBS)) \
		$(if $(SEED),LARDER_SOAK_SEED=$(SEED)) $(if $(SEEDS),LARDER_SOAK_SEEDS=$(SEEDS)) \
		$(SWIFT) test --skip-build --disable-xctest --filter '$(if $(FLEET),FleetHistoryTests.*thousands,SoakTests|KintoTests.*requests)'

conformance: build ## run an independent suite of tests for HTTP caches; CACHE_TESTS=FOLDER has a clone of it, TEST=… shows one test
	@scripts/conformance '$(binary)' $(TEST)

bench: build ## measure it against nginx, a bare epoll loop and bare SQLite; CORPUS=… adds recorded responses, ARGUMENTS='--help' has more
	@scripts/dependencies bench
	@Benchmarks/run $(binary) $(if $(CORPUS),--corpus '$(CORPUS)') $(ARGUMENTS)

lint: dependencies ## check the formatting, the comments, and that nothing warns
	@scripts/dependencies lint
	@scripts/lint $(sources)
	$(SWIFT) build --build-tests $(strict)

reference: dependencies ## write config/larder.yaml and its schema anew from the table of keys
	@scripts/dependencies test
	LARDER_UPDATE_REFERENCE=1 $(SWIFT) test --disable-xctest --filter ConfigReferenceTests

format: ## put everything into the project's format
	$(SWIFT) format --in-place --parallel --recursive $(sources)

man: build ## build the man pages, for make install
	scripts/manual '$(binary)' .build/man

deb: build ## build the Debian package, into .build/deb
	@scripts/dependencies deb
	@mkdir -p .build/deb
	@rm -f .build/deb/*.deb
	LARDER_BINARY='$(binary)' DEB_FOLDER=.build/deb debian/rules clean binary

# Asked before the release build, which takes minutes.
can-test-package:
	@if reason=$$(scripts/test-package --reason-against); then echo "the package cannot be tested here: $$reason" >&2; exit 1; fi

test-package: can-test-package deb ## install the Debian package in a bare system, use it, upgrade it and purge it
	@scripts/test-package .build/deb/larder_*.deb

image: deb ## build the container image from the Debian package, by buildah, into .build/image; BASE=… names another base
	@scripts/dependencies image
	@rm -rf .build/image
	@for package in .build/deb/larder_*.deb; do scripts/image "$$package" ".build/image/$$(basename "$${package%.deb}").tar.gz"; done

can-test-image:
	@if reason=$$(scripts/test-image --reason-against); then echo "the image cannot be tested here: $$reason" >&2; exit 1; fi

test-image: can-test-image image ## run the container image without an engine, and ask through it
	@scripts/test-image .build/image/larder_*.tar.gz

test-network: build ## measure how it serves while the network is bad, and what a fleet promises then, in network namespaces (needs root)
	@scripts/test-network '$(binary)'

install: ## install what `make build` has built under PREFIX (default /usr/local), below DESTDIR if given
	@test -x '$(binary)' || { echo 'run `make build` first; install never builds' >&2; exit 1; }
	@scripts/install-files $(binary) '$(DESTDIR)' '$(PREFIX)' '$(SHAREDIR)' '$(UNITDIR)' '$(SYSUSERSDIR)'

uninstall: ## remove what install has put there, but no store
	rm -f '$(DESTDIR)$(PREFIX)/bin/larder' '$(DESTDIR)$(UNITDIR)/larder.service' '$(DESTDIR)$(UNITDIR)/larder.socket'
	rm -f '$(DESTDIR)$(SYSUSERSDIR)/larder.conf'
	rm -f '$(DESTDIR)$(PREFIX)/share/bash-completion/completions/larder'
	rm -f '$(DESTDIR)$(PREFIX)/share/zsh/site-functions/_larder'
	rm -f '$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/larder.fish'
	rm -f '$(DESTDIR)$(PREFIX)'/share/man/man1/larder*.1 '$(DESTDIR)$(PREFIX)'/share/man/man5/larder*.5
	rm -rf '$(DESTDIR)$(SHAREDIR)' '$(DESTDIR)$(PREFIX)/share/doc/larder'

clean: ## remove everything that was built
	$(SWIFT) package clean
	rm -rf .build .build-* Benchmarks/.build
