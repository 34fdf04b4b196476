/* SPDX-FileCopyrightText: 2026 The netfold authors */
/* SPDX-License-Identifier: Apache-2.0 */

/* srun --netfold[=KEY:VALUE,...]. Slurm itself brings the option to PrologSlurmctld and EpilogSlurmctld. */

#include <slurm/spank.h>

SPANK_PLUGIN(netfold, 1)

int slurm_spank_init(spank_t spank, int count, char **arguments) {
    (void)count;
    (void)arguments;
    struct spank_option option = {
        .name = "netfold",
        .arginfo = "[KEY:VALUE,...]",
        .usage = "add up gradients in the network",
        .has_arg = 2, /* optional */
    };
    return spank_option_register(spank, &option);
}
