"""Writes web/src/schema.ts, the types of the page, from the OpenAPI of the server: `make web`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from keisei.web.app import create_app

TARGET = Path(__file__).parents[1] / "src" / "schema.ts"
HEAD = """\
/** What the server sends and takes. Made from keisei/web/schema.py by `make web`: do not edit. */
"""
PLAIN = {"string": "string", "boolean": "boolean", "null": "null"} | dict.fromkeys(
    ("integer", "number"), "number"
)

Schema = dict[str, Any]


def typescript() -> str:
    """The file's text."""
    schemas: dict[str, Schema] = create_app(Path("nowhere")).openapi()["components"]["schemas"]
    return HEAD + "".join(_interface(name, schemas[name]) for name in sorted(schemas))


def _interface(name: str, schema: Schema) -> str:
    required = schema.get("required", [])
    lines = [
        f"  {field}{'' if field in required else '?'}: {_type(part)};\n"
        for field, part in schema.get("properties", {}).items()
    ]
    return f"\n/** {schema['description']} */\nexport interface {name} {{\n{''.join(lines)}}}\n"


def _type(schema: Schema) -> str:
    if "$ref" in schema:
        return schema["$ref"].rpartition("/")[2]
    if "anyOf" in schema:
        return " | ".join(map(_type, schema["anyOf"]))
    if "enum" in schema:
        return " | ".join(f'"{value}"' for value in schema["enum"])
    if "prefixItems" in schema:
        return f"[{', '.join(map(_type, schema['prefixItems']))}]"
    if schema["type"] == "array":
        return f"Array<{_type(schema['items'])}>"
    if schema["type"] == "object":
        return f"Record<string, {_type(schema['additionalProperties'])}>"
    return PLAIN[schema["type"]]


if __name__ == "__main__":
    TARGET.write_text(typescript(), encoding="utf-8")
