/*
Reading a whole tokenizer.json, in the schema of Hugging Face's tokenizers. tokenizer_json.c reads its large parts, the
vocabulary and the merges. This file reads the rest:

    added_tokens    the specials, with their flags
    normalizer      null, NFC, NFKC
    pre_tokenizer   the steps of the models in docs/models.md (tokenizer_json_data.h), with one ByteLevel among them
    decoder         must be ByteLevel
    model           its other settings; most must have their usual values

In version 2.0 byte_level in the model replaces the step ByteLevel, and role_to_token may name the end of text.

A part that is read means exactly the same as in Hugging Face's library. Any other is refused: the error names it, and
its offset is the part's. Truncation, padding and the post-processor are for the caller: they do not change the ids of
a text. The rules are the same as in pybpe/formats in Python, which says where in Hugging Face's source they come from.
*/
#include "vocab/vocab.h"
#include "json/json.h"

/* A step of a pre_tokenizer, and the regular expression that gives the same words. */
typedef struct known_step {
    const char *type, *behavior;
    bool invert;
    bool in_bytes;     /* it comes after ByteLevel, so it sees the characters that stand for bytes */
    bool only_1;       /* in version 2.0 of the file, the same regular expression gives other words */
    const char *given; /* the regular expression of a Split */
    const char *regex; /* as pybpe spells it */
} known_step;

#include "vocab/tokenizer_json_data.h"

enum { MOST_STEPS = 16, MOST_NESTED = 8, MOST_IDS = 1 << 24 };

/* A file in memory, and the parts that have been read. */
typedef struct json_file {
    const uint8_t *text;
    const pybpe_allocator *mem;
    pybpe_error *err;
    bool is_2;             /* version 2.0 */
    uint8_t *room;         /* for strings without their escapes, as long as the text */
    pybpe_vocab_spec spec; /* without tokens and merges */
    /* The added tokens: */
    pybpe_strings texts;
    uint8_t *bytes;
    uint64_t *offsets;
    uint32_t *ids;
    uint8_t *flags;
    /* The pre-tokenizer: */
    const char *steps[MOST_STEPS]; /* their regular expressions */
    size_t steps_count;
    size_t seen; /* steps of the file */
    bool in_bytes;
    char *regex; /* all of them */
} json_file;

/* Fills the error for the part of the file at `place`. */
#define refuse_part(f, place, ...) error_set((f)->err, PYBPE_ERR_FORMAT, (uint64_t)((place) - (f)->text), __VA_ARGS__)

/* Whether a value is spelled like this. */
static bool is_raw(const json_member *m, const char *text) {
    const size_t n = strlen(text);
    return m->begin != NULL && (size_t)(m->end - m->begin) == n && memcmp(m->begin, text, n) == 0;
}

static bool is_absent(const json_member *m) { return m->begin == NULL || is_raw(m, "null"); }

/* Whether a value is this string. */
static bool is_string(const json_member *m, const char *text) {
    const size_t n = strlen(text);
    return m->begin != NULL && (size_t)(m->end - m->begin) == n + 2 && *m->begin == '"' &&
           memcmp(m->begin + 1, text, n) == 0;
}

/* How many bytes of a value an error shows. */
static int shown(const json_member *m) { return m->end - m->begin < 80 ? (int)(m->end - m->begin) : 80; }

/* Reads true or false. A value that is not there leaves *value as it is. */
static int read_bool(const json_file *f, const json_member *m, bool *value) {
    if (m->begin == NULL) {
        return PYBPE_OK;
    }
    *value = is_raw(m, "true");
    if (!*value && !is_raw(m, "false")) {
        return refuse_part(f, m->begin, "%s is %.*s; expected true or false", m->name, shown(m), m->begin);
    }
    return PYBPE_OK;
}

/* Reads a string to `out`, which has room for it. */
static int read_text(const json_file *f, const json_member *m, uint8_t *out, size_t *n) {
    json j = {m->begin, m->end};
    if (m->begin == NULL || !json_string(&j, out, n) || j.at != j.end) {
        return refuse_part(f, m->begin != NULL ? m->begin : f->text,
                           "%s is missing, or is not a string that C reads: it may have no surrogates", m->name);
    }
    return PYBPE_OK;
}

