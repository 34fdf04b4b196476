/* SPDX-FileCopyrightText: 2026 The netfold authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The log of a switch: log_msg(), the bytes of frames (ss_set_dump), and, for programs translated with it, the trace. The texts are
 * BMv2's (src/bm_sim: dev_mgr.cpp, parser.cpp, match_tables.cpp, match_units.cpp, actions.cpp). */
#include <stdarg.h>
#include <stdio.h>

#include "internal.h"

static void append(struct ss_text *x, const char *format, va_list arguments) {
    int n = vsnprintf(x->text + x->used, sizeof x->text - x->used, format, arguments);
    if (n < 0) return;
    uint32_t capacity = (uint32_t)sizeof x->text - 1 - x->used;
    x->used += (uint32_t)n < capacity ? (uint32_t)n : capacity;
}

void ss_text_add(struct ss_text *x, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    append(x, format, arguments);
    va_end(arguments);
}

void ss_text_number(struct ss_text *x, const ss_limb *limbs, uint32_t n) {
    ss_limb rest[SS_TEXT_LIMBS];
    char digits[SS_TEXT_LIMBS * 20 + 2];
    uint32_t at = sizeof digits - 1;
    digits[at] = 0;
    int negative = n && limbs[n - 1] >> 63;
    if (n > SS_TEXT_LIMBS) n = SS_TEXT_LIMBS;
    ss_limb carry = 1;
    for (uint32_t i = 0; i < n; i++) {
        rest[i] = negative ? ~limbs[i] + carry : limbs[i];
        carry = carry && rest[i] == 0;
    }
    do {
        unsigned __int128 left = 0;
        for (uint32_t i = n; i-- > 0;) {
            left = left << 64 | rest[i];
            rest[i] = (ss_limb)(left / 10);
            left %= 10;
        }
        digits[--at] = (char)('0' + (int)left);
        while (n && rest[n - 1] == 0) n--;
    } while (n);
    ss_text_add(x, "%s%s", negative ? "-" : "", digits + at);
}

/* Writes all bytes of a field of `width` bits, in hexadecimal; it begins at bit `shift` of the first word, or takes whole
 * words. */
static void add_bits(struct ss_text *x, const uint64_t *words, uint32_t shift, uint32_t width) {
    for (uint32_t byte = (width + 7) / 8; byte-- > 0;) {
        uint32_t bits = width - byte * 8 < 8 ? width - byte * 8 : 8, at = shift + byte * 8;
        ss_text_add(x, "%02x", (unsigned)(words[at / 64] >> at % 64 & ss_ones(bits)));
    }
}

void ss_text_field(struct ss_text *x, const uint64_t *words, uint32_t width) { add_bits(x, words, 0, width); }

static void emit(struct ss_packet *k, char level, const char *text) {
    struct ss_switch *sw = k->pl->owner;
    if (sw && sw->log) sw->log(sw->log_ctx, level, text);
}

void ss_dump(struct ss_switch *sw, const char *what, uint32_t port, const uint8_t *data, uint32_t len) {
    if (!sw->log) return;
    struct ss_text x = {0, ""};
    ss_text_add(&x, "%s packet of length %u on port %u: ", what, len, port);
    for (uint32_t i = 0; i < len && i < sw->dump_bytes; i++) ss_text_add(&x, "%02x", data[i]);
    sw->log(sw->log_ctx, 'I', x.text);
}

void ss_log(struct ss_packet *k, const char *text) { emit(k, 'I', text); }

static void begin(const struct ss_packet *k, struct ss_text *x) {
    x->used = 0;
    ss_text_add(x, "[%llu.%u] [cxt 0] ", (unsigned long long)k->id, k->copy);
}

void ss_trace(struct ss_packet *k, char level, const char *format, ...) {
    struct ss_text x;
    begin(k, &x);
    va_list arguments;
    va_start(arguments, format);
    append(&x, format, arguments);
    va_end(arguments);
    emit(k, level, x.text);
}

void ss_trace_value(struct ss_packet *k, const char *name, const uint64_t *words, uint32_t width) {
    struct ss_text x;
    begin(k, &x);
    ss_text_add(&x, "%s is now ", name);
    add_bits(&x, words, 0, width);
    emit(k, 'T', x.text);
}

static uint32_t handle_of(const struct ss_table *t, const struct ss_entry *e) {
    uint32_t i = 0;
    while (i < t->n_entries && t->entries[i] != e) i++;
    return i;
}

static uint32_t ones_in(const uint64_t *words, uint32_t shift, uint32_t width) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < width; i++) n += (uint32_t)(words[(shift + i) / 64] >> (shift + i) % 64 & 1);
    return n;
}

static void add_match(struct ss_text *x, const struct ss_key_text *f, const struct ss_entry *e, uint32_t words) {
    static const char *const names[] = {"EXACT", "LPM", "TERNARY", "RANGE"};
    ss_text_add(x, "* %-20s: %-10s", f->name, names[f->kind]);
    if (f->kind == SS_KEY_RANGE) {
        add_bits(x, e->range + 2 * f->word, 0, f->width);
        ss_text_add(x, " -> ");
        add_bits(x, e->range + 2 * f->word + 1, 0, f->width);
    } else {
        add_bits(x, e->key + f->word, f->shift, f->width);
        if (f->kind == SS_KEY_LPM) ss_text_add(x, "/%u", ones_in(e->key + words + f->word, f->shift, f->width));
        if (f->kind == SS_KEY_TERNARY) {
            ss_text_add(x, " &&& ");
            add_bits(x, e->key + words + f->word, f->shift, f->width);
        }
    }
    ss_text_add(x, "\n");
}

void ss_trace_lookup(struct ss_packet *k, const char *table, const struct ss_table *t, const struct ss_entry *e,
                     const struct ss_key_text *fields, uint32_t n, const uint64_t *key, const uint64_t *values) {
    struct ss_text x;
    ss_trace(k, 'T', "Applying table '%s'", table);
    begin(k, &x);
    ss_text_add(&x, "Looking up key:\n");
    for (uint32_t i = 0; i < n; i++) {
        ss_text_add(&x, "* %-20s: ", fields[i].name);
        add_bits(&x, fields[i].kind == SS_KEY_RANGE ? values + fields[i].word : key + fields[i].word, fields[i].shift,
                 fields[i].width);
        ss_text_add(&x, "\n");
    }
    emit(k, 'D', x.text);
    if (!e) {
        ss_trace(k, 'D', "Table '%s': miss", table);
        return;
    }
    ss_trace(k, 'D', "Table '%s': hit with handle %u", table, handle_of(t, e));
    begin(k, &x);
    ss_text_add(&x, "Dumping entry %u\nMatch key:\n", handle_of(t, e));
    for (uint32_t i = 0; i < n; i++) add_match(&x, &fields[i], e, t->words);
    emit(k, 'D', x.text);
}

void ss_trace_action(struct ss_packet *k, const char *action, const uint64_t *data, const uint32_t *widths, uint32_t n) {
    struct ss_text x;
    begin(k, &x);
    ss_text_add(&x, "Action entry is %s - ", action);
    for (uint32_t i = 0; i < n; i++) {
        struct ss_text hex = {0, ""};
        add_bits(&hex, data, 0, widths[i]);
        const char *digits = hex.text;
        while (digits[0] == '0' && digits[1]) digits++;
        ss_text_add(&x, "%s,", digits);
        data += widths[i] <= 64 ? 1 : (widths[i] + 64) / 64;
    }
    emit(k, 'D', x.text);
}
