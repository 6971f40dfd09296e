"""docs_tree.py - the files of a tree as the rules of check_docs.py ask for them: documents in parts, code, tests, programs.

SPDX-License-Identifier: MIT
"""
import fnmatch
import os
import re
from pathlib import Path

CODE = {".c", ".h", ".cpp", ".py", ".pyi", ".toml", ".sh", ".cmake", ".in", ".txt", ".pml", ".service", ".1", ".8"}
PLANTS = {"test_checks.sh", "test_check_docs.sh", "check_docs.py"}  # name what does not exist, on purpose


class Document:
    def __init__(self, root, path):
        self.path = path
        self.name = str(path.relative_to(root))
        self.lines = path.read_text().splitlines()
        self.blocks = []  # (language, first line number, lines)
        prose, fence = [], None
        for number, line in enumerate(self.lines, 1):
            if line.lstrip().startswith("```"):
                if fence is None:
                    fence = (line.strip()[3:].strip(), number + 1, [])
                else:
                    self.blocks.append(fence)
                    fence = None
                prose.append("")
            elif fence is not None:
                fence[2].append(line)
                prose.append("")
            else:
                prose.append(line)
        self.prose = "\n".join(prose)
        self.spans = []  # (line number, text)
        for match in re.finditer(r"`([^`]+)`", self.prose):
            line = self.prose.count("\n", 0, match.start()) + 1
            self.spans.append((line, re.sub(r"\s+", " ", match.group(1)).strip()))
        self.headings = [m.group(2) for m in re.finditer(r"^(#+) +(.*)$", self.prose, re.M)]

    def anchors(self):
        seen, out = {}, set()
        for heading in self.headings:
            slug = re.sub(r"[^\w\- ]", "", heading.replace("`", "").lower()).replace(" ", "-")
            count = seen.get(slug, 0)
            seen[slug] = count + 1
            out.add(f"{slug}-{count}" if count else slug)
        return out

    def commands(self):
        """(line number, command) of every sh block and of every span that looks like one of ours."""
        for language, first, lines in self.blocks:
            if language == "sh":
                joined = "\n".join(lines).replace("\\\n", " \x00")  # a continued line stays where it began
                for at, line in enumerate(joined.split("\n")):
                    for text in split_commands(line.replace("\x00", "")):
                        yield first + at, text, True
        for line, text in self.spans:
            for command in split_commands(text):
                yield line, command, False


def split_commands(line):
    line = re.sub(r"(^|\s)#.*$", "", line)
    for part in re.split(r"&&|\|\||[;|&]", line):
        if part.strip():
            yield part.strip()


def files_below(root):
    """Without what is built, hidden by git or drawn by a fuzzer."""
    for folder, folders, files in os.walk(root):
        folders[:] = [f for f in folders if f not in (".git", "corpus", "__pycache__") and not f.startswith("build")]
        yield from (Path(folder) / f for f in files if not f.startswith("build"))


class Tree:
    def __init__(self, root):
        self.root = root
        self.files = sorted(files_below(root))
        self.documents = [Document(root, f) for f in self.files if f.suffix == ".md" and self.is_document(f)]
        self.code = {f: f.read_text(errors="replace") for f in self.files
                     if f.suffix in CODE or f.name in ("Makefile", "run")}
        told = [t for f, t in self.code.items() if f.name not in PLANTS]
        self.words = set(re.findall(r"\w+", "\n".join(told)))
        self.tails = {w[i + 1:] for w in self.words for i, ch in enumerate(w) if ch == "_"}
        self.basenames = {f.name for f in self.files}
        self.known = {}  # path that a text names -> whether it is there
        self.tests = {}
        for f, text in self.code.items():
            if f.relative_to(root).parts[0] == "tests":
                self.tests[str(f.relative_to(root).with_suffix(""))[6:]] = re.findall(r"^TEST\((\w+)\)", text, re.M)
        self.programs = self.find_programs()
        makefile = root / "Makefile"
        self.makefile = makefile.read_text() if makefile.exists() else ""
        self.shell = "\n".join(t for f, t in self.code.items() if f.suffix == ".sh" and f.name not in PLANTS)

    def is_document(self, file):
        parts = file.relative_to(self.root).parts
        return len(parts) == 1 or parts[0] == "docs"

    def find_programs(self):
        """Program -> text of the sources that read its options."""
        out, beside = {}, {}
        for f in self.code:
            beside.setdefault(f.parent, []).append(f)
        for f in self.code:
            parts = f.relative_to(self.root).parts
            alone = parts[0] in ("apps", "bench", "fuzz") or parts[:2] == ("examples", "c") and len(parts) == 3
            family = parts[0] == "tests" or parts[:2] == ("examples", "c") and len(parts) == 4
            if f.suffix == ".c" and (alone or family):
                near = [f] if alone else beside[f.parent]
                out[f.stem] = "\n".join(self.code[g] for g in near)
            if f.suffix == ".c" and parts[0] == "apps" and f.stem.endswith("_main"):  # a program that is a folder
                out[f.stem.removesuffix("_main")] = "\n".join(self.code[g] for g in beside[f.parent])
        for name, module in re.findall(r'^(\w+) = "pccl\.(\w+):', self.code.get(self.root / "pyproject.toml", ""), re.M):
            out.setdefault(name, self.code.get(self.root / "python/pccl" / f"{module}.py", ""))  # what pip puts on the path
        return out

    def document(self, name):
        return next((d for d in self.documents if d.path.name == name), None)

    def exists(self, text):
        """Whether a path that a document or a comment names is there."""
        if text not in self.known:
            self.known[text] = self.look_for(text)
        return self.known[text]

    def look_for(self, text):
        folder, text = text.endswith("/"), text.rstrip("/")
        if re.match(r"(\$?BUILD|build)(/|$)", text):
            last = text.split("/")[-1]
            return (last in self.programs or last.startswith("libpccl") or "*" in text or last.upper() == last
                    or last.split("/")[-1] in ("build", "BUILD", "$BUILD", "bin", "gcc", "clang", "asan", "logs", "mutants"))
        if "/" not in text and not folder:
            return text in self.basenames or any(c in text for c in "*?[") and any(fnmatch.fnmatchcase(n, text) for n in self.basenames)
        for base in ("", "src", "tests", "docs", "docs/guide", "docs/internals", "include"):
            where = self.root / base
            if any(True for _ in where.glob(text)) or any(True for _ in where.glob(text + ".c")):
                return True
        return False
