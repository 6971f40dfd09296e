/* wan_ini.h - reads the description of an emulated network.
 *
 * Sections are [defaults], [site NAME], [host NAME] and [path FROM TO].  Each error names file, line, value and remedy; the first one counts.
 * SPDX-License-Identifier: MIT */
#ifndef PCCL_WAN_INI_H
#define PCCL_WAN_INI_H

#include "pccl/wan_network.h"

/* Null, with one sentence in `error`: something is wrong.  `name` stands in errors. */
struct wan_network *wan_ini_read(const char *name, const char *text, char error[WAN_ERROR]);
struct wan_network *wan_ini_load(const char *path, char error[WAN_ERROR]);

/* One key of a path, as the control commands have it; false: `error` says what is wrong. */
bool wan_ini_path_key(struct wan_values *v, const char *key, const char *value, char error[WAN_ERROR]);

#endif
