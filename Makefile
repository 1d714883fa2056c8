# Targets for people. The variables below can be given on the command line: make bench PROFILE=jemalloc ARGS="--budget 60s"
PYTHON  ?= python3
PROFILE ?= intel-omp
ENGINE  ?= local
# What to train: cnn, segmentation, translation or loader, and with bench all of these; empty is the CNN.
WORKLOAD ?=
ARGS    ?=
# Of the image, to build it and to work in it: a name from images/variants.yaml (make variants); empty is the first of them.
VARIANT ?=
FROM    ?=
VENV    := .venv
RUNNER  := $(VENV)/bin/envkit
TRAINED := $(if $(WORKLOAD),--workload $(WORKLOAD))
# The image of VARIANT, for an ENGINE that has images; one with CUDA is not called after CPUs.
IMAGE := $(if $(filter cuda%,$(VARIANT)),envkit-$(VARIANT),envkit-cpu:$(VARIANT))
FILE := build/$(subst :,-,$(IMAGE))
IN_apptainer := --sif $(FILE).sif
IN_enroot := --sqsh $(FILE).sqsh
IN_IMAGE := $(if $(VARIANT),$(or $(IN_$(ENGINE)),--image $(IMAGE)))
# What builds images, or has one that is to be converted.
BUILDER := $(if $(filter podman,$(ENGINE)),podman,docker)
.DEFAULT_GOAL := help
.PHONY: help setup bench loader-grid ablate ablation-page tune tune-page matrix matrix-page compare-engines doctor profiles image sif sqsh variants stack gallery gallery-setup libraries dev test unit faults cases reliability simulated selection race-page first-run rivals rivals-cnn peers stacks modes experiments claims startup tune-nodes tune-noise same sessions planted long-steps book operators curves terminal-picture env-formats fleet-page fleet-diff mutants advice lint lock clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup:  ## install the locked dependencies into .venv
	@PYTHON="$(PYTHON)" images/setup $(VENV)

bench: setup  ## measure PROFILE (default intel-omp) against the baseline and report (WORKLOAD=all: on every workload)
	@$(RUNNER) bench $(PROFILE) --engine $(ENGINE) $(IN_IMAGE) $(TRAINED) $(ARGS)

loader-grid: setup  ## time of the input against batch size, for each number of DataLoader workers (7 minutes)
	@$(RUNNER) loader-grid --engine $(ENGINE) $(IN_IMAGE) $(ARGS)

matrix: setup  ## measure every profile that applies here in one run, and rank them (2 minutes for each)
	@$(RUNNER) matrix --engine $(ENGINE) $(IN_IMAGE) $(TRAINED) $(ARGS)

ablate: setup  ## take PROFILE apart: which of its settings makes it faster? (90 seconds for each part)
	@$(RUNNER) ablate $(PROFILE) --engine $(ENGINE) $(IN_IMAGE) $(TRAINED) $(ARGS)

tune: setup  ## search for the best environment on this machine, confirm it, and write it as the profile 'tuned'
	@$(RUNNER) tune --engine $(ENGINE) $(IN_IMAGE) $(TRAINED) $(ARGS)

compare-engines: setup  ## measure PROFILE under the engines local, docker and apptainer: what a container costs
	@$(RUNNER) compare-engines $(PROFILE) $(if $(VARIANT),--image $(IMAGE) $(IN_apptainer)) $(TRAINED) $(ARGS)

doctor: setup  ## find what is wrong with PROFILE or this machine before measuring
	@$(RUNNER) doctor $(PROFILE) --engine $(ENGINE) $(IN_IMAGE) $(ARGS)

image: dev  ## build the OCI image envkit-cpu with Docker, or ENGINE=podman (VARIANT=conda with conda-forge's allocators)
	@images/build oci --engine $(BUILDER) $(if $(VARIANT),--variant $(VARIANT))

sif: dev  ## build build/envkit-cpu.sif for Apptainer, or convert a built image: FROM=envkit-cpu
	@images/build sif $(if $(VARIANT),--variant $(VARIANT)) $(if $(FROM),--from $(FROM) --engine $(BUILDER))

sqsh: dev  ## make build/envkit-cpu.sqsh for Enroot and Pyxis, out of the image that Docker (or ENGINE=podman) has
	@images/build sqsh --engine $(BUILDER) $(if $(VARIANT),--variant $(VARIANT)) $(if $(FROM),--from $(FROM))

variants: dev  ## list the variants of the image
	@$(VENV)/bin/python images/variants.py list

stack: dev  ## make .venv-VARIANT, the Python packages of a variant, for the local engine: VARIANT=book
	@images/stack "$(VARIANT)"

