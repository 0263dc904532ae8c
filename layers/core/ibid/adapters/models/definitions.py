"""Find by its shape the line that defines something, in any of the usual languages."""

import re
from typing import Final

_LONGEST_LINE: Final = 300  # what is longer is data or minified
_KEYWORD: Final = re.compile(
    r"\s*(?:(?:export|default|public|private|protected|internal|static|final|abstract|async|"
    r"override|virtual|inline|sealed|data|open|suspend|const|declare|unsafe|extern|partial|"
    r"readonly|pub(?:\([^)]*\))?)\s+)*"
    r"(?:def|class|function\*?|func|fn|fun|struct|interface|enum|trait|impl(?:<[^>]*>)?|type|"
    r"module|namespace|object|record|union|macro_rules!)\s+"
    r"(?:\([^)]*\)\s*)?(?:self\.)?(?P<name>[A-Za-z_$][\w$]*)"
)
_SQL: Final = re.compile(
    r"\s*create\s+(?:or\s+replace\s+)?(?:temp(?:orary)?\s+)?(?:unique\s+)?(?:table|view|function|"
    r"procedure|index|trigger|type)\s+(?:if\s+not\s+exists\s+)?[\"`\[]?(?P<name>[A-Za-z_][\w.]*)",
    re.IGNORECASE,
)
_BASH: Final = re.compile(r"\s*(?P<name>[A-Za-z_][\w-]*)\s*\(\)\s*\{")
_TYPED: Final = re.compile(  # Type name(…) {  in C, C++, C#, Java
    r"[ \t]*(?:[A-Za-z_][\w<>\[\],.*&:?~]*[ \t]+[*&]*){1,6}(?P<name>~?[A-Za-z_][\w:]*)[ \t]*\("
    r"[^;=]*$"
)
_ASSIGNED: Final = re.compile(
    r"(?:(?:export|const|let|var|val|static|final|public|private|readonly|pub)\s+)*"
    r"(?P<name>[A-Za-z_$][\w$]*)\s*(?::[^=]{1,80})?=(?![=>])"
)
_NO_TYPE: Final = frozenset(
    re.findall(
        r"\w+",
        """
        if for while switch return else elif catch throw new await yield with case do try and or
        not in is raise assert import from print using goto delete sizeof lambda when unless
        """,
    )
)


def defined_name(line: str) -> str:
    """Return the name that a line of code begins to define, or the empty string."""
    if len(line) > _LONGEST_LINE:
        return ""
    for pattern in (_KEYWORD, _SQL, _BASH):
        if match := pattern.match(line):
            return match["name"]
    if match := _TYPED.match(line):
        first = line.split(maxsplit=1)[0]
        if first not in _NO_TYPE and match["name"] not in _NO_TYPE:
            return match["name"]
    return ""


def assigned_name(line: str) -> str:
    """Return the name that an unindented line assigns to, such as a constant's, or nothing."""
    if len(line) > _LONGEST_LINE or line[:1].isspace():
        return ""
    match = _ASSIGNED.match(line)
    return match["name"] if match and match["name"] not in _NO_TYPE else ""
