#!/usr/bin/env python3
"""check_docs.py [ROOT [RULE...]] - what documents and comments say of the project must be so; each rule is one test.

A document is README.md or a file under docs/; a span is what stands between backquotes in it.  How documents write things
down, so that they can be checked:

    `src/a/b.c`, `b.c`, `a/b*`         a path, from the root, src/ or tests/; or a file's name alone
    `build/bench/x`, `BUILD/tests/y`   a program that the build makes
    `kind/test_x: name`                a test; `name` alone may follow for more of the same program, "..." shortens a name
    `src/a/b.c: function`              a function defined in that file
    `some_name`, `pcclSomething`       a name that occurs in the code; what is not ours has no backquotes
    Mutants: A, B.                     names of src/core/mutant.h
    Mutations: A. Variants: B.         in RULES.md: options of lines of a model in verify/ that must be caught, that must hold
    ```sh blocks, spans with a blank   commands, if they begin with one of our programs, scripts or make
    spans with a blank in TROUBLESHOOTING.md that are no commands: texts of the library or of ccoip_master, "..." for what varies

Prints every breach as file:line, then PASS or FAIL per rule, then "N passed, N failed".
SPDX-License-Identifier: MIT
"""
import re
import shlex
import subprocess
import sys

import plain_english
from docs_tree import PLANTS, Tree
from rules import check_tree
from verify import read_lists

LINE = 110
TOP = ("src", "include", "apps", "bench", "examples", "tests", "fuzz", "scripts", "cmake", "docs", "verify", "packaging", "python")
LANGUAGES = {"sh", "c", "text", "mermaid", "ini", "cmake", "python"}
SHELL_WORDS = {"sudo", "nice", "env", "timeout", "exec", "then", "do", "if", "while", "fi", "done"}
# What the documents may ask a reader to run that is not ours.
FOREIGN_COMMANDS = set("apt apt-get cc cd cmake cp curl export gcc git ip journalctl kill ldconfig man mkdir nft ping printf "
                       "ps rm ss ssh sysctl systemctl ufw useradd install cat echo nc firewall-cmd ulimit pip python torchrun".split())
FOREIGN_NAMES = {
    "LD_LIBRARY_PATH", "CMAKE_BUILD_TYPE", "CMAKE_INSTALL_PREFIX", "CMAKE_PREFIX_PATH", "DESTDIR", "TORCH_NCCL_BLOCKING_WAIT",
    # torchft's
    "TORCHFT_LIGHTHOUSE", "min_replica_size", "should_commit", "current_step", "num_participants", "participating_rank", "quorum_timeout",
    "heartbeat_interval",
}


# ---- Rules of documents -------------------------------------------------------------------------------------------

def lines_are_short(tree):
    """As a reader sees them: the target of a link does not count."""
    for doc in tree.documents:
        for number, line in enumerate(doc.lines, 1):
            columns = len(re.sub(r"\]\([^)\s]+\)", "]", line))
            if columns > LINE and not line.startswith("|"):
                yield f"{doc.name}:{number}: {columns} columns, at most {LINE}"


def blocks_have_a_language(tree):
    for doc in tree.documents:
        for language, first, _ in doc.blocks:
            if language not in LANGUAGES:
                yield f"{doc.name}:{first - 1}: a block of '{language}': expected one of {' '.join(sorted(LANGUAGES))}"


def links_resolve(tree):
    for doc in tree.documents:
        for match in re.finditer(r"\]\(([^)\s]+)\)", doc.prose):
            target, _, anchor = match.group(1).partition("#")
            line = doc.prose.count("\n", 0, match.start()) + 1
            if re.match(r"(https?|mailto):", match.group(1)):
                continue
            file = (doc.path.parent / target).resolve() if target else doc.path
            if not file.exists():
                yield f"{doc.name}:{line}: no file {target}"
            elif anchor:
                to = next((d for d in tree.documents if d.path == file), None)
                if to is None or anchor not in to.anchors():
                    yield f"{doc.name}:{line}: {target or doc.name} has no heading #{anchor}"


