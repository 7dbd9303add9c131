"""Error codes of this backend; `docs/reference/backends.md` tells when each is given."""

from __future__ import annotations

UNAVAILABLE = "ray-unavailable"
MISMATCH = "version-mismatch"
UNSUPPORTED = "unsupported-option"
NOT_BUNDLED = "not-bundled"
LOST = "worker-lost"
FAILED = "ray-failed"