/* Finds members of the object that a value is. */
static int read_object(const json_file *f, const json_member *m, json_member *members, size_t count) {
    json j = {m->begin, m->end};
    if (!json_find(&j, members, count) || j.at != j.end) {
        return refuse_part(
            f, j.at, "%s is not a JSON object, has a member twice, or has an escape in the name of a member", m->name);
    }
    return PYBPE_OK;
}

/* ---------------------------------------------------------------------------------------------------
Added tokens
*/

enum { FLAGS = 4 };

/* Whether NFC makes this text only of itself, wherever it is: see tokenizer_json.py. */
static bool is_stable(const uint8_t *text, size_t n) {
    const uint8_t last = text[n - 1];
    bool stable = !((last | 0x20) >= 'a' && (last | 0x20) <= 'z') && !(last >= '<' && last <= '>');
    for (size_t i = 0; i < n; i++) {
        stable = stable && byte_is_ascii(text[i]) && text[i] != ';' && text[i] != 'K' && text[i] != '`';
    }
    return stable;
}

static int read_added(json_file *f, const json_member *item) {
    json_member members[3 + FLAGS + 1] = {{.name = "content"},    {.name = "id"},     {.name = "same_id_as"},
                                          {.name = "lstrip"},     {.name = "rstrip"}, {.name = "single_word"},
                                          {.name = "normalized"}, {.name = "special"}};
    uint8_t *text = f->bytes + f->offsets[f->texts.count];
    size_t n = 0;
    uint32_t id = 0;
    unsigned flags = 0;
    int code = read_object(f, item, members, sizeof members / sizeof *members);
    if (code == PYBPE_OK && members[2].begin != NULL) {
        return refuse_part(f, item->begin, "an added token shares the id of another one, which C does not read");
    }
    code = code == PYBPE_OK ? read_text(f, &members[0], text, &n) : code;
    for (unsigned i = 0; i <= FLAGS && code == PYBPE_OK; i++) { /* in the order of pybpe_special_flag, then "special" */
        bool is_on = false;
        code = read_bool(f, &members[3 + i], &is_on);
        flags |= is_on && i < FLAGS ? 1U << i : 0;
    }
    json number = {members[1].begin, members[1].end};
    if (code == PYBPE_OK && (number.at == NULL || !json_id(&number, MOST_IDS, &id) || number.at != number.end)) {
        return refuse_part(f, item->begin, "the id of the added token %.*s is not a number from 0 to %d",
                           n < 80 ? (int)n : 80, text, MOST_IDS - 1);
    }
    if (code != PYBPE_OK || n == 0) { /* Hugging Face ignores an empty one */
        return code;
    }
    if (f->texts.count > 0 && id <= f->ids[f->texts.count - 1]) {
        return refuse_part(f, item->begin,
                           "the added token %.*s has id %u, which is not above the id of the one before it",
                           n < 80 ? (int)n : 80, text, id);
    }
    const bool is_late = (flags & PYBPE_SPECIAL_LATE) != 0;
    if (is_late && f->spec.normalizer != PYBPE_NORMALIZER_NONE &&
        !(f->spec.normalizer == PYBPE_NORMALIZER_NFC && is_stable(text, n) && !(flags & PYBPE_SPECIAL_SINGLE_WORD))) {
        return refuse_part(f, item->begin,
                           "the added token %.*s has normalized on, and there is a normalizer: pybpe looks for special "
                           "tokens in the original text only",
                           n < 80 ? (int)n : 80, text);
    }
    f->ids[f->texts.count] = id;
    f->flags[f->texts.count++] = (uint8_t)flags;
    f->offsets[f->texts.count] = f->offsets[f->texts.count - 1] + n;
    return PYBPE_OK;
}

/* Whether looking for the specials without flags finds the same. */
static bool flags_matter(const json_file *f) {
    bool matter = false;
    for (size_t i = 0; i < f->texts.count; i++) {
        matter = matter || f->flags[i] != f->flags[0] || (f->flags[i] & ~PYBPE_SPECIAL_LATE) != 0;
    }
    return matter;
}

