#!/usr/bin/env python3
"""plain_english.py [FILE...] - what a script can find of English that has to be read twice, in the text that users read.

The rules: a sentence does not begin with "who", "what", "whose", "those" or "that" unless it asks; no sentence says "at all" for
"on all members"; no sentence has more than 30 words; the private words of WORDS have a standard word in their place.

Text is the prose of documents, the comments of public headers, the docstrings of the Python package, manual pages, and the
error, log and help texts in the string literals of the library and its programs.  Without FILE: all of it, with the number of
words and of breaches of each kind, so that a revision can be measured.
SPDX-License-Identifier: MIT
"""
import ast
import re
import sys
from pathlib import Path

MOST_WORDS = 30
OPENERS = re.compile(r"^[\"'(*_]*(Who|Whom|What|Whose|Whoever|Those|That)\b", re.A)
# Standard words: what to write in place of each.
WORDS = {
    r"who(?:m)?ever": "a peer that",
    r"(?:give|gives|gave|given|giving) up": "abort, aborted, fail or failed",
    r"(?:is|are|was|were|be|been|being) told|(?<!which )told of": "reported to",
    r"mend(?:s|ed|ing)?": "fix",
    r"alike": "identically, the same",
    r"go(?:es)? by": "use",
    r"(?:is|are) over": "has ended",
    r"of a size": "fixed-size",
    r"faces?": "API",
    r"is looked at": "is read, checked",
    r"owed?": "pending",
    r"tombstones?": "record",
    r"stand(?:s)? (?:in|at|there|here|behind|below|above|beside)": "is in, is documented",
    r"read the sizes, call again": "read the world size again (pcclGetAttribute), then retry",
}
BANNED = [(re.compile(rf"\b(?:{pattern})\b", re.I), instead) for pattern, instead in WORDS.items()]
AT_ALL = re.compile(r"\bat all(?=[.;:,]|$)", re.I)
EXPLAINS_THE_PROTOCOL = {"GLOSSARY.md", "RULES.md", "PROTOCOL.md"}


def sentences(text):
    """The sentences of a paragraph whose code has been replaced."""
    text = re.sub(r"\s+", " ", text).strip()
    text = re.sub(r"\b(e\.g|i\.e|vs|etc|cf|approx)\.", r"\1", text)
    return [s for s in re.split(r"(?<=[.!?])[\"')*_]*\s+(?=[\"'(*_`A-Z0-9])|(?<=:)\s*$", text) if s]


def breaches_of(paragraph):
    """What is wrong with one paragraph: (kind, words of the sentence, what to do)."""
    for sentence in sentences(paragraph):
        words = sentence.split()
        short = " ".join(words[:8]) + (" ..." if len(words) > 8 else "")
        if OPENERS.match(sentence) and not sentence.rstrip("\"')*_").endswith("?"):
            yield "opener", short, "begin with a noun"
        if len(words) > MOST_WORDS:
            yield "long", short, f"{len(words)} words, at most {MOST_WORDS}"
        if AT_ALL.search(sentence):
            yield "word", short, "'at all': say 'on all members', or leave it out"
        for pattern, instead in BANNED:
            match = pattern.search(sentence)
            if match:
                yield "word", short, f"'{match.group()}': say '{instead}'"


