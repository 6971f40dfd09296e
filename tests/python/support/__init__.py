"""What tests of several faces need."""
# SPDX-License-Identifier: MIT