def documents_are_indexed(tree):
    """README.md links to the documents of docs/ and to the index of each wing; that links to all of the wing."""
    for doc in tree.documents:
        folder = doc.path.relative_to(tree.root).parts[:-1]
        if not folder or "decisions" in folder:
            continue
        wing = len(folder) > 1 and doc.path.name != "INDEX.md"
        index = tree.root / "docs" / folder[1] / "INDEX.md" if wing else tree.root / "README.md"
        link = doc.path.relative_to(index.parent)
        if f"({link})" not in (index.read_text() if index.exists() else ""):
            yield f"{index.relative_to(tree.root)}: no link to {link}"


def decisions_are_numbered(tree):
    seen = {}
    for doc in tree.documents:
        if doc.path.parent.name != "decisions":
            continue
        number = re.match(r"(\d{4})-", doc.path.name)
        if not number or not re.match(rf"# {int(number.group(1))}\. ", doc.lines[0] if doc.lines else ""):
            yield f"{doc.name}: expected NNNN-words.md that begins with '# N. Title'"
        elif number.group(1) in seen:
            yield f"{doc.name}: the same number as {seen[number.group(1)]}"
        else:
            seen[number.group(1)] = doc.name


PATH = re.compile(r"^\$?[\w.*-]+(/[\w.*+-]+)*/?$")
SAVED = re.compile(r"Save (?:this|it) as `?([\w.]+\w)`?")  # a listing that the reader is to put into a file of that name


def paths_exist(tree):
    for doc in tree.documents:
        saved = set(SAVED.findall(doc.prose))
        for line, span in doc.spans:
            text = span.split(": ")[0]
            if text in saved:
                continue
            shaped = PATH.match(text) and ("/" in text or re.search(r"\.(c|h|py|sh|md|pml|cmake|service|txt)$", text))
            if shaped and not tree.exists(text):
                yield f"{doc.name}:{line}: no file {text}"


def names_exist(tree):
    for doc in tree.documents:
        names = [(line, span) for line, span in doc.spans]
        for language, first, lines in doc.blocks:
            if language in ("c", "cmake"):
                names += [(first + i, n) for i, text in enumerate(lines)
                          for n in re.findall(r"\b(?:pccl|PCCL_|CCOIP_|ccoip_)\w+", text)]
        for line, text in names:
            name = re.sub(r"\(\)$", "", text.split("=")[0])
            shaped = re.match(r"^(\w*[a-z]_\w+|pccl[A-Z]\w*|[A-Z][A-Z0-9_]{3,})$", name)
            if shaped and name not in tree.words and name not in tree.tails and name not in FOREIGN_NAMES \
                    and name not in {t for names in tree.tests.values() for t in names}:
                yield f"{doc.name}:{line}: nothing is called {name}"


def test_matches(pattern, tests):
    if pattern.endswith("..."):
        return any(t.startswith(pattern[:-3]) for t in tests)
    return pattern in tests


def tests_exist(tree):
    everywhere = [t for tests in tree.tests.values() for t in tests]
    for doc in tree.documents:
        for line, span in doc.spans:
            match = re.match(r"^((?:tests/)?[a-z0-9]+/test_\w+|test_\w+)(?:\.c)?: (.+)$", span)
            if match:
                file = match.group(1).removeprefix("tests/")
                known = tree.tests.get(file) or next((t for f, t in tree.tests.items() if f.endswith("/" + file)), None)
                if known is None:
                    yield f"{doc.name}:{line}: no test program {file}"
                    continue
                for name in match.group(2).split(", "):
                    if not test_matches(name, known):
                        yield f"{doc.name}:{line}: {file} has no test {name}"
            elif re.match(r"^[a-z]\w*_\w*\.\.\.$", span) and not test_matches(span, everywhere):
                yield f"{doc.name}:{line}: no test begins with {span[:-3]}"


def functions_exist(tree):
    for doc in tree.documents:
        for line, span in doc.spans:
            match = re.match(r"^([\w/.-]+\.(?:[ch]|py)): (\w+)(?:\(\))?$", span)
            if not match or re.match(r"(tests/)?\w+/test_", match.group(1)):
                continue
            found = [f for f in tree.code if str(f).endswith("/" + match.group(1))]
            pattern = re.compile(rf"^(?:\w[^;=\n]*\b{match.group(2)}\([^;]*?\)\s*\n?{{|def {match.group(2)}\()", re.M)
            if not any(pattern.search(tree.code[f]) for f in found):
                yield f"{doc.name}:{line}: {match.group(1)} defines no function {match.group(2)}"


