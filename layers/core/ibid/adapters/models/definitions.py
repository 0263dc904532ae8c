"""Find by its shape the line that defines something, in any of the usual languages."""

import re
from collections.abc import Mapping
from typing import Final

_LONGEST_LINE: Final = 300  # what is longer is data or minified
_MODIFIERS: Final = (
    r"\s*(?:(?:export|default|public|private|protected|internal|static|final|abstract|async|"
    r"override|virtual|inline|sealed|data|open|suspend|const|declare|unsafe|extern|partial|"
    r"readonly|annotation|pub(?:\([^)]*\))?)\s+)*"
)
_KEYWORDS: Final[Mapping[str, str]] = {
    "javascript": r"function\b\*?|class",
    "typescript": r"function\b\*?|class|interface|enum|type|namespace|module",
    "go": "func|type",
    "rust": r"fn|struct|enum|trait|impl(?:<[^>]*>)?|type|mod|union|macro_rules!",
    "java": "class|interface|enum|record|@interface",
    "kotlin": r"fun(?:\s+<[^>]*>)?|class|interface|object|typealias",
    "c": "struct|enum|union",
    "cpp": "class|struct|enum|union|namespace",
    "csharp": "class|interface|struct|enum|record|namespace",
    "ruby": "def|class|module",
    "php": "function|class|interface|trait|enum|namespace",
    "bash": "function",
}
_SAME: Final[Mapping[str, str]] = {
    "c++": "cpp", "c#": "csharp", "c_sharp": "csharp", "js": "javascript", "jsx": "javascript",
    "ts": "typescript", "tsx": "typescript", "py": "python", "rb": "ruby", "rs": "rust",
    "sh": "bash", "shell": "bash", "kt": "kotlin",
}  # fmt: skip
_NAME: Final = r"(?P<name>[A-Za-z_$][\w$]*)"
# What may follow a name: a comment that begins with "function that …" defines nothing
_THEN: Final = (
    r"(?=\s*(?:[(<{:\[=;|\\]|$)"
    r"|\s+(?:extends|implements|where|for|struct|interface|func|map|chan|permits)\b)"
)
_DEFINES: Final = {
    language: re.compile(_MODIFIERS + rf"(?:{words})\s+(?:\([^)]*\)\s*)?(?:\w+\.)?{_NAME}{_THEN}")
    for language, words in _KEYWORDS.items()
}
_PYTHON: Final = re.compile(rf"\s*(?:async\s+)?(?:def|class)\s+{_NAME}(?=\s*[(:\[])")
_GO_TYPE: Final = re.compile(rf"\s*type\s+{_NAME}\s+[\w.*\[\]]+\s*$")
_SQL: Final = re.compile(
    r"\s*create\s+(?:or\s+replace\s+)?(?:temp(?:orary)?\s+)?(?:unique\s+)?(?:table|view|function|"
    r"procedure|index|trigger|type)\s+(?:if\s+not\s+exists\s+)?[\"`\[]?(?P<name>[A-Za-z_][\w.]*)",
    re.IGNORECASE,
)
_BASH: Final = re.compile(r"\s*(?P<name>[A-Za-z_][\w-]*)\s*\(\)\s*\{")
_TYPED: Final = re.compile(  # Type name(…) {
    r"[ \t]*(?:[A-Za-z_][\w<>\[\],.*&:?~]*[ \t]+[*&]*){1,6}(?P<name>~?[A-Za-z_][\w:]*)[ \t]*\("
    r"[^;=]*$"
)
_TYPED_LANGUAGES: Final = frozenset({"c", "cpp", "csharp", "java"})
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


def defined_name(line: str, language: str) -> str:
    """Return the name that a line of code begins to define, or the empty string.

    Args:
        line: One line, indented or not.
        language: Lower-case, such as `python` or `c++`; one that is not known defines nothing.
    """
    if len(line) > _LONGEST_LINE:
        return ""
    language = _SAME.get(language, language)
    for pattern in _patterns(language):
        match = pattern.match(line)
        if match and match["name"] not in _NO_TYPE:
            return match["name"]
    if language in _TYPED_LANGUAGES and (match := _TYPED.match(line)):
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


def _patterns(language: str) -> tuple[re.Pattern[str], ...]:
    match language:
        case "python":
            return (_PYTHON,)
        case "go":
            return (_DEFINES["go"], _GO_TYPE)
        case "sql":
            return (_SQL,)
        case "bash":
            return (_DEFINES["bash"], _BASH)
        case _:
            return (_DEFINES[language],) if language in _DEFINES else ()
