# Warnings of developer builds: the rules of style in docs/CONTRIBUTING.md, as flags.  Own files only, never a parent project's.
# SPDX-License-Identifier: MIT
add_library(pccl_warnings INTERFACE)
target_compile_options(pccl_warnings INTERFACE
    -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wcast-qual -Wwrite-strings
    -Wundef -Wvla -Wformat=2 -Wswitch-enum $<$<BOOL:${PCCL_WERROR}>:-Werror>)
