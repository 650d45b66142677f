"""What the tests of the repository itself look at: the files and the modules of Cutwater."""

from pathlib import Path

ROOT = Path(__file__).parents[3]
SOURCE = ROOT / "src"


def module_name(path: Path) -> str:
    """Return the dotted name of a source file."""
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


# Every module of the package by name. `__main__` is not among them: importing it would run it.
MODULES = {
    module_name(path): path
    for path in sorted((SOURCE / "cutwater").rglob("*.py"))
    if path.name != "__main__.py"
}