def mutants_exist(tree):
    header = tree.root / "src/core/mutant.h"
    known = set(re.findall(r"X\(([A-Z_]+)\)", header.read_text())) - {"X"} if header.exists() else set()
    named = set()
    for doc in tree.documents:
        for match in re.finditer(r"\bMutants?: ([^.]+)\.", doc.prose):
            line = doc.prose.count("\n", 0, match.start()) + 1
            for name in re.findall(r"\b[A-Z][A-Z_]{2,}\b", match.group(1)):
                named.add(name)
                if name not in known:
                    yield f"{doc.name}:{line}: no mutant {name}"
        for line, command, _ in doc.commands():
            match = re.search(r"--mutant[ =](\w+)", command)
            if match and match.group(1) not in known | {"NAME"}:
                yield f"{doc.name}:{line}: no mutant {match.group(1)}"
    testing = tree.document("TESTING.md")
    for name in sorted(known):
        if testing is None or not re.search(rf"\b{name}\b", testing.prose):
            yield f"docs/internals/TESTING.md: the mutant {name} is not named"


def mutations_exist(tree):
    """What RULES.md calls a mutation is a line of a model that must be caught; a variant, one that must hold."""
    doc = tree.document("RULES.md")
    lists = [read_lists(f) for f in tree.code if f.suffix == ".pml"]
    for match in re.finditer(r"\b(Mutation|Variant)s?: ([^.]+)\.", "" if doc is None else doc.prose):
        caught = match.group(1) == "Mutation"
        known = {name for lines in lists for line in lines[caught] for name in re.findall(r"-D(\w+)", line)}
        for name in re.findall(r"\b[A-Z][A-Z_]{2,}\b", match.group(2)):
            if name not in known:
                line = doc.prose.count("\n", 0, match.start()) + 1
                yield f"{doc.name}:{line}: no line of a model that must {'be caught' if caught else 'hold'} has {name}"


def messages_are_described(tree):
    """Of the wire: every row of src/wire/frame_table.h stands in PROTOCOL.md, in the list of where it travels."""
    doc = tree.document("PROTOCOL.md")
    table = tree.root / "src/wire/frame_table.h"
    rows = re.findall(r"^ +X\((\w+), \d+, (\w+),", table.read_text(), re.M) if table.exists() else []
    heads = {"TO_MASTER": "Peer to master,", "BOTH_WAYS": "Both ways:", "TO_PEER": "Master to peer:", "ANY_LINK": "Between peers, on every connection:",
             "CONTROL_LINK": "on the control link:", "DATA_LINK": "On a data connection:", "SYNC_LINK": "On a sync connection:",
             "PROBE_LINK": "On a probe connection:"}
    prose = doc.prose if doc is not None else ""
    places = sorted((prose.find(head), way) for way, head in heads.items() if head in prose)
    ends = [place for place, _ in places[1:]] + [prose.find("\n## ", places[-1][0])] if places else []
    lists = {way: prose[place:end] for (place, way), end in zip(places, ends)}
    for name, way in rows:
        if not re.search(rf"\b{name}\b", lists.get(way, "")):
            yield f"docs/internals/PROTOCOL.md: the message {name} is not described under '{heads[way]}'"


def environment_is_described(tree):
    """TUNING.md describes every variable that the library reads, and some document those of the Python package.  mutant.c is not part
    of a library that is used."""
    doc = tree.document("TUNING.md")
    for file, text in tree.code.items():
        used = file.relative_to(tree.root).parts[0] in ("src", "apps") and file.name != "mutant.c"
        for name in re.findall(r'getenv\("(\w+)"\)', text if used else ""):
            if doc is None or not any(re.split(r"[ =]", span)[0] == name for _, span in doc.spans):
                yield f"docs/guide/TUNING.md: the variable {name}, which {file.relative_to(tree.root)} reads, is not described"
    said = {re.split(r"[ =<]", span)[0] for document in tree.documents for _, span in document.spans}
    for file, text in tree.code.items():
        used = file.relative_to(tree.root).parts[:2] == ("python", "pccl")
        reads = r'\b(?:environ(?:\.get\(|\.setdefault\(|\[)|environment\.(?:text|flag|number)\()f?"(\w+)'
        for name in re.findall(reads, text if used else ""):
            if re.match(r"PCCL_|TORCHCOMMS?_|M8D_", name) and name not in said:
                yield f"docs/guide/python: the variable {name}, which {file.relative_to(tree.root)} reads, is not described"


