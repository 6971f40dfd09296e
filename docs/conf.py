"""How Sphinx builds the site of the documents, the C header and the Python package (make docs)."""
# SPDX-License-Identifier: MIT
import pathlib
import re
import sys

from pygments.lexers.special import TextLexer
from sphinx.highlighting import lexers
from sphinx.util import logging

import pccl

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "python"))
from support.reference import public_names  # noqa: E402

#: Bases whose members are not ours to explain, or are explained with the class itself.
FOREIGN = "object,BaseException,PCCLError,OperationOptions,TorchCommBackend,Enum,ReprEnum,Flag,int,str,tuple,timedelta,ProcessGroup"

project = "PCCL"
release = version = pccl.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "hawkmoth"]
exclude_patterns = ["pictures"]
html_theme = "furo"
html_title = f"PCCL {release}"
html_copy_source = False
html_show_copyright = False
myst_heading_anchors = 4
lexers["mermaid"] = TextLexer()  # state diagrams stay text

default_role = "py:obj"  # `World` links to it, where it is here
add_module_names = False
autodoc_default_options = {"members": True, "undoc-members": True, "show-inheritance": True, "inherited-members": FOREIGN}
autodoc_member_order = "bysource"
autodoc_mock_imports = ["torch"]
autodoc_typehints_format = "short"

header = ROOT / "build" / "docs" / "header"
hawkmoth_root = str(header)
hawkmoth_clang = [f"-I{header}", "-DPCCL_EXPORT=", "-std=c11"]


def documented(text):
    """A header whose comments are documentation comments in reStructuredText: names in backquotes are literal, and lists stand between
    blank lines.  A comment behind a member, an enumerator or a macro is about that."""
    def one(match):
        if match.group(1).startswith(" ----") or "SPDX" in match.group(1):
            return match.group()
        body = re.sub(r"(?<!`)`([^`\n]+)`(?!`)", r"``\1``", match.group(1))
        body = re.sub(r"(?<![\w\\`])\*(?=\w)", r"\\*", body)
        lines, listed = [], False
        for line in body.split("\n"):
            bare = re.sub(r"^\s*\*? ?", "", line).rstrip()
            item = bare.startswith("- ")
            if item != listed and bare and not (listed and bare.startswith("  ")):
                lines.append("")
                listed = item
            lines.append(bare)
        behind = text[text.rfind("\n", 0, match.start()) + 1:match.start()].strip()
        said = "\n".join(f" * {line}".rstrip() for line in lines)
        return f"/**{'<' if behind else ''}\n{said}\n */"

    text = re.sub(r"^#if defined\(_MSC_VER\)\n.*?^#endif\n", "", text, flags=re.M | re.S)  # how names are exported
    return re.sub(r"/\*(.*?)\*/", one, text, flags=re.S)


def links(app, name, source):
    """Links of the documents to what is not one of them go to the page that shows it."""
    up = "../" * name.count("/")
    source[0] = re.sub(r"\]\((?:\.\./)*include/pccl\.h\)", f"]({up}reference/header.rst)", source[0])
    source[0] = re.sub(r"\]\((?:\.\./internals/)?decisions/\)", f"]({up}internals/decisions/0001-credit-on-data-connections.md)", source[0])
    source[0] = re.sub(r"\[([^\]]*)\]\((?:\.\./)+(?:README\.md(?:#[\w-]*)?|LICENSE)\)", r"\1", source[0])


def say_what_is_missing(app, environment):
    there = {entry[0] for entry in environment.get_domain("py").get_objects()}
    for name in public_names():
        if not name.names() & there:
            logging.getLogger(__name__).warning("the reference does not have %s", name.name)


def setup(app):
    header.mkdir(parents=True, exist_ok=True)
    for file in (ROOT / "include").glob("*.h"):
        (header / file.name).write_text(documented(file.read_text()))
    app.connect("source-read", links)
    app.connect("env-check-consistency", say_what_is_missing)
