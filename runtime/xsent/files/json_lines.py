"""JSON on one line."""

import json

# Ends of lines for some programs, and control characters of terminals.
_ESCAPED = {code: f"\\u{code:04x}" for code in (*range(0x7F, 0xA0), 0x2028, 0x2029)}


def to_json_line(content: object) -> str:
    """JSON on one line, without its end; what others take for the end of a line is escaped."""
    return json.dumps(content, ensure_ascii=False).translate(_ESCAPED)
