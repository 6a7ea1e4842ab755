# What users get: the site and the packages. To release a version:
#
# 1. Complete and date its section in CHANGELOG.md.
# 2. Set the version in pybpe/_version.py and, as PYBPE_VERSION and PYBPE_VERSION_NUMBER, in csrc/pybpe.h. File formats and C
#    error codes never change meaning: a new layout gets a new version number of its own. Run tests/vectors/versions/make.py
#    and commit the folder that it writes. tests/py/test_versions.py reads the files of all releases.
# 3. Run make test-all test-extras exhaustive faults, make fuzz seconds=600, and make cross. If a hot path changed, run
#    make bench and update benchmarks/RESULTS.md. make cross-wheel-aarch64 takes hours.
# 4. Run make docs, and look at the first page and the viewer, in light and dark colors.
# 5. Run make release-check. It builds the sdist, the wheel from the sdist and a bill of materials in build/release/dist/,
#    twice, and compares the bytes. It tries the wheel with each CPython 3.10 to 3.14 that it finds (or PYTHONS="path path"),
#    and names those that it does not find. A clean clone needs two minutes on a quiet machine.
# 6. Commit, and tag the commit: v and the version. On GitHub, publishing a release starts .github/workflows/wheels.yml, which
#    builds, tests, attests and uploads a wheel for every platform. Before the first release, register this workflow at the
#    package index as a trusted publisher, with the environment `pypi`. To upload by hand, let auditwheel tag the wheel.
#
# The repository has no public address yet. When it has one, add it to pyproject.toml: Repository = "https://..." in
# [project.urls]. setup.py then lets the links and images of the page on a package index lead there, to the files of the tag.

### What users get

.PHONY: docs plots release-check reproducible

# The site. Its tokenizers are trained while it is built: on Python's own help texts, and on the tutorial's novel. With
# --quiet, mkdocs would not see its own warnings, such as those of broken links, which are errors here.
## the documentation as a site, in build/site, with an API reference and search
docs: build/extension.stamp .venv/docs-stamp .venv/texts/stamp build/tiktoken
	TIKTOKEN_CACHE_DIR=build/tiktoken NO_MKDOCS_2_WARNING=1 $(VENV)/python -m mkdocs build > build/docs.log 2>&1 || { cat build/docs.log; exit 1; }
	@echo "open build/site/index.html"

# GPT-2's tokenizer, with which the site compares its own, from a package of the tests.
build/tiktoken: .venv/test-stamp
	$(VENV)/python tests/py/openai_ranks.py $@

.venv/docs-stamp: .venv/test-stamp
	$(call PACKAGES_OF,docs) > .venv/docs.txt
	$(PIP_INSTALL) -r .venv/docs.txt
	touch $@

# ---------------------------------------------------------------------------------------------------
# The packages: builds them, the wheel from the sdist, and tries the wheel with every installed Python. All tools have
# exact versions with hashes, so the same commit gives the same bytes next year.

RELEASE := build/release
PYTHONS ?= $(foreach minor,10 11 12 13 14,$(shell \
    for python in python3.$(minor) $$HOME/.pyenv/versions/3.$(minor).*/bin/python "$$(uv python find 3.$(minor) 2>/dev/null)"; do \
        "$$python" -c 'import sys; print(sys.executable)' 2>/dev/null && break; done))

$(RELEASE)/stamp: tests/requirements-release.txt
	$(PYTHON) -m venv $(RELEASE)
	$(RELEASE)/bin/python -m pip install --quiet --no-compile --require-hashes -r $<
	touch $@

## draw the plots of docs/ from the tables of benchmarks/RESULTS.md
plots:
	$(VENV)/python docs/site/plots.py

# Two builds of the same commit, in other folders and at another time, give the same bytes.
reproducible release-check: export SOURCE_DATE_EPOCH ?= $(or $(shell git log -1 --format=%ct 2>/dev/null),946684800)
## build the packages twice, and compare them byte by byte
reproducible: $(RELEASE)/stamp
	rm -rf $(RELEASE)/dist $(RELEASE)/again
	@$(RELEASE)/bin/python -m build --no-isolation --outdir $(RELEASE)/dist > $(RELEASE)/build.log 2>&1 || { tail -30 $(RELEASE)/build.log; exit 1; }
	@mkdir -p $(RELEASE)/again/tree
	@tar xzf $(RELEASE)/dist/*.tar.gz -C $(RELEASE)/again/tree --strip-components=1 --touch
	@cd $(RELEASE)/again/tree && rm -r PKG-INFO setup.cfg pybpe.egg-info # what setuptools has added
	@$(RELEASE)/bin/python -m build --no-isolation --outdir $(RELEASE)/again $(RELEASE)/again/tree > $(RELEASE)/again.log 2>&1 || \
	    { tail -30 $(RELEASE)/again.log; exit 1; }
	@for file in $(RELEASE)/dist/*; do cmp "$$file" "$(RELEASE)/again/$${file##*/}" || exit 1; done
	@rm -rf $(RELEASE)/again
	@cd $(RELEASE)/dist && sha256sum *

## check the packages: contents, metadata and stable ABI; install and try the wheel
release-check: reproducible
	@if git rev-parse 2>/dev/null; then \
	    PATH="$(CURDIR)/$(RELEASE)/bin:$$PATH" check-manifest --no-build-isolation; \
	else echo "check-manifest: skipped, since this is not a Git checkout"; fi
	$(RELEASE)/bin/twine check --strict $(RELEASE)/dist/*
	$(RELEASE)/bin/python tests/index_page.py $(RELEASE)/dist/*
	$(RELEASE)/bin/abi3audit --strict --summary $(RELEASE)/dist/*.whl
	$(RELEASE)/bin/python tests/sbom.py $(RELEASE)/dist/*.whl
	@for python in $(or $(PYTHONS),$(PYTHON)); do \
	    $$python -m venv --clear --without-pip $(RELEASE)/user && \
	    $(RELEASE)/bin/python -m pip --python $(RELEASE)/user install --quiet --no-compile $(RELEASE)/dist/*.whl && \
	    $(RELEASE)/user/bin/python -I tests/installed.py || exit 1; \
	done
	@for minor in 10 11 12 13 14; do \
	    for python in $(or $(PYTHONS),$(PYTHON)); do $$python -c "import sys; sys.exit(sys.version_info[1] != $$minor)" && continue 2; done; \
	    echo "Python 3.$$minor: not tried, since there is none here"; \
	done
