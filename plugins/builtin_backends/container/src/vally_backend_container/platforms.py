"""Names of platforms, as images have them."""

from __future__ import annotations

import re

from vally import did_you_mean, near_matches

SYSTEMS = ("linux", "windows", "darwin", "freebsd", "wasi")
ARCHITECTURES = (
    *("386", "amd64", "arm", "arm64", "loong64", "mips", "mips64", "mips64le", "mipsle"),
    *("ppc64", "ppc64le", "riscv64", "s390x", "wasm", "wasm32"),
)
"""Those of Go, in whose words images are described."""
_ALIASES = {"x86_64": "amd64", "x86-64": "amd64", "aarch64": "arm64", "i386": "386", "armhf": "arm", "armel": "arm"}
"""What engines take as well."""
_FORM = re.compile(r"([a-z0-9]+)/([a-z0-9_-]+)(/[a-z0-9.]+)?")


def parse_platform(text: str) -> tuple[str, str]:
    """System and architecture of `os/arch[/variant]`, by their own names. Raises `ValueError`."""
    match = _FORM.fullmatch(text)
    found = (match[1], _ALIASES.get(match[2], match[2])) if match else None
    if found is not None and found[0] in SYSTEMS and found[1] in ARCHITECTURES:
        return found
    hint = _suggestion(text)
    raise ValueError(f"a platform 'os/arch' such as 'linux/arm64' is expected, not {text!r}{hint and f'; {hint}'}")


def _suggestion(text: str) -> str:
    words = re.split(r"[/\s:,-]+", text.strip().lower(), maxsplit=2)
    system = words[0] if words[0] in SYSTEMS else next(iter(near_matches(words[0], SYSTEMS)), "linux")
    known = [f"{system}/{name}" for name in (*ARCHITECTURES, *_ALIASES)]
    for word in reversed(words[:2]):
        if f"{system}/{word}" in known:
            return f"did you mean '{system}/{word}'?"
    return did_you_mean("/".join([system, *words[1:2]]), known) or ""
