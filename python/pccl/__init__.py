"""Fault-tolerant collective communication between processes that may join, crash and leave at any time."""
# SPDX-License-Identifier: MIT