gallery-setup: dev  ## make .venv-gallery, with what the trainings in benchmarks/gallery need
	@images/stack gallery

gallery: gallery-setup  ## the gallery's trainings under eight profiles, as many as fit half an hour (ARGS="--for 2h"; adds to docs/results/gallery.jsonl, writes docs/gallery.md)
	@$(VENV)/bin/python -m benchmarks.gallery_map $(ARGS)

libraries: dev  ## install conda-forge's jemalloc and tcmalloc into .venv, for the local engine
	@$(VENV)/bin/python images/conda_libraries.py install $(VENV)/conda

profiles: setup  ## list the profiles
	@$(RUNNER) profiles

dev: setup
	@PYTHON="$(PYTHON)" images/setup $(VENV) --dev

test: dev  ## run all tests (a missing engine skips its tests and says so)
	@$(VENV)/bin/pytest --numprocesses 3 --dist loadgroup --no-loadscope-reorder

unit: dev  ## run the quick tests: no engine, no real training, few processes (a minute on 2 CPUs)
	@# one process more than CPUs: some tests wait
	@$(VENV)/bin/pytest -m 'not slow' --numprocesses $$(($$(nproc) + 1)) --maxprocesses 8 --dist worksteal

faults: dev  ## plant every known fault, print what is said of it, and write docs/results/faults.md
	@$(VENV)/bin/python -m tests.faults --docs

cases: dev  ## run the programs that people had trouble with, and print what envkit says of each
	@$(VENV)/bin/python -m tests.cases

reliability: dev  ## kill, fill the disk and more, print what a run survives, and write docs/results/reliability.md
	@$(VENV)/bin/python -m tests.reliability --docs

simulated: dev  ## are intervals and verdicts right? 2,000 simulated runs a line (15 minutes; writes docs/results/simulated.md)
	@$(VENV)/bin/python -m benchmarks.simulated $(ARGS)

selection: dev  ## does a run with many profiles choose the right one? simulated (a minute; writes docs/results/selection.md)
	@$(VENV)/bin/python -m benchmarks.selection $(ARGS)

race-page: dev  ## does the race of `envkit advise` choose well? simulated (a minute; writes docs/results/race.md)
	@$(VENV)/bin/python -m benchmarks.race $(ARGS)

rivals: dev  ## this kit, hyperfine and pyperf on the same commands (2 hours, or less with --at-once; writes docs/results/rivals.md)
	@$(VENV)/bin/python -m benchmarks.rivals $(ARGS)

rivals-cnn: dev  ## the same on the CNN: is it faster under glibc-retain? (half an hour; writes docs/results/rivals-cnn.md)
	@$(VENV)/bin/python -m benchmarks.rivals_cnn $(ARGS)

peers: dev  ## PyTorch's own launcher, plain python and PROFILES of the kit side by side (15 minutes; writes docs/results/peers.md)
	@$(VENV)/bin/python -m benchmarks.peers $(PROFILES) $(ARGS)

stacks: dev  ## the book's PyTorch and newer ones, with nothing set, as in the book, and tuned (25 minutes; writes docs/results/stacks.md)
	@$(VENV)/bin/python -m benchmarks.stacks $(ARGS)

modes: dev  ## does a profile still pay beside bfloat16, torch.compile and channels-last? (35 minutes; writes docs/results/modes.md)
	@$(VENV)/bin/python -m benchmarks.modes $(ARGS)

experiments: dev  ## what else the environment could do, against what was expected (an hour; writes docs/results/experiments.md)
	@$(VENV)/bin/python -m benchmarks.experiments $(ARGS)

claims: dev  ## published claims about settings for PyTorch on CPUs, measured again (20 minutes; writes docs/results/claims.md)
	@$(VENV)/bin/python -m benchmarks.claims $(ARGS)

startup: dev  ## what `envkit exec` adds to the start of a command (a minute; writes docs/results/startup.md)
	@$(VENV)/bin/python -m benchmarks.exec_startup $(ARGS)

tune-page: dev  ## the tuner against a grid that is measured to the last candidate (an hour; writes docs/results/tune.md)
	@$(VENV)/bin/python -m benchmarks.tune_against_grid $(ARGS)

tune-nodes: dev  ## tuning by 8, 64 and 500 nodes, simulated: time to the answer, waste, errors (an hour; writes docs/results/tune-nodes.md)
	@$(VENV)/bin/python -m benchmarks.tune_nodes $(ARGS)

