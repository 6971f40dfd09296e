"""The programs that a page of the documents shows."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import pathlib
import re

DOCUMENTS = pathlib.Path(__file__).resolve().parents[3] / "docs" / "guide"


def programs(page: str, heading: str = "") -> list[str]:
    """Those in Python of a page, in their order; those under one heading of the second level, if one is named."""
    text = (DOCUMENTS / page).read_text()
    if heading:
        text = text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return re.findall(r"```python\n(.*?)```", text, re.S)
