"""A stand-in for an AI agent: it writes commit messages, in the style of a skill when it is offered one."""

from __future__ import annotations

import sys
from pathlib import Path

SKILL = Path(".agents/skills/commit-style/SKILL.md")


def main() -> None:
    """Answer the prompt of the command line."""
    is_manual = "manual" in sys.argv[1]
    subject = "Add a page to the manual" if is_manual else "Include the last number in total()"
    if SKILL.exists():
        subject = f"{'docs' if is_manual else 'fix'}: {subject[0].lower()}{subject[1:]}"
    sys.stdout.write(subject + "\n")


if __name__ == "__main__":
    main()