/* Checks that the flags have a meaning together. */
static int check_flags(const json_file *f) {
    pybpe_specials *s = NULL;
    int code = pybpe_specials_new(&s, &f->texts, f->ids, f->spec.special_flags, f->mem, f->err);
    pybpe_specials_free(s);
    return code;
}

static int read_all_added(json_file *f, const json_member *added) {
    const size_t n = is_absent(added) ? 0 : (size_t)(added->end - added->begin);
    const size_t most = n / 2 + 1; /* an item and the comma or bracket after it */
    f->bytes = mem_alloc(f->mem, n + 1);
    f->offsets = mem_alloc_array(f->mem, most + 1, sizeof *f->offsets);
    f->ids = mem_alloc_array(f->mem, most, sizeof *f->ids);
    f->flags = mem_alloc(f->mem, most);
    if (f->bytes == NULL || f->offsets == NULL || f->ids == NULL || f->flags == NULL) {
        return error_set_memory(f->err, "the added tokens of a tokenizer.json", most * sizeof *f->offsets);
    }
    f->offsets[0] = 0;
    f->texts = (pybpe_strings){f->bytes, f->offsets, 0};
    json j = {added->begin, added->end};
    if (n > 0 && !json_take(&j, '[')) {
        return refuse_part(f, added->begin, "added_tokens is not an array");
    }
    json_member item = {.name = "an added token"};
    int code = PYBPE_OK;
    int more = n > 0;
    for (size_t i = 0; code == PYBPE_OK && more > 0; i++) {
        more = json_next(&j, i, &item);
        code = more > 0 ? read_added(f, &item) : PYBPE_OK;
    }
    if (code == PYBPE_OK && more < 0) {
        code = refuse_part(f, j.at, "added_tokens is not an array");
    }
    f->spec.specials = f->ids;
    f->spec.specials_count = f->texts.count;
    f->spec.special_flags = flags_matter(f) ? f->flags : NULL;
    code = code == PYBPE_OK ? check_flags(f) : code;
    if (code == PYBPE_ERR_VALUE) { /* its offset is an id */
        f->err->offset = (uint64_t)(added->begin - f->text);
        code = PYBPE_ERR_FORMAT;
    }
    return code;
}

/* The special with this text, or PYBPE_NO_ID. */
static uint32_t special_named(const json_file *f, const uint8_t *text, size_t n) {
    for (size_t i = 0; i < f->texts.count; i++) {
        if (f->offsets[i + 1] - f->offsets[i] == n && memcmp(f->bytes + f->offsets[i], text, n) == 0) {
            return f->ids[i];
        }
    }
    return PYBPE_NO_ID;
}

/* ---------------------------------------------------------------------------------------------------
Normalizer and pre-tokenizer
*/

static int read_normalizer(json_file *f, const json_member *given) {
    json_member step = *given;
    for (unsigned depth = 0; depth < MOST_NESTED; depth++) {
        if (is_absent(&step)) {
            return PYBPE_OK;
        }
        json_member members[2] = {{.name = "type"}, {.name = "normalizers"}};
        step.name = given->name;
        PYBPE_TRY(read_object(f, &step, members, 2));
        const bool is_nfc = is_string(&members[0], "NFC");
        if (is_nfc || is_string(&members[0], "NFKC")) {
            f->spec.normalizer = is_nfc ? PYBPE_NORMALIZER_NFC : PYBPE_NORMALIZER_NFKC;
            return PYBPE_OK;
        }
        json j = {members[1].begin, members[1].end};
        json_member other;
        if (!is_string(&members[0], "Sequence") || j.at == NULL || !json_take(&j, '[')) {
            break;
        }
        int found = json_next(&j, 0, &step);
        if (found == 0) {
            return PYBPE_OK;
        }
        if (found < 0 || json_next(&j, 1, &other) != 0) {
            break;
        }
    }
    return refuse_part(f, given->begin, "the normalizer is %.*s; pybpe supports NFC and NFKC", shown(given),
                       given->begin);
}

enum {
    STEP_TYPE,
    STEP_SEQUENCE,
    STEP_PATTERN,
    STEP_BEHAVIOR,
    STEP_INVERT,
    STEP_DIGITS,
    STEP_SPACE,
    STEP_REGEX,
    STEP_MEMBERS
};