tune-noise: dev  ## the tuner beside noise of 2% to 15%, and how far the gain it writes is overstated, simulated (2 minutes; writes docs/results/tune-noise.md)
	@$(VENV)/bin/python -m benchmarks.tune_noise $(ARGS)

fleet-diff: dev  ## does `fleet diff` name the nodes that became slower, and how often others? simulated (8 minutes; writes docs/results/fleet-diff.md)
	@$(VENV)/bin/python -m benchmarks.fleet_diff $(ARGS)

first-run: dev  ## the README's first command on a fresh clone, alone and beside a neighbour (10 minutes; writes docs/results/first-run.md)
	@$(VENV)/bin/python -m benchmarks.first_run $(ARGS)

same: dev  ## the baseline against itself, ten minutes more of it (ARGS="--for 1h"; adds to docs/results/same.jsonl, writes same.md)
	@$(VENV)/bin/python -m benchmarks.same $(ARGS)

sessions: dev  ## one small matrix again: how much do speedups differ between days and hosts? (4 minutes, with Debian's libjemalloc2; adds to docs/results/sessions.jsonl, writes sessions.md)
	@$(VENV)/bin/python -m benchmarks.sessions $(ARGS)

planted: dev  ## known effects in the real CNN, ten minutes more of them (ARGS="--for 1h"; adds to docs/results/planted.jsonl, writes planted.md)
	@$(VENV)/bin/python -m benchmarks.planted $(ARGS)

long-steps: dev  ## do 1,000 steps rank profiles as short samples do? (10 minutes; adds to docs/results/long-steps.jsonl, writes long-steps.md)
	@$(VENV)/bin/python -m benchmarks.long_steps $(ARGS)

mutants: dev  ## which of 100 small mutants do the quick tests kill? (an hour; writes docs/results/mutants.md)
	@$(VENV)/bin/python -m benchmarks.mutants $(ARGS)

env-formats: dev  ## an example of every format of `envkit env`, with the image envkit-cpu (writes docs/results/env-formats.md)
	@$(VENV)/bin/python -m benchmarks.env_formats $(ARGS)

fleet-page: dev  ## a report on 10,000 simulated nodes: time, memory, slow nodes found (10 minutes; writes docs/results/fleet.md)
	@$(VENV)/bin/python -m benchmarks.fleet $(ARGS)

book: dev  ## the book's table on this machine, in one run (20 minutes; writes docs/results/book.md; ARGS="--also tuned")
	@$(VENV)/bin/python -m benchmarks.book $(ARGS)

operators: dev  ## where a step's time goes, by operators and phases, and why a profile saves some (6 minutes; writes docs/results/operators.md)
	@$(VENV)/bin/python -m benchmarks.operators $(ARGS)

curves: dev  ## the baseline and a profile train until an accuracy is reached (5 minutes; writes docs/results/curves.md)
	@$(VENV)/bin/python -m benchmarks.curves $(ARGS)

advice: dev  ## fit what profiles gain to docs/results/gallery.jsonl, judge the fits, simulate runs of advise (3 minutes; writes docs/advise.md)
	@$(VENV)/bin/python -m benchmarks.advice $(ARGS)

terminal-picture: dev  ## draw the report of a run as a terminal shows it: ARGS="DIR FILE.svg"
	@$(VENV)/bin/python -m benchmarks.terminal_picture $(ARGS)

matrix-page: dev  ## write docs/results/matrix.md from the latest run of make matrix (ARGS=DIR for another)
	@$(VENV)/bin/python -m benchmarks.matrix $(ARGS)

ablation-page: dev  ## write docs/results/ablation.md from the latest run of make ablate (ARGS="DIR DIR" for others)
	@$(VENV)/bin/python -m benchmarks.ablation $(ARGS)

lint: dev  ## check style, types, English, the Dockerfile and shell scripts
	@$(VENV)/bin/ruff check . && $(VENV)/bin/ruff format --check . && $(VENV)/bin/mypy --num-workers 2
	@$(VENV)/bin/python .ci/prose
	@$(VENV)/bin/hadolint images/*/Dockerfile
	@for script in images/build images/common.sh images/install.sh images/lock images/manifest images/sbom images/setup images/stack images/wheelhouse .ci/run .ci/engines/* benchmarks/gpu.sh runner/envkit/engines/enroot_rc.sh runner/envkit/cluster/slurm/batch/*.sh; do \
		bash -n $$script || exit 1; done

lock:  ## renew the lock files
	@images/lock

clean:  ## remove the virtual environment and what was built (results stay)
	@rm -rf $(VENV) build $$(ls -d .venv-*/.stack 2>/dev/null | xargs --no-run-if-empty dirname)
