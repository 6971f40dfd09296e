"""Back-ends: the native one, one that does nothing, adapters over torch's process groups, and libraries of others."""
# SPDX-License-Identifier: MIT
