"""All kinds of statements of random programs: `KINDS` has them with their weights."""

from __future__ import annotations

import kinds_views
import kinds_elements
import kinds_rows
import kinds_products
import kinds_indices
import kinds_complex
from kinds_numbers import KINDS_OF_NUMBERS
from program_kinds import KINDS

MODULES = (kinds_views, kinds_elements, kinds_rows, kinds_products, kinds_indices, kinds_complex)

__all__ = ["KINDS", "KINDS_OF_NUMBERS"]