static int add_step(json_file *f, const json_member *step, const char *regex) {
    if (f->steps_count == MOST_STEPS) {
        return refuse_part(f, step->begin, "the pre_tokenizer has more than %d steps", MOST_STEPS);
    }
    f->steps[f->steps_count++] = regex;
    return PYBPE_OK;
}

static int read_byte_level(json_file *f, const json_member *step, const json_member *members) {
    bool spaced = false;
    bool splits = true;
    PYBPE_TRY(read_bool(f, &members[STEP_SPACE], &spaced));
    PYBPE_TRY(read_bool(f, &members[STEP_REGEX], &splits));
    if (f->in_bytes || f->is_2) {
        return refuse_part(f, step->begin,
                           f->is_2 ? "the pre_tokenizer has ByteLevel, for which version 2.0 has model.byte_level"
                                   : "the pre_tokenizer has ByteLevel twice");
    }
    if (spaced && f->seen > 0) {
        return refuse_part(f, step->begin, "the pre_tokenizer has ByteLevel with add_prefix_space after another step");
    }
    f->in_bytes = true;
    f->spec.prefix_space = spaced;
    return splits ? add_step(f, step, pybpe_pattern_regex(PYBPE_PATTERN_GPT2)) : PYBPE_OK;
}

/* The regular expression of a step that C knows, or NULL. `given` is the one in the file. */
static const char *known_regex(const json_file *f, const json_member *members, const char *behavior, bool invert,
                               size_t n) {
    const bool is_split = is_string(&members[STEP_TYPE], "Split");
    const bool keeps = strcmp(behavior, "Isolated") == 0 || (strcmp(behavior, "Removed") == 0 && invert);
    const int pattern = is_split && keeps && !f->in_bytes ? pybpe_pattern_find_regex(f->room, n) : -1;
    for (size_t i = 0; pattern < 0 && i < sizeof KNOWN_STEPS / sizeof *KNOWN_STEPS; i++) {
        const known_step *k = &KNOWN_STEPS[i];
        if (is_string(&members[STEP_TYPE], k->type) && strcmp(behavior, k->behavior) == 0 && k->invert == invert &&
            k->in_bytes == f->in_bytes && !(k->only_1 && f->is_2) && strlen(k->given) == n &&
            memcmp(k->given, f->room, n) == 0) {
            return k->regex;
        }
    }
    return pattern < 0 ? NULL : pybpe_pattern_regex(pattern);
}

/* Reads a step other than ByteLevel and Sequence. */
static int read_splitting(json_file *f, const json_member *step, const json_member *members, const json_member *given) {
    static const char *const behaviors[] = {"Isolated", "Contiguous", "Removed", "MergedWithPrevious",
                                            "MergedWithNext"};
    const bool is_usual =
        members[STEP_BEHAVIOR].begin == NULL && (f->is_2 || is_string(&members[STEP_TYPE], "Punctuation"));
    const char *behavior = is_usual ? "Isolated" : "";
    bool invert = false;
    bool singly = false;
    size_t n = 0;
    for (size_t i = 0; i < sizeof behaviors / sizeof *behaviors; i++) {
        behavior = is_string(&members[STEP_BEHAVIOR], behaviors[i]) ? behaviors[i] : behavior;
    }
    int code = read_bool(f, &members[STEP_INVERT], &invert);
    code = code == PYBPE_OK ? read_bool(f, &members[STEP_DIGITS], &singly) : code;
    if (code == PYBPE_OK && is_string(&members[STEP_TYPE], "Split")) {
        code = read_text(f, given, f->room, &n);
    } else {
        invert = false; /* only a Split has it */
    }
    if (code != PYBPE_OK) {
        return code;
    }
    if (is_string(&members[STEP_TYPE], "Digits")) {
        behavior = members[STEP_DIGITS].begin == NULL ? "" : singly ? "Isolated" : "Contiguous";
    }
    invert = invert && strcmp(behavior, "Isolated") != 0; /* it would only exchange matches and the text between them */
    const char *regex = known_regex(f, members, behavior, invert, n);
    if (regex == NULL) {
        return refuse_part(f, step->begin,
                           "the pre_tokenizer has the step %.*s, which is in none of the models that C reads "
                           "(docs/models.md): pybpe in Python may read it",
                           shown(step), step->begin);
    }
    return add_step(f, step, regex);
}