# ---- Commands -----------------------------------------------------------------------------------------------------

def make_is_known(tree, words):
    for word in words:
        name, given, _ = word.partition("=")
        if given:
            if not re.search(rf"\b{name}\b", tree.makefile + tree.shell):
                return f"make does not know {name}="
        elif word.startswith("-"):
            continue
        elif not re.search(rf"^[\w .-]*\b{re.escape(word)}\b[\w .-]*:(?!=)", tree.makefile, re.M):
            return f"make has no target {word}"
    return None


def options_are_known(source, words):
    letters = "".join(re.findall(r"getopts (\S+)", source) + re.findall(r"\{'(\w)', \"", source))  # or rows of a table
    source += " --" + " --".join(re.findall(r"\{(?:0|'\w'), \"([\w-]+)\"", source))
    for word in words:
        option = word.split("=")[0]
        if re.match(r"--[a-z]", option) and not re.search(rf"{option}(?![\w-])", source):
            return f"no option {option}"
        if re.match(r"-[A-Za-z]$", option) and option[1] not in letters and not re.search(rf"{option}(?![\w-])", source):
            return f"no option {option}"
    return None


def script_is_known(tree, path, words):
    file = tree.root / path
    if not file.exists():
        return f"no script {path}"
    source = file.read_text()
    if path == "scripts/check.sh":
        for word in words:
            if not re.search(rf"^part_{word}\(\)", source, re.M) and word.upper() != word and not word.startswith("-"):
                return f"{path} has no part {word}"
    return options_are_known(source, words)


def command_breach(tree, command, in_block):
    """What is wrong with a command; None if nothing is, or if it is not ours to judge."""
    try:
        words = shlex.split(command)
    except ValueError:
        return "a quote that does not end" if in_block else None
    while words and (re.match(r"^[A-Z_]+=", words[0]) or words[0] in SHELL_WORDS or re.match(r"^-?\d+$|^-n$", words[0])):
        words.pop(0)
    if not words or words[0] == "for":
        return None
    head, rest = words[0].removeprefix("./"), words[1:]
    if head == "make":
        return make_is_known(tree, rest) if in_block or all(re.match(r"^[\w.-]+(=.*)?$", w) for w in rest) else None
    if head == "python3" and rest:
        head, rest = rest[0], rest[1:]
    if head.startswith("scripts/") and not head.endswith(":"):
        return script_is_known(tree, head, rest)
    program = head.split("/")[-1]
    if re.match(r"(\$?BUILD|build)/", head) or (program in tree.programs and (in_block or rest)):
        if program not in tree.programs:
            return f"no program {program}"
        return options_are_known(tree.programs[program], rest)
    if head == "cmake":
        for name in re.findall(r"-D(PCCL_\w+)", command):
            if name not in tree.words:
                return f"cmake has no option {name}"
        return None
    if words[0].startswith("./"):
        return None  # what the reader has made
    if in_block and head not in FOREIGN_COMMANDS and not re.match(r"^[\w-]+\(\)|^[{}()\[]", head):
        return f"an unknown command {head}"
    return None


def commands_exist(tree):
    for doc in tree.documents:
        for line, command, in_block in doc.commands():
            breach = command_breach(tree, command, in_block)
            if breach:
                yield f"{doc.name}:{line}: {breach}: {command}"


# ---- Messages -----------------------------------------------------------------------------------------------------

def messages_exist(tree):
    doc = tree.document("TROUBLESHOOTING.md")
    if doc is None:
        return
    literals = set()
    for file, text in tree.code.items():
        if file.relative_to(tree.root).parts[0] in ("src", "apps"):
            for match in re.finditer(r'"(?:\\.|[^"\\\n])*"(?:\s*(?:[A-Z][A-Z_0-9a-z]*\s*)?"(?:\\.|[^"\\\n])*")*', text):
                parts = re.findall(r'"((?:\\.|[^"\\\n])*)"', match.group())
                literals.add("".join(parts).replace('\\"', '"'))
    for line, span in doc.spans:
        if " " not in span or re.match(r"[\w/.-]+: \w+$", span) or is_command(tree, span):
            continue
        pieces = [p.strip() for p in span.split("...")]
        pattern = re.compile(".*?".join(re.escape(p) for p in pieces if p), re.S)
        if not any(pattern.search(text) for text in literals):
            yield f"{doc.name}:{line}: no message of the library or the master says: {span}"


