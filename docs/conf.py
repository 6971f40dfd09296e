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

HEADER_PAGE = "/".join(("reference", "header.rst"))
default_role = "py:obj"  # `World` links to it, where it is here
add_module_names = False
autodoc_default_options = {"members": True, "undoc-members": True, "show-inheritance": True, "inherited-members": FOREIGN}
autodoc_member_order = "bysource"
autodoc_mock_imports = ["torch"]
autodoc_typehints_format = "short"

header = ROOT / "build" / "docs" / "header"
hawkmoth_root = str(header)
hawkmoth_clang = [f"-I{header}", "-DPCCL_EXPORT=", "-std=c11"]


def prose(body):
    """The lines of a comment as reStructuredText: names in backquotes are literal, lists stand between blank lines."""
    body = re.sub(r"(?<!`)`([^`\n]+)`(?!`)", r"``\1``", body)
    body = re.sub(r"(?<![\w\\`])\*(?=\w)", r"\\*", body)
    lines, listed = [], False
    for line in body.split("\n"):
        bare = re.sub(r"^\s*\*? ?", "", line).rstrip()
        item = bare.startswith("- ")
        if item != listed and bare and not (listed and bare.startswith("  ")):
            lines.append("")
            listed = item
        lines.append(bare)
    return lines


def documented(text):
    """A header as hawkmoth reads it: each declaration, member and enumerator with a documentation comment before it.

    In the header itself a comment may stand behind a member."""
    def told(body):
        return "/**\n" + "\n".join(f" * {line}".rstrip() for line in prose(body)) + "\n */"

    text = re.sub(r"^#if defined\(_MSC_VER\)\n.*?^#endif\n", "", text, flags=re.M | re.S)  # how names are exported
    text = re.sub(r"/\* ----.*?\*/\n", "", text)
    text = re.sub(r"^([ \t]*(?!/\*|\*)[^\s#][^\n]*?)[ \t]*/\*(.*?)\*/", lambda m: f"{told(m.group(2))}\n{m.group(1)}", text, flags=re.M | re.S)
    text = re.sub(r"/\*(?!\*)(.*?)\*/", lambda m: m.group() if "SPDX" in m.group(1) else told(m.group(1)), text, flags=re.S)
    # What has no comment of its own is listed all the same.
    begins = r"(?:PCCL_EXPORT |typedef (?!.*;$)|    [a-zA-Z_][\w *]*(?:;|,$|\[\d+\];| = [\w()-]+,?$|$))"
    return re.sub(rf"(?<!\*/)\n(?={begins})", "\n/**\n * \\\\\n */\n", text, flags=re.M)


def essay(text):
    """The comment at the head of a header, but for its first line."""
    head = re.search(r"/\*(.*?)SPDX", text, re.S).group(1)
    return "\n".join(prose(head)[1:])


def links(app, name, source):
    """Links of the documents to what is not one of them go to the page that shows it."""
    up = "../" * name.count("/")
    source[0] = re.sub(r"\]\((?:\.\./)*include/pccl\.h\)", f"]({up}{HEADER_PAGE})", source[0])
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
    (header / "essay.rst").write_text(essay((ROOT / "include" / "pccl.h").read_text()))
    app.connect("source-read", links)
    app.connect("env-check-consistency", say_what_is_missing)