/* NOLINTNEXTLINE(misc-no-recursion): at most MOST_NESTED deep */
static int read_step(json_file *f, const json_member *step, unsigned depth) {
    json_member given[] = {{.name = "Regex"}};
    json_member members[STEP_MEMBERS] = {[STEP_TYPE] = {.name = "type"},
                                         [STEP_SEQUENCE] = {.name = "pretokenizers"},
                                         [STEP_PATTERN] = {.name = "pattern", .inner = given, .inner_count = 1},
                                         [STEP_BEHAVIOR] = {.name = "behavior"},
                                         [STEP_INVERT] = {.name = "invert"},
                                         [STEP_DIGITS] = {.name = "individual_digits"},
                                         [STEP_SPACE] = {.name = "add_prefix_space"},
                                         [STEP_REGEX] = {.name = "use_regex"}};
    PYBPE_TRY(read_object(f, step, members, STEP_MEMBERS));
    int code = PYBPE_OK;
    if (is_string(&members[STEP_TYPE], "ByteLevel")) {
        code = read_byte_level(f, step, members);
    } else if (!is_string(&members[STEP_TYPE], "Sequence")) {
        code = read_splitting(f, step, members, given);
    } else {
        json j = {members[STEP_SEQUENCE].begin, members[STEP_SEQUENCE].end};
        json_member item = {.name = "a step of the pre_tokenizer"};
        int more = j.at != NULL && depth < MOST_NESTED && json_take(&j, '[') ? 1 : -1;
        for (size_t i = 0; code == PYBPE_OK && more > 0; i++) {
            more = json_next(&j, i, &item);
            code = more > 0 ? read_step(f, &item, depth + 1) : PYBPE_OK;
        }
        return code == PYBPE_OK && more < 0
                   ? refuse_part(f, step->begin,
                                 "the Sequence of the pre_tokenizer is not an array, or nested too deep")
                   : code;
    }
    f->seen += 1;
    return code;
}

static int read_pre_tokenizer(json_file *f, const json_member *given) {
    PYBPE_TRY(is_absent(given) ? PYBPE_OK : read_step(f, given, 0));
    f->in_bytes = f->in_bytes || f->is_2; /* see read_settings */
    if (!f->in_bytes || f->steps_count == 0) {
        return refuse_part(f, given->begin != NULL ? given->begin : f->text,
                           "the pre_tokenizer must have one ByteLevel, and a step that splits the text");
    }
    const size_t first = strlen(f->steps[0]);
    const int pattern = f->steps_count == 1 ? pybpe_pattern_find_regex((const uint8_t *)f->steps[0], first) : -1;
    f->spec.pattern = pattern < 0 ? PYBPE_PATTERN_CUSTOM : pattern;
    if (pattern >= 0) {
        return PYBPE_OK;
    }
    static const char then[] = "(?then)";
    size_t n = 1;
    for (size_t i = 0; i < f->steps_count; i++) {
        n += strlen(f->steps[i]) + sizeof then - 1;
    }
    f->regex = mem_alloc(f->mem, n);
    PYBPE_TRY(memory_check(f->regex, "the pattern of a tokenizer.json", n, f->err));
    char *to = f->regex;
    for (size_t i = 0; i < f->steps_count; i++) {
        const size_t length = strlen(f->steps[i]);
        memcpy(to, then, i > 0 ? sizeof then - 1 : 0);
        to += i > 0 ? sizeof then - 1 : 0;
        memcpy(to, f->steps[i], length);
        to += length;
    }
    *to = '\0';
    f->spec.custom = f->regex;
    return PYBPE_OK;
}

/* ---------------------------------------------------------------------------------------------------
The model
*/

enum {
    MODEL_TYPE,
    MODEL_PREFIX,
    MODEL_SUFFIX,
    MODEL_FALLBACK,
    MODEL_WHOLE,
    MODEL_BYTES,
    MODEL_DROPOUT,
    MODEL_UNKNOWN,
    MODEL_FUSES,
    MODEL_OWN,
    MODEL_VOCAB,
    MODEL_MERGES,
    MODEL_MEMBERS
};

