"""For the API pages: examples in docstrings (`>>> ...`) are shown as code, to the next empty line.

Markdown takes `>>>` for a quotation in a quotation in a quotation.
"""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

EXAMPLE = re.compile(r"^>>> .*(?:\n.+)*", re.MULTILINE)


class FencedDoctests(Extension):
    """Puts fences around examples."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Called by Griffe for everything that it has read."""
        if obj.docstring:
            text = obj.docstring.value
            obj.docstring.value = EXAMPLE.sub(r"```pycon\n\g<0>\n```", text)
