# SPDX-License-Identifier: GPL-2.0
#
# make			the module, for the running kernel or KDIR=<its build folder>
# make install		into that kernel's modules
# make dkms-install	for all kernels whose headers are installed, now and later, through
#			DKMS
# make demo		unmodified programs between two virtual machines
# make try T=stream_close	one test program in User Mode Linux, with what changed (T= is
#			needed; without, how to run one test, on which kernel)
# make unit		the unit tests, in seconds (V=1: with all they say)
# make coverage		how many lines the unit tests run, and RUN='SET PROGRAM...' besides
#			(V=1: which lines no test does)
# make check		the tests on Debian's kernels, in virtual machines
# make check-debug	the tests on kernels that look for bugs
# make check-all	all of it, as far as it has not passed yet with the code as it is;
#			the result goes into Documentation/results.rst
# make bench		a report next to TCP, SMC-R, rsockets and verbs (ROUNDS=1: short)
# make style		checkpatch, sparse, shellcheck, comments and documents against
#			the code; silent when clean

KDIR ?= /lib/modules/$(shell uname -r)/build
MODULES := /lib/modules
DKMS := dkms
VERSION := $(shell sed -n 's/^PACKAGE_VERSION="\(.*\)"/\1/p' dkms.conf)
DKMS_SRC := /usr/src/hpsock-$(VERSION)
SETUP := selftests/vm/setup.sh

modules:
	$(MAKE) -C $(KDIR) M=$(CURDIR) modules

install: modules
	$(MAKE) -C $(KDIR) M=$(CURDIR) modules_install

# 77 is DKMS's word for a kernel that dkms.conf excludes. Where it fails, others have it still.
dkms-install:
	$(DKMS) remove hpsock/$(VERSION) --all >/dev/null 2>&1 || true
	rm -rf $(DKMS_SRC)
	mkdir -p $(DKMS_SRC)
	cp -r Kbuild dkms.conf COPYING af_hpsock include $(DKMS_SRC)/
	$(DKMS) add hpsock/$(VERSION)
	failed=; \
	for build in $(MODULES)/*/build/; do \
		[ -d "$$build" ] || { echo "no kernel headers are installed" >&2; failed=1; break; }; \
		dir=$${build%/build/}; \
		$(DKMS) install hpsock/$(VERSION) -k "$${dir##*/}" || [ $$? = 77 ] || failed=1; \
	done; \
	[ -d "$(MODULES)/$$(uname -r)/build/" ] || \
		echo "not installed for the running kernel, whose headers are not" >&2; \
	[ -z "$$failed" ]

clean:
	$(MAKE) -C $(KDIR) M=$(CURDIR) clean
	$(MAKE) -C selftests clean
	$(MAKE) -C tools clean

# T, K, DEV, F and V are the program, kernel, device, family and "verbose".
try: setup
	@T=$(T) K=$(K) DEV=$(DEV) F=$(F) V=$(V) selftests/vm/try

unit: setup
	@selftests/vm/unit $(if $(V),-v)

coverage: $(if $(RUN),programs,setup)
	@selftests/vm/coverage $(if $(V),-v) $(RUN)

# CHECK=ci is the selection that continuous integration has time for.
check: programs
	selftests/vm/check $(or $(CHECK),stock)

check-debug: programs
	selftests/vm/check debug

check-all: programs
	selftests/vm/check all

demo: programs
	selftests/demo/run

bench: programs
	selftests/bench/run all $(or $(ROUNDS),3)

style: setup
	@selftests/vm/style

setup:
	@$(SETUP)

programs: setup
	@$(MAKE) -s -C selftests
	@$(MAKE) -s -C tools

.PHONY: modules install dkms-install clean try coverage unit check check-debug check-all demo bench style setup programs