static int read_settings(json_file *f, const json_member *members) {
    const json_member *dropout = &members[MODEL_DROPOUT];
    const json_member *unknown = &members[MODEL_UNKNOWN];
    bool falls_back = false;
    bool has_bytes = false;
    bool whole_words = false;
    bool fuses = false; /* says what Hugging Face does with a byte that has no token. Here that is an error */
    if (members[MODEL_TYPE].begin != NULL && !is_string(&members[MODEL_TYPE], "BPE")) {
        return refuse_part(f, members[MODEL_TYPE].begin, "model.type is %.*s; pybpe supports only BPE",
                           shown(&members[MODEL_TYPE]), members[MODEL_TYPE].begin);
    }
    for (size_t i = MODEL_PREFIX; i <= MODEL_SUFFIX; i++) {
        if (!is_absent(&members[i]) && !is_string(&members[i], "")) {
            return refuse_part(f, members[i].begin, "model.%s is %.*s; pybpe supports only null", members[i].name,
                               shown(&members[i]), members[i].begin);
        }
    }
    int code = read_bool(f, &members[MODEL_FALLBACK], &falls_back);
    code = code == PYBPE_OK ? read_bool(f, &members[MODEL_WHOLE], &whole_words) : code;
    code = code == PYBPE_OK ? read_bool(f, &members[MODEL_BYTES], &has_bytes) : code;
    code = code == PYBPE_OK ? read_bool(f, &members[MODEL_FUSES], &fuses) : code;
    if (code == PYBPE_OK && !is_absent(unknown) && *unknown->begin != '"') {
        return refuse_part(f, unknown->begin, "model.unk_token is %.*s; expected a string or null", shown(unknown),
                           unknown->begin);
    }
    if (code == PYBPE_OK && falls_back) {
        return refuse_part(f, members[MODEL_FALLBACK].begin, "model.byte_fallback is true; pybpe supports only false");
    }
    if (code == PYBPE_OK && f->is_2 && !has_bytes) {
        return refuse_part(f, f->text, "model.byte_level is not true; pybpe supports only true in version 2.0");
    }
    if (code == PYBPE_OK && !is_absent(dropout) && !is_raw(dropout, "0") && !is_raw(dropout, "0.0")) {
        return refuse_part(f, dropout->begin,
                           "model.dropout is %.*s: set it to null in the file, and call pybpe_encode_dropout",
                           shown(dropout), dropout->begin);
    }
    f->spec.whole_words = whole_words;
    return code;
}

/* Finds the special that ends a document: the one that pybpe wrote down, the one in the roles of version 2.0, or the one
   with a usual name. */
static int read_end(json_file *f, const json_member *own, const json_member *roles) {
    static const char *const usual[] = {"<|endoftext|>", "<|end_of_text|>"};
    json_member members[2] = {{.name = "eos"}, {.name = "version"}};
    size_t n;
    f->spec.eot_id = PYBPE_NO_ID;
    if (!is_absent(own)) {
        int code = read_object(f, own, members, 2);
        if (code == PYBPE_OK && members[1].begin != NULL && !is_raw(&members[1], "1")) {
            code = refuse_part(f, own->begin, "a newer pybpe made this tokenizer.json: update pybpe");
        }
        if (code == PYBPE_OK && members[0].begin != NULL) {
            code = read_text(f, &members[0], f->room, &n);
            f->spec.eot_id = code == PYBPE_OK ? special_named(f, f->room, n) : PYBPE_NO_ID;
            return code;
        }
        if (code != PYBPE_OK) {
            return code;
        }
    }
    json_member role = {.name = "eos_token"};
    int code = f->is_2 && !is_absent(roles) ? read_object(f, roles, &role, 1) : PYBPE_OK;
    if (code == PYBPE_OK && role.begin != NULL) {
        code = read_text(f, &role, f->room, &n);
        f->spec.eot_id = code == PYBPE_OK ? special_named(f, f->room, n) : PYBPE_NO_ID;
    }
    for (size_t i = 0; i < sizeof usual / sizeof *usual && f->spec.eot_id == PYBPE_NO_ID; i++) {
        f->spec.eot_id = special_named(f, (const uint8_t *)usual[i], strlen(usual[i]));
    }
    return code;
}

