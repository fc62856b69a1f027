"""What pages and notebooks name is there: names of nerm, commands and their options, solvers, files and tests.

And the words that our glossary replaces are gone: from the names of nerm and from its prose.
"""

from __future__ import annotations

import importlib
import json
import re
import tokenize
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import nerm
from nerm.cli import cli

ROOT = Path(nerm.__file__).parent.parent
FOLDERS = ("nerm", "tests", "docs", "benchmarks", "notebooks", "recipe", "paper", ".ci", ".github")
BUILT = ("docs/api", "docs/notebooks", "notebooks/gallery.txt")  # written by a build of the site
PAGES = sorted(
    path
    for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("notebooks/*.ipynb"))
    if path.name != "CHANGELOG.md"
    and not str(path.relative_to(ROOT)).startswith(BUILT)  # the past keeps its names
)
EXAMPLES = {"nerm.Perceptron"}  # what a page shows how to add


def text(path: Path) -> str:
    """Return a page, or what was written into the cells of a notebook."""
    if path.suffix == ".md":
        return path.read_text("utf-8")
    return "\n\n".join("".join(cell["source"]) for cell in json.loads(path.read_text("utf-8"))["cells"])


def missing_names(page: str) -> Iterator[str]:
    """Yield what is written as an attribute of nerm and is none."""
    for name in set(re.findall(r"(?<![\w/.\"'])nerm(?:\.[A-Za-z_]\w*)+(?![\w/-])", page)) - EXAMPLES:
        thing, parts = nerm, name.split(".")[1:]
        for k, part in enumerate(parts):
            if not hasattr(thing, part) and hasattr(thing, "__path__"):
                with suppress(ModuleNotFoundError):
                    importlib.import_module(".".join(["nerm", *parts[: k + 1]]))
            fields = getattr(thing, "__dataclass_fields__", {})
            if not hasattr(thing, part) and part not in fields:
                yield name
                break
            thing = getattr(thing, part, fields.get(part))


def missing_options(page: str) -> Iterator[str]:
    """Yield commands and options of `nerm ...` that the command line does not know."""
    top = cli.make_context("nerm", [], resilient_parsing=True)
    code = "\n".join(re.findall(r"```.*?```|`[^`\n]+`", page.replace("\\\n", " "), re.DOTALL))
    for command, rest in re.findall(r"^(?:`|\$ )?nerm ([a-z]+)([^\n`#|]*)", code, re.MULTILINE):
        known = cli.get_command(top, command)
        if known is None:
            yield f"nerm {command}"
            continue
        options = {
            "--help",
            *(name for option in known.params for name in (*option.opts, *option.secondary_opts)),
        }
        given = re.findall(r"(?<!\S)--[a-z][\w-]*", rest)
        yield from (f"nerm {command} {name}" for name in given if name not in options)


def missing_solvers(page: str) -> Iterator[str]:
    """Yield solvers that are asked for by a name that nerm does not know, installed or not."""
    asked = set(re.findall(r"solve\(\"([\w-]+)\"|solver=\"([\w-]+)\"", page))
    known = {"auto", *nerm.solvers.known()}
    yield from (name for pair in asked for name in pair if name and name not in known)


def missing_files(page: str) -> Iterator[str]:
    """Yield files and folders of the project that are not there, and tests that their file does not have."""
    for name in set(re.findall(rf"(?<![\w/.-])((?:{'|'.join(map(re.escape, FOLDERS))})/[\w./-]*\w)", page)):
        if not (ROOT / name).exists() and not name.startswith(BUILT):
            yield name
    for file, test in set(re.findall(r"(tests/[\w/]+\.py)::(\w+)", page)):
        if f"def {test}(" not in (ROOT / file).read_text("utf-8"):
            yield f"{file}::{test}"


LOOKS = (missing_names, missing_options, missing_solvers, missing_files)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_what_a_page_names_is_there(path):
    page = text(path)
    assert [name for look in LOOKS for name in look(page)] == []