def prose(text):
    """Code in a text becomes one word, a link its words."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return re.sub(r"`+[^`]+`+", "CODE", text)


def markdown(text):
    """(line, paragraph) of the prose: no listings, tables or headings; an item of a list is a paragraph."""
    fence, start, lines = False, 0, []
    for number, line in enumerate(text.splitlines() + [""], 1):
        ends = not line.strip() or re.match(r"\s*([-*+]|\d+\.) ", line) or line.startswith(("#", "|", "<"))
        if line.lstrip().startswith("```"):
            fence, ends = not fence, True
        if (ends or fence) and lines:
            yield start, prose(" ".join(lines))
            lines = []
        if fence or line.startswith(("#", "|", "<", "```")) or not line.strip():
            continue
        if not lines:
            start = number
        lines.append(re.sub(r"^\s*([-*+]|\d+\.) +", "", line).strip())


def comments(text):
    """(line, paragraph) of the comments of C, but for listings in them, which are indented."""
    for match in re.finditer(r"/\*(.*?)\*/", text, re.S):
        line = text.count("\n", 0, match.start()) + 1
        body = [re.sub(r"^\s*\* ?", "", part) for part in match.group(1).splitlines()]
        if "SPDX-License-Identifier" in match.group(1):
            body = [part for part in body if "SPDX" not in part]
        yield from paragraphs(body, line)


def paragraphs(body, line):
    start, lines = line, []
    for at, part in enumerate([*body, ""]):
        listing = at > 0 and part.startswith("    ")
        if (not part.strip() or listing or re.match(r"\s*[-*] ", part)) and lines:
            yield start, prose(" ".join(lines))
            lines = []
        if part.strip() and not listing:
            if not lines:
                start = line + at
            lines.append(re.sub(r"^\s*[-*] ", "", part).strip())


def docstrings(text):
    """(line, paragraph) of the docstrings of what is public."""
    def walk(node, public):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
                yield from walk(child, public and not child.name.startswith("_"))
        if public and isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            said = ast.get_docstring(node)
            if said:
                yield from paragraphs(said.splitlines(), node.body[0].lineno)
    yield from walk(ast.parse(text), True)


def manual(text):
    """(line, paragraph) of a manual page: macros of emphasis are code, others end a paragraph."""
    start, lines = 1, []
    for number, line in enumerate(text.splitlines() + [".PP"], 1):
        code = re.match(r"\.(B|I|BR|RB|IR|RI|BI|IB) +(.*)", line)
        if line.startswith((".", "'")) and not code:
            if lines:
                yield start, prose(" ".join(lines))
            lines = []
            continue
        if not lines:
            start = number
        lines.append(re.sub(r".*?([.,;:)]?)\"?$", r"CODE\1", code.group(2)) if code else re.sub(r"\\f[BIRP]|\\", "", line))


LITERAL = re.compile(r'"((?:\\.|[^"\\\n])*)"')


def literals(text):
    """(line, text) of string literals that read as sentences: those next to each other are one."""
    text = re.sub(r"/\*.*?\*/", lambda m: "\n" * m.group().count("\n"), text, flags=re.S)
    for match in re.finditer(r'"(?:\\.|[^"\\\n])*"(?:\s*(?:PRI\w+\s*)?"(?:\\.|[^"\\\n])*")*', text):
        said = "".join(LITERAL.findall(match.group()))
        line_start = text.rfind("\n", 0, match.start()) + 1
        if said.count(" ") >= 2 and not text[line_start:match.start()].lstrip().startswith(("#include", "PCCL_ASSERT")):
            said = re.sub(r"%[-+ #0-9.*]*[a-z]+", "7", said.replace('\\"', '"'))
            for paragraph in said.split("\\n") if said.count("\\n") > 2 else [said.replace("\\n", " ")]:  # a help text has one a line
                yield text.count("\n", 0, match.start()) + 1, paragraph


def kind_of(path, root):
    """How a file's public text is read; None if it has none."""
    parts = path.relative_to(root).parts
    if path.suffix == ".md" and (len(parts) == 1 or parts[0] == "docs"):
        return markdown
    if parts[0] == "include" and path.suffix == ".h":
        return comments
    if parts[:2] == ("python", "pccl") and path.suffix == ".py":
        return docstrings
    if parts[0] == "apps" and path.suffix in (".1", ".8"):
        return manual
    if parts[0] in ("src", "apps") and path.suffix in (".c", ".h"):
        return literals
    return None


def read(path, root):
    """(words, breaches) of a file: breaches as (line, kind, sentence, remedy)."""
    words, found = 0, []
    for line, paragraph in kind_of(path, root)(path.read_text()):
        words += len(paragraph.split())
        for kind, sentence, remedy in breaches_of(paragraph):
            if not (path.name in EXPLAINS_THE_PROTOCOL and kind == "word"):
                found.append((line, kind, sentence, remedy))
    return words, found


def main(arguments):
    root = Path(__file__).resolve().parent.parent
    files = [Path(a).resolve() for a in arguments]
    if not files:
        tops = [root / name for name in ("docs", "include", "python/pccl", "apps", "src")]
        files = [root / "README.md", *sorted(f for top in tops for f in top.rglob("*") if f.is_file())]
    total = {"words": 0, "opener": 0, "long": 0, "word": 0}
    for path in files:
        if kind_of(path, root) is None:
            continue
        words, found = read(path, root)
        count = {kind: sum(f[1] == kind for f in found) for kind in ("opener", "long", "word")}
        if arguments:
            for line, kind, sentence, remedy in found:
                print(f"{path.relative_to(root)}:{line}: {kind}: {sentence}: {remedy}")
        if words and kind_of(path, root) is not literals or found:
            print(f"{path.relative_to(root)}: {words} words, {count['opener']} openers, {count['long']} long, {count['word']} words")
        total["words"] += words
        for kind, number in count.items():
            total[kind] += number
    print("{words} words, {opener} openers, {long} long sentences, {word} private words".format(**total))


if __name__ == "__main__":
    main(sys.argv[1:])