/* Whether the pattern makes one word of a text. Makes the splitter at the first call. */
static int is_one_word(const json_file *f, pybpe_pretok **p, const uint8_t *text, size_t n, bool *is_one) {
    size_t ends[64];
    int code = PYBPE_OK;
    if (*p == NULL) {
        code = f->spec.custom != NULL ? pybpe_pretok_new_regex(p, f->spec.custom, f->mem, f->err)
                                      : pybpe_pretok_new(p, f->spec.pattern, f->mem, f->err);
    }
    *is_one = code == PYBPE_OK && pybpe_pretok_split(*p, text, n, 0, ends, 64) > 0 && ends[0] == n;
    return code;
}

/* Refuses a special if Hugging Face may return its id for a byte or word of a text: see taken_as_word in
   tokenizer_json.py. `single` says whether one has single_word. Then this is stricter than Python. */
static int check_word(json_file *f, pybpe_pretok **p, size_t i, bool single, const json_member *added) {
    const uint8_t *text = f->bytes + f->offsets[i];
    const size_t n = (size_t)(f->offsets[i + 1] - f->offsets[i]);
    size_t length = n;
    memcpy(f->room, text, n);
    if (!byte_level_decode(f->room, &length)) {
        return PYBPE_OK;
    }
    const bool is_itself = length == n && memcmp(f->room, text, n) == 0;
    if (is_itself && f->spec.normalizer == PYBPE_NORMALIZER_NONE && !single) {
        return PYBPE_OK;
    }
    bool is_word = length == 1;
    int code = !is_word && f->spec.whole_words ? is_one_word(f, p, f->room, length, &is_word) : PYBPE_OK;
    if (code == PYBPE_OK && is_word) {
        code = refuse_part(f, added->begin,
                           "Hugging Face may return the added token %.*s for a word or byte with the same spelling",
                           n < 80 ? (int)n : 80, text);
    }
    return code;
}

static int check_words(json_file *f, const json_member *added) {
    bool single = false;
    for (size_t i = 0; i < f->texts.count; i++) {
        single = single || (f->flags[i] & PYBPE_SPECIAL_SINGLE_WORD) != 0;
    }
    pybpe_pretok *p = NULL;
    int code = PYBPE_OK;
    for (size_t i = 0; i < f->texts.count && code == PYBPE_OK; i++) {
        code = check_word(f, &p, i, single, added);
    }
    pybpe_pretok_free(p);
    return code;
}

/* ---------------------------------------------------------------------------------------------------
All together
*/

enum { TOP_VERSION, TOP_NORMALIZER, TOP_PRE, TOP_DECODER, TOP_ADDED, TOP_ROLES, TOP_MODEL, TOP_MEMBERS };

static int read_around(json_file *f, json_member *top, json_member *model) {
    f->is_2 = is_string(&top[TOP_VERSION], "2.0");
    if (top[TOP_VERSION].begin != NULL && !f->is_2 && !is_string(&top[TOP_VERSION], "1.0")) {
        return refuse_part(f, top[TOP_VERSION].begin, "the format has version %.*s; pybpe supports \"1.0\" and \"2.0\"",
                           shown(&top[TOP_VERSION]), top[TOP_VERSION].begin);
    }
    json_member decoder = {.name = "type"};
    int code = is_absent(&top[TOP_DECODER]) ? PYBPE_OK : read_object(f, &top[TOP_DECODER], &decoder, 1);
    if (code == PYBPE_OK && !is_absent(&top[TOP_DECODER]) && !is_string(&decoder, "ByteLevel")) {
        code = refuse_part(f, top[TOP_DECODER].begin, "the decoder is %.*s; pybpe supports ByteLevel",
                           shown(&top[TOP_DECODER]), top[TOP_DECODER].begin);
    }
    code = code == PYBPE_OK ? read_settings(f, model) : code;
    code = code == PYBPE_OK ? read_normalizer(f, &top[TOP_NORMALIZER]) : code;
    code = code == PYBPE_OK ? read_all_added(f, &top[TOP_ADDED]) : code;
    code = code == PYBPE_OK ? read_pre_tokenizer(f, &top[TOP_PRE]) : code;
    code = code == PYBPE_OK ? read_end(f, &model[MODEL_OWN], &top[TOP_ROLES]) : code;
    return code == PYBPE_OK ? check_words(f, &top[TOP_ADDED]) : code;
}