def is_command(tree, span):
    head = re.split(r"[ =]", span)[0].split("/")[-1]
    return head in tree.programs or head in FOREIGN_COMMANDS | {"make"} or span.startswith(("scripts/", "PCCL_"))


# ---- Rules of all text --------------------------------------------------------------------------------------------

def told_text(tree):
    """(name, text) of all that a person reads: code with its comments, and documents."""
    for file, text in tree.code.items():
        if file.name not in PLANTS:
            yield str(file.relative_to(tree.root)), text
    for doc in tree.documents:
        yield doc.name, "\n".join(doc.lines)


def line_of(text, match):
    return text.count("\n", 0, match.start()) + 1


def only_own_documents_are_named(tree):
    for name, text in told_text(tree):
        for match in re.finditer(r"(?<![\w./-])[\w./-]*\w\.md\b", text):
            if not tree.exists(match.group().removeprefix("../").lstrip("/")):
                yield f"{name}:{line_of(text, match)}: names {match.group()}, which is no file of the project"
        for match in re.finditer(r"reliability reference|(?<![\w/])(?:reference|design)/\w+", text):
            yield f"{name}:{line_of(text, match)}: names {match.group()}, which is not in the project"


def comments_name_files_that_exist(tree):
    whole = re.compile(rf"(?<![\w/.$}}\"-])(?:{'|'.join(TOP)})/[\w./*-]*\w")
    for name, text in told_text(tree):
        if not name.startswith("docs/") and not name.endswith(".md"):
            for match in whole.finditer(text):
                path = match.group()
                if "*" not in path and not path.split("/")[-1].isupper() and not tree.exists(path):
                    yield f"{name}:{line_of(text, match)}: no file {path}"
        if name.startswith(("src/", "tests/", "apps/", "include/", "fuzz/", "bench/", "examples/")):
            for comment in re.finditer(r"/\*.*?\*/", text, re.S):
                for match in re.finditer(r"(?<![\w/.<*-])(?:\w+/)*\w+\.[ch]\b(?!\w)", comment.group()):
                    if not tree.exists(match.group()):
                        line = text.count("\n", 0, comment.start() + match.start()) + 1
                        yield f"{name}:{line}: the comment names {match.group()}, which does not exist"


RULE_NAME = re.compile(r"(?<![\w%.])([GPMRBW])(\d{1,2})(?![\w.])")


def stated_rules(tree):
    """Rule or heading -> where it stands in RULES.md."""
    doc = tree.document("RULES.md")
    found = [] if doc is None else re.finditer(r"^(?:### (?:([PMBW]\d+)\b|(.+))|\* \*\*([GRB]\d+)\b)", doc.prose, re.M)
    return {m.group(1) or m.group(2) or m.group(3): m.start() for m in found}


def cited_rules_are_stated(tree):
    stated = stated_rules(tree)
    for name, text in told_text(tree):
        if name == "docs/internals/RULES.md" or not name.startswith(("src/", "tests/", "docs/", "include/", "verify/", "README")) \
                or name.startswith("tests/seeds"):
            continue
        texts = re.finditer(r"/\*.*?\*/|\"[^\"\n]*\"", text, re.S) if not name.endswith(".md") else [re.match(r"(?s).*", text)]
        for part in texts:
            for match in RULE_NAME.finditer(part.group()):
                if match.group() not in stated:
                    line = text.count("\n", 0, part.start() + match.start()) + 1
                    yield f"{name}:{line}: {match.group()} is not stated in docs/internals/RULES.md"


