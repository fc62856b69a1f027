"""Print the cheat sheet: docs/cheatsheet.md as one landscape page, docs/_static/cheatsheet.pdf.

    python docs/cheatsheet.py

It needs the extra "docs" and Chromium, which prints the page.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
STYLE = """
@page { size: A4 landscape; margin: 8mm; }
body { font: 8.4pt/1.35 sans-serif; columns: 3; column-gap: 6mm; margin: 0; color: #111; }
h1 { font-size: 15pt; margin: 0 0 1mm; color: #1b4f8f; }
h2 { font-size: 10pt; margin: 2.4mm 0 1mm; padding-bottom: 0.3mm; color: #1b4f8f; border-bottom: 0.3mm solid #1b4f8f; }
h2 { break-after: avoid; }
p { margin: 1mm 0; break-inside: avoid; }
table { border-collapse: collapse; width: 100%; margin: 1mm 0; }
tr { break-inside: avoid; }
th, td { border-bottom: 0.15mm solid #ccc; padding: 0.4mm 0.8mm; vertical-align: top; text-align: left; }
th { color: #555; font-weight: normal; font-style: italic; }
td:first-child { min-width: 19mm; }
code { font: 7pt/1.3 monospace; overflow-wrap: anywhere; }
pre code { font-size: 6.5pt; }
pre { background: #f2f4f7; margin: 1mm 0; padding: 1mm 1.4mm; white-space: pre-wrap; break-inside: avoid; }
"""


def page(text: str) -> str:
    """Return the sheet as HTML, without the sentence about the page itself and without prompts."""
    from markdown_it import MarkdownIt

    text = re.sub(r"^With this page.*\n", "", text, flags=re.MULTILINE)
    text = re.sub(r"^(>>>|\.\.\.) ", "", text, flags=re.MULTILINE).replace("\n\n```\n", "\n```\n")
    text = text.replace("# Cheat sheet", "# nerm: cheat sheet", 1)
    body = MarkdownIt("commonmark").enable("table").render(text)
    return f'<!doctype html><meta charset="utf-8"><title>nerm</title><style>{STYLE}</style>{body}'


def write(pdf: Path) -> None:
    """Print the sheet to a file."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        raise SystemExit("Chromium prints the cheat sheet, and was not found. Install chromium.")
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "sheet.html")
        source.write_text(page((HERE / "cheatsheet.md").read_text("utf-8")), "utf-8")
        switches = ["--headless", "--no-sandbox", "--disable-gpu", "--no-pdf-header-footer"]
        subprocess.run([chromium, *switches, f"--print-to-pdf={pdf}", source.as_uri()], check=True)


if __name__ == "__main__":
    write(HERE / "_static" / "cheatsheet.pdf")
