# The C tests under sanitizers and valgrind, and the drop-in headers on batches recorded from llm.c. `make sanitize-all`
# needs these Debian packages: clang, valgrind, and libclang-rt-14-dev (or the one for your version of clang).

### Sanitizers

.PHONY: sanitize llmc-test sanitize-all msan tsan memcheck

SANITIZED_TESTS := $(C_TESTS:build/%=build/sanitize/%)

build/sanitize/libpybpe.a: $(SOURCES:csrc/%.c=build/sanitize/obj/%.o)

build/sanitize/obj/%.o: csrc/%.c build/flags | build/sanitize/obj
	@mkdir -p $(@D)
	$(COMPILE) $(SANITIZE) $(DEPENDENCIES) -c -o $@ $<

build/sanitize/tests/%: tests/c/%.c build/sanitize/libpybpe.a | build/sanitize/tests
	$(COMPILE) $(SANITIZE) $(DEPENDENCIES) -o $@ $< build/sanitize/libpybpe.a $(LDFLAGS) $(LDLIBS)

## the C tests under AddressSanitizer and UndefinedBehaviorSanitizer
sanitize: $(SANITIZED_TESTS)
	$(call RUN_EACH,$^)

# The headers are compiled as C, and as C++17 if $(CC) supports it.
LLMC_WALKS := build/sanitize/tests/llmc_walk \
              $(shell echo 'int main() {}' | $(CC) -x c++ - -lstdc++ -o /dev/null 2>/dev/null && echo build/sanitize/tests/llmc_walk_cpp)
## the drop-in headers against batches recorded from llm.c
llmc-test: $(LLMC_WALKS)
	$(call RUN_EACH,$^,tests/vectors/loader_llmc.json)

build/sanitize/tests/llmc_walk_cpp: tests/c/llmc_walk.c build/sanitize/libpybpe.a | build/sanitize/tests
	$(filter-out -std=c11 -Wstrict-prototypes,$(COMPILE)) -std=c++17 $(SANITIZE) $(DEPENDENCIES) -o $@ \
	    -x c++ $< -x none build/sanitize/libpybpe.a $(LDFLAGS) $(LDLIBS) -lstdc++

# ---------------------------------------------------------------------------------------------------
# The C tests under other sanitizers: $(1) name, $(2) compiler, $(3) flags, $(4) prefix of the command that runs a program

define SANITIZER
build/$(1)/libpybpe.a: $$(SOURCES:csrc/%.c=build/$(1)/obj/%.o)

build/$(1)/obj/%.o: csrc/%.c $$(HEADERS)
	@mkdir -p $$(@D)
	$$(COMPILE:$$(CC)%=$(2)%) $(3) -c -o $$@ $$<

build/$(1)/tests/%: tests/c/%.c $$(wildcard tests/c/*.h) $$(LLMC_HEADERS) build/$(1)/libpybpe.a
	@mkdir -p $$(@D)
	$$(COMPILE:$$(CC)%=$(2)%) $(3) -o $$@ $$< build/$(1)/libpybpe.a $$(LDLIBS)

$(1): $$(C_TESTS:build/%=build/$(1)/%)
	$$(call RUN_EACH,$$^,,$(4))
endef

$(eval $(call SANITIZER,msan,clang,-O1 -g -fsanitize=memory -fsanitize-memory-track-origins -fno-omit-frame-pointer,))
$(eval $(call SANITIZER,tsan,$(or $(shell command -v clang),gcc),-O1 -g -fsanitize=thread,TSAN_OPTIONS=halt_on_error=1))
$(eval $(call SANITIZER,memcheck,gcc,-O1 -g,valgrind --quiet --error-exitcode=1 --leak-check=full))

## the C tests under all sanitizers and valgrind; also make msan, tsan or memcheck alone
sanitize-all: sanitize msan tsan memcheck