def stated_rules_are_shown(tree):
    """A rule of peers, master or worlds says which file keeps it and what shows it; of G and R TESTING.md says the latter."""
    doc, testing, stated = tree.document("RULES.md"), tree.document("TESTING.md"), stated_rules(tree)
    for name, start in stated.items():
        line = doc.prose.count("\n", 0, start) + 1
        text = re.split(r"\n##+ ", doc.prose[start + 4:])[0]
        if re.match(r"[GR]\d", name):
            if testing is None or f"* **{name}** " not in testing.prose:
                yield f"{doc.name}:{line}: docs/internals/TESTING.md has no entry **{name}**"
        elif not re.search(r"Kept\s+in\s+`[\w/]+\.(c|pml)`", text):
            yield f"{doc.name}:{line}: {name} names no file that keeps it"
        elif not re.search(r"Shown\s+by\s", text) or not re.search(r"`\w+/test_|Mutants:|Mutations:|`tests/sim", text):
            yield f"{doc.name}:{line}: {name} names nothing that shows it"


def kept_rules_are_cited(tree):
    """Each file that keeps a rule of peers, master or worlds says so where it does: a reader of either finds the other."""
    doc = tree.document("RULES.md")
    for name, start in stated_rules(tree).items():
        text = re.split(r"\n##+ ", doc.prose[start + 4:])[0]
        kept = re.search(r"Kept\s+in\s+((?:`[^`]+`[,\s]*)+)", text)
        for path in re.findall(r"`([^`]+)`", kept.group(1) if kept and re.match(r"[PMW]\d", name) else ""):
            comments = "".join(re.findall(r"/\*.*?\*/", tree.code.get(tree.root / path, ""), re.S))
            if name not in {m.group() for m in RULE_NAME.finditer(comments)}:
                line = doc.prose.count("\n", 0, start) + 1
                yield f"{doc.name}:{line}: {path} keeps {name}, but does not cite it"


# Public text that has been revised, so that plain_english.py finds nothing in it: files, or folders.
PLAIN = ("README.md", "docs/internals/INDEX.md", "include/",
         "apps/ccoip_master.1", "apps/ccoip_master.c", "apps/pccl.1", "src/api/api_error.c", "python/pccl/",
         *(f"docs/guide/{name}.md" for name in "INDEX GETTING_STARTED COLLECTIVES COMPARISON DEPLOY PERFORMANCE PORTING PYTHON SECURITY "
           "TROUBLESHOOTING TUNING VERSIONS python/EXAMPLES python/MIGRATION python/TORCH "
           "python/COMMS python/MULTIWORLD python/PCCL".split()))


def public_text_is_plain(tree):
    for file in tree.files:
        name = str(file.relative_to(tree.root))
        if name.startswith(PLAIN) and plain_english.kind_of(file, tree.root):
            for line, kind, sentence, remedy in plain_english.read(file, tree.root)[1]:
                yield f"{name}:{line}: {kind}: {sentence}: {remedy}"


SUBJECT = re.compile(r"^[\w./, -]+: (?!\w+(?<!ne)(?<!fe)(?<!emb)(?<!spe)(?<!proce)ed\b|\w+(?<!br)(?<!str)ing\b)\S")
MOST_SUBJECT = 72


def subjects_are_imperative(tree):
    """Of commits since this rule was made: the area first, then an imperative, and short; merges say what git says."""
    def git(*words):
        done = subprocess.run(["git", *words], cwd=tree.root, capture_output=True, text=True, check=False)
        return done.stdout.split("\n") if done.returncode == 0 else []

    if not (tree.root / ".git").exists():
        return
    first = [line for line in git("log", "--diff-filter=A", "--format=%H", "--", "scripts/plain_english.py") if line]
    for line in git("log", "--no-merges", "--format=%h %s", f"{first[-1]}..HEAD") if first else []:
        commit, _, subject = line.partition(" ")
        if subject and (len(subject) > MOST_SUBJECT or not SUBJECT.match(subject)):
            yield f"{commit}: '{subject}': expected 'area: imperative ...' of at most {MOST_SUBJECT} characters"


RULES = [public_text_is_plain, subjects_are_imperative, lines_are_short, blocks_have_a_language, links_resolve, documents_are_indexed, decisions_are_numbered, paths_exist,
         names_exist, tests_exist, functions_exist, mutants_exist, mutations_exist, messages_are_described, environment_is_described,
         commands_exist, messages_exist, only_own_documents_are_named, comments_name_files_that_exist,
         cited_rules_are_stated, stated_rules_are_shown, kept_rules_are_cited]


if __name__ == "__main__":
    sys.exit(check_tree(Tree, RULES))