static int read_file(json_file *f, size_t n, pybpe_vocab **out) {
    json_member model[MODEL_MEMBERS] = {
        [MODEL_TYPE] = {.name = "type"},
        [MODEL_PREFIX] = {.name = "continuing_subword_prefix"},
        [MODEL_SUFFIX] = {.name = "end_of_word_suffix"},
        [MODEL_FALLBACK] = {.name = "byte_fallback"},
        [MODEL_WHOLE] = {.name = "ignore_merges"},
        [MODEL_BYTES] = {.name = "byte_level"},
        [MODEL_DROPOUT] = {.name = "dropout"},
        [MODEL_UNKNOWN] = {.name = "unk_token"},
        [MODEL_FUSES] = {.name = "fuse_unk"},
        [MODEL_OWN] = {.name = "pybpe"},
        [MODEL_VOCAB] = {.name = "vocab"},
        [MODEL_MERGES] = {.name = "merges"},
    };
    json_member top[TOP_MEMBERS] = {[TOP_VERSION] = {.name = "version"},
                                    [TOP_NORMALIZER] = {.name = "normalizer"},
                                    [TOP_PRE] = {.name = "pre_tokenizer"},
                                    [TOP_DECODER] = {.name = "decoder"},
                                    [TOP_ADDED] = {.name = "added_tokens"},
                                    [TOP_ROLES] = {.name = "role_to_token"},
                                    [TOP_MODEL] = {.name = "model", .inner = model, .inner_count = MODEL_MEMBERS}};
    const size_t valid = pybpe_utf8_valid(f->text, n);
    if (valid < n) {
        return refuse_part(f, f->text + valid, "the file is not UTF-8");
    }
    json whole = {f->text, f->text + n};
    if (!json_find(&whole, top, TOP_MEMBERS) || json_peek(&whole) != 0 || whole.at < whole.end) {
        return refuse_part(f, whole.at, "not a JSON object, or it has a member twice or with an escape in its name");
    }
    const json_member *vocab = &model[MODEL_VOCAB];
    const json_member *merges = &model[MODEL_MERGES];
    if (vocab->begin == NULL || merges->begin == NULL) {
        return refuse_part(f, f->text, "not a tokenizer.json of a BPE model: it has no model.vocab or no model.merges");
    }
    int code = read_around(f, top, model);
    if (code == PYBPE_OK) {
        const tokenizer_parts parts = {f->text, {vocab->begin, vocab->end}, {merges->begin, merges->end}};
        code = tokenizer_json_parts(out, parts, &f->texts, &f->spec, f->mem, f->err);
    }
    if (code == PYBPE_ERR_VALUE) { /* its offset is an id */
        f->err->offset = (uint64_t)(vocab->begin - f->text);
    }
    return code;
}

int tokenizer_json_read(pybpe_vocab **out, const uint8_t *text, size_t n, const pybpe_allocator *mem,
                        pybpe_error *err) {
    pybpe_error inner;
    json_file f = {.text = text, .mem = mem, .err = &inner};
    *out = NULL;
    f.room = mem_alloc(mem, n);
    int code = f.room == NULL ? error_set_memory(&inner, "a tokenizer.json", n) : read_file(&f, n, out);
    mem_free(mem, f.room);
    mem_free(mem, f.bytes);
    mem_free(mem, f.offsets);
    mem_free(mem, f.ids);
    mem_free(mem, f.flags);
    mem_free(mem, f.regex);
    if (code == PYBPE_OK || code == PYBPE_ERR_MEMORY) {
        return code == PYBPE_OK ? code : error_set(err, code, 0, "%s", inner.msg);
    }
    return error_set(err, PYBPE_ERR_FORMAT, inner.offset, "tokenizer.json, offset %llu: %s",
                     (unsigned long long)inner.offset, inner.msg);
}
