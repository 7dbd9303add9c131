"""JSON Schemas made from the tables by which specs and project files are read."""

from __future__ import annotations

from vally.spec.schema.documents import SCHEMAS as SCHEMAS
from vally.spec.schema.documents import json_schema as json_schema
