# SPDX-License-Identifier: GPL-2.0
#
# The ways in: `make help` lists them. Each job is done by a program of its own
# (vm/run, test/check, bench/demo); here they only get a name, and the module
# and the CLI are built and installed for the machine one sits at.

VERSION := $(shell sed -n 's/^SHUNT_VERSION ?= *//p' module/Kbuild)
KDIR ?= /lib/modules/$(shell uname -r)/build
PREFIX ?= /usr/local
DKMS_SRC := $(DESTDIR)/usr/src/tcp_shunt-$(VERSION)

help: ## what can be made
	@echo 'make TARGET; the targets:'
	@sed -n 's/^\([a-z-]*\):.*## /  \1\t/p' Makefile | expand -t 20
	@echo 'KDIR, PREFIX and DESTDIR may be set; all of it is in CONTRIBUTING.md.'

all: module cli ## the module for the running kernel, and the CLI

module: ## module/tcp_shunt.ko, for the kernel of KDIR
	@test -d "$(KDIR)" || { echo "no kernel headers in $(KDIR); run: apt-get install linux-headers-$$(uname -r)" >&2; exit 1; }
	$(MAKE) -C "$(KDIR)" M="$(CURDIR)/module" modules

cli: ## ./shunt, static
	vm/go build -trimpath -ldflags '-X main.version=$(VERSION)' -o shunt ./cmd/shunt

bpf: ## the BPF programs anew (needs clang and libbpf-dev)
	vm/go generate ./internal/... ./test/...

install: module install-cli ## module, CLI and man pages on this machine
	$(MAKE) -C "$(KDIR)" M="$(CURDIR)/module" INSTALL_MOD_DIR=updates \
		CONFIG_MODULE_SIG_ALL= $(if $(DESTDIR),INSTALL_MOD_PATH="$(DESTDIR)") modules_install
	$(if $(DESTDIR),,depmod "$$(cat "$(KDIR)/include/config/kernel.release")")

install-cli: cli ## only CLI and man pages
	install -Dm755 shunt "$(DESTDIR)$(PREFIX)/sbin/shunt"
	install -Dm644 -t "$(DESTDIR)$(PREFIX)/share/man/man8" docs/man/*.8
	install -Dm644 -t "$(DESTDIR)$(PREFIX)/share/man/man5" docs/man/*.5

dkms: ## the module by DKMS: built again for each new kernel
	rm -rf "$(DKMS_SRC)"
	install -d "$(DKMS_SRC)"
	cp -r module "$(DKMS_SRC)/module"
	install -m644 packaging/dkms.conf "$(DKMS_SRC)/dkms.conf"
	$(if $(DESTDIR),,dkms install --force tcp_shunt/$(VERSION))

uninstall: ## what install and dkms put on this machine
	-dkms remove tcp_shunt/$(VERSION) --all 2>/dev/null
	rm -rf "$(DKMS_SRC)" "$(DESTDIR)"/lib/modules/*/updates/tcp_shunt.ko*
	rm -f "$(DESTDIR)$(PREFIX)/sbin/shunt" "$(DESTDIR)$(PREFIX)"/share/man/man[58]/shunt*.[58]
	$(if $(DESTDIR),,-depmod)

check: ## every test, in the test machine too (half an hour)
	test/check

demo: ## what it brings, in one table, in the test machine
	vm/deps
	bench/demo

clean: ## what building left in the tree
	rm -f shunt
	find module \( -name '*.o' -o -name '*.ko' -o -name '*.mod' -o -name '*.mod.c' \
		-o -name '.*.cmd' -o -name '.*.o' -o -name Module.symvers -o -name modules.order \) -delete

.PHONY: help all module cli bpf install install-cli dkms uninstall check demo clean