def test_what_is_not_there_is_noticed():
    page = 'See `nerm.metrics.roc`, `nerm fit --level 3`, `solve("l1")`, `tests/test_nothing.py`; `nerm.Hinge` is.'
    assert [name for look in LOOKS for name in look(page)] == [
        "nerm.metrics.roc",
        "nerm fit --level",
        "l1",
        "tests/test_nothing.py",
    ]


#: Words that the glossary replaces, as parts of names: `found_neighbours`, `attempt`.
NAME_WORDS = re.compile(
    r"judge\w*|judgement|forces|relatives|neighbou?rs?|rooms?|resting|lent|bold|astray|miss|misses|missed|pulls?|reach|doors?"
    r"|foretell\w*|foresee\w*|hasty|patient|people|asking|trials?|attempts?|together|joint"
)
#: The same in prose. Words with a second, ordinary meaning stand here in the phrase that is meant, or not at all.
PROSE_WORDS = re.compile(
    r"\b(judg(?:e[sd]?|ing|ements?)|relatives|neighbours of a (?:problem|path)|resting|lent|bold steps?|astray|rooms?"
    r"|doors?|houses?|miss(?:es)?|missed by|pull(?:s|ed)?(?! request)|(?:the|within) reach|foretell\w*|foreseen?s?|hasty|patiently"
    r"|people|asked levels?|asking|trials?|attempts?|(?:gives?|gave|given|giving) up|stretch(?:es)? of a path"
    r"|who(?:ever|so) (?:computed|made|solved))\b",
    re.IGNORECASE,
)
ALLOWED = {"bold": "a style of rich and of CSS"}
#: Where the words are looked for: all text files of the project but those that list the words or hold data.
READ = {".py", ".md", ".ipynb", ".toml", ".cff", ".yml", ".yaml", ".sh", ".css", ".js", ".j2", ".pyi"}
SKIPPED = (Path(__file__), ROOT / "LICENSE", ROOT / "paper" / "paper.bib")


def project_files() -> list[Path]:
    """Return the text files of the project, without those that a build of the site or Python wrote."""
    inside = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*")]
    return sorted(
        path
        for path in (*inside, *ROOT.iterdir())
        if path.is_file()
        and (path.suffix in READ or path.parent.name == ".ci")
        and path not in SKIPPED
        and not any(part.startswith("__pycache__") for part in path.parts)
        and not str(path.relative_to(ROOT)).startswith(BUILT)
    )


def glossary_words(path: Path) -> set[str]:
    """Return the words and names of a file that the glossary replaces.

    Of pages the code is left out; of a module the strings and comments are read as prose, the rest as names.
    """
    if path.suffix != ".py":
        said = text(path) if path.suffix in (".md", ".ipynb") else path.read_text("utf-8")
        said = re.sub(r"```.*?```|`[^`\n]+`", "", said, flags=re.DOTALL) if path.suffix == ".md" else said
        return {match[0].lower() for match in PROSE_WORDS.finditer(said)} - set(ALLOWED)
    with tokenize.open(path) as file:
        tokens = list(tokenize.generate_tokens(file.readline))
    said = "\n".join(token.string for token in tokens if token.type in (tokenize.STRING, tokenize.COMMENT))
    names = {token.string for token in tokens if token.type == tokenize.NAME}
    found = {match[0].lower() for match in PROSE_WORDS.finditer(said)}
    found |= {name for name in names if any(map(NAME_WORDS.fullmatch, name.lower().split("_")))}
    return found - set(ALLOWED)


def test_no_word_of_the_glossary_remains():
    found = {path: glossary_words(path) for path in project_files()}
    assert {str(path.relative_to(ROOT)): sorted(words) for path, words in found.items() if words} == {}


def test_a_word_of_the_glossary_is_noticed(tmp_path):
    (tmp_path / "page.md").write_text("The certificate judges it. `judge` is code.", "utf-8")
    assert glossary_words(tmp_path / "page.md") == {"judges"}
    (tmp_path / "code.py").write_text("def last_attempt(rooms): ...  # it gave up", "utf-8")
    assert glossary_words(tmp_path / "code.py") == {"last_attempt", "rooms", "gave up"}
