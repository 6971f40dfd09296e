"""How Sphinx makes the reference of docstrings, and of comments that begin with #: (make docs-python)."""
# SPDX-License-Identifier: MIT
import pathlib
import sys

from sphinx.util import logging

import pccl

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "tests" / "python"))
from support.reference import public_names  # noqa: E402

#: Bases whose members are not ours to explain, or are explained with the class itself.
FOREIGN = "object,BaseException,PCCLError,OperationOptions,TorchCommBackend,Enum,ReprEnum,Flag,int,str,tuple,timedelta,ProcessGroup"

project = "pccl"
release = version = pccl.__version__
html_title = f"pccl {release}"
extensions = ["sphinx.ext.autodoc"]
default_role = "py:obj"  # `World` links to it, where it is here
add_module_names = False
autodoc_default_options = {"members": True, "undoc-members": True, "show-inheritance": True, "inherited-members": FOREIGN}
autodoc_member_order = "bysource"
autodoc_mock_imports = ["torch"]
autodoc_typehints_format = "short"
html_copy_source = False
html_show_copyright = False


def say_what_is_missing(app, environment):
    there = {entry[0] for entry in environment.get_domain("py").get_objects()}
    for name in public_names():
        if not name.names() & there:
            logging.getLogger(__name__).warning("the reference does not have %s", name.name)


def setup(app):
    app.connect("env-check-consistency", say_what_is_missing)
