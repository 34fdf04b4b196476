/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* Ranges of the sums of rotated rows (numerics/rotate.h), predicted by earlier calls of the profile,
 * docs/reference/protocol.md, section 6. A call without a prediction is made as NF_PACKED_HALF; its sums predict later ones. */

#ifndef NETFOLD_RANGES_H
#define NETFOLD_RANGES_H

#include "call.h"
#include "scale_predictor.h"

/* Returns the scheme of the call's next attempt: the requested one, but NF_PACKED_HALF in place of NF_ROTATED_QUARTER where
 * nothing is predicted. Returns -1 if there is no memory. */
int ranges_choose_scheme(struct nf_call *c, const struct nf_assignment *a, struct nf_scale_predictor *p);

/* Notes the sums of a row that `codec` packed without a rotation. */
void ranges_note_sums(struct nf_call *c, const struct nf_codec *codec, int64_t row);

/* Notes the range byte of a rotated row's sums. Returns whether the row has to be re-encoded. */
int ranges_note_rotated(struct nf_call *c, int64_t row, uint8_t observed);

/* Teaches the predictor the ranges that a finished call observed. */
void ranges_learn(const struct nf_call *c, struct nf_scale_predictor *p);

#endif
