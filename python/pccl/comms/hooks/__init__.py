"""Hooks, and recorders that use them."""
# SPDX-License-Identifier: MIT
