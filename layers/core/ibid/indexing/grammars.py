"""The grammars: which wheel parses a language, and what its nodes mean to a chunker."""

import functools
import importlib
from collections.abc import Mapping
from dataclasses import dataclass

from tree_sitter import Language

from ibid.domain.errors import IbidError


class GrammarMissing(IbidError):
    """The wheel of a grammar is not installed, or not one that this parser can read."""

    code = "GRAMMAR_MISSING"


@dataclass(frozen=True, slots=True, kw_only=True)
class Grammar:
    """A language's grammar and the roles of its node types.

    Attributes:
        module: The wheel's import.
        function: What in it returns the grammar.
        units: Definitions that stay whole, such as functions.
        containers: Definitions that are opened when they are long, such as classes.
        spaces: Containers that are always opened and define nothing, such as namespaces.
        wrappers: Nodes that count as the one definition in them, such as `export`.
        transparent: Nodes whose children count as their siblings, such as `#ifdef`.
        leading: Comments and attributes that belong to the definition under them.
        bodies: Where a container's members are, if its `body` field does not tell.
        values: Right sides that make a variable a definition.
    """

    module: str
    function: str = "language"
    units: frozenset[str]
    containers: frozenset[str] = frozenset()
    spaces: frozenset[str] = frozenset()
    wrappers: frozenset[str] = frozenset()
    transparent: frozenset[str] = frozenset()
    leading: frozenset[str] = frozenset({"comment"})
    bodies: frozenset[str] = frozenset()
    values: frozenset[str] = frozenset()


def _types(names: str) -> frozenset[str]:
    return frozenset(names.split())


_SCRIPT_UNITS = """
    function_declaration generator_function_declaration method_definition field_definition
    variable_declarator assignment_expression"""
_SCRIPT_VALUES = """
    arrow_function function_expression generator_function class"""
_SCRIPT_WRAPPERS = """
    export_statement lexical_declaration variable_declaration expression_statement"""
_C_UNITS = """
    function_definition preproc_function_def struct_specifier union_specifier enum_specifier
    type_definition"""
_C_TRANSPARENT = """
    preproc_if preproc_ifdef preproc_else preproc_elif preproc_elifdef linkage_specification
    declaration_list"""
_TYPESCRIPT_UNITS = _types(
    _SCRIPT_UNITS
    + " public_field_definition interface_declaration type_alias_declaration enum_declaration"
    + " function_signature abstract_method_signature"
)
_TYPESCRIPT_WRAPPERS = _types(_SCRIPT_WRAPPERS + " ambient_declaration")

GRAMMARS: Mapping[str, Grammar] = {
    "bash": Grammar(
        module="tree_sitter_bash",
        units=_types("function_definition"),
    ),
    "c": Grammar(
        module="tree_sitter_c",
        units=_types(_C_UNITS),
        transparent=_types(_C_TRANSPARENT),
    ),
    "cpp": Grammar(
        module="tree_sitter_cpp",
        units=_types(
            "function_definition preproc_function_def enum_specifier type_definition"
            " concept_definition alias_declaration"
        ),
        containers=_types("class_specifier struct_specifier union_specifier"),
        spaces=_types("namespace_definition"),
        wrappers=_types("template_declaration"),
        transparent=_types(_C_TRANSPARENT),
    ),
    "csharp": Grammar(
        module="tree_sitter_c_sharp",
        units=_types(
            "method_declaration constructor_declaration destructor_declaration"
            " operator_declaration conversion_operator_declaration indexer_declaration"
            " property_declaration event_declaration delegate_declaration enum_declaration"
            " local_function_statement"
        ),
        containers=_types(
            "class_declaration struct_declaration interface_declaration record_declaration"
        ),
        spaces=_types("namespace_declaration"),
        wrappers=_types("global_statement"),
        transparent=_types("preproc_if preproc_else preproc_elif preproc_region"),
    ),
    "go": Grammar(
        module="tree_sitter_go",
        units=_types("function_declaration method_declaration type_declaration"),
    ),
    "java": Grammar(
        module="tree_sitter_java",
        units=_types("method_declaration constructor_declaration compact_constructor_declaration"),
        containers=_types(
            "class_declaration interface_declaration enum_declaration record_declaration"
            " annotation_type_declaration"
        ),
        transparent=_types("enum_body_declarations"),
        leading=_types("line_comment block_comment"),
    ),
    "javascript": Grammar(
        module="tree_sitter_javascript",
        units=_types(_SCRIPT_UNITS),
        containers=_types("class_declaration class"),
        wrappers=_types(_SCRIPT_WRAPPERS),
        values=_types(_SCRIPT_VALUES),
    ),
    "kotlin": Grammar(
        module="tree_sitter_kotlin",
        units=_types("function_declaration secondary_constructor"),
        containers=_types("class_declaration object_declaration companion_object"),
        leading=_types("line_comment block_comment"),
        bodies=_types("class_body enum_class_body"),
    ),
    "php": Grammar(
        module="tree_sitter_php",
        function="language_php",
        units=_types("function_definition method_declaration"),
        containers=_types(
            "class_declaration interface_declaration trait_declaration enum_declaration"
        ),
        spaces=_types("namespace_definition"),
    ),
    "python": Grammar(
        module="tree_sitter_python",
        units=_types("function_definition"),
        containers=_types("class_definition"),
        wrappers=_types("decorated_definition"),
    ),
    "ruby": Grammar(
        module="tree_sitter_ruby",
        units=_types("method singleton_method"),
        containers=_types("class"),
        spaces=_types("module"),
        transparent=_types("singleton_class body_statement"),
    ),
    "rust": Grammar(
        module="tree_sitter_rust",
        units=_types("function_item struct_item enum_item union_item macro_definition"),
        containers=_types("trait_item impl_item"),
        spaces=_types("mod_item"),
        leading=_types("line_comment block_comment attribute_item"),
    ),
    "sql": Grammar(
        module="tree_sitter_sql",
        units=_types(
            "create_table create_view create_materialized_view create_function create_procedure"
            " create_trigger create_type create_index create_sequence create_schema alter_table"
        ),
        wrappers=_types("statement"),
        leading=_types("comment marginalia"),
    ),
    "tsx": Grammar(
        module="tree_sitter_typescript",
        function="language_tsx",
        units=_TYPESCRIPT_UNITS,
        containers=_types("class_declaration abstract_class_declaration class"),
        spaces=_types("internal_module module"),
        wrappers=_TYPESCRIPT_WRAPPERS,
        leading=_types("comment decorator"),
        values=_types(_SCRIPT_VALUES),
    ),
    "typescript": Grammar(
        module="tree_sitter_typescript",
        function="language_typescript",
        units=_TYPESCRIPT_UNITS,
        containers=_types("class_declaration abstract_class_declaration class"),
        spaces=_types("internal_module module"),
        wrappers=_TYPESCRIPT_WRAPPERS,
        leading=_types("comment decorator"),
        values=_types(_SCRIPT_VALUES),
    ),
}


def grammar_name(language: str, path: str) -> str | None:
    """Name the grammar that reads a file, or None: then it is cut into windows.

    TSX has a grammar of its own, and a `.h` may be of C++, whose grammar reads C as well.
    """
    ending = path.rpartition(".")[2].lower()
    if language == "typescript" and ending == "tsx":
        return "tsx"
    if language == "c" and ending == "h":
        return "cpp"
    return language if language in GRAMMARS else None


@functools.cache
def load(name: str) -> Language:
    """Load a grammar at its first use, and keep it.

    Raises:
        GrammarMissing: Its wheel is not there, or of another version than the parser's.
    """
    grammar = GRAMMARS[name]
    try:
        module = importlib.import_module(grammar.module)
        return Language(getattr(module, grammar.function)())
    except (ImportError, AttributeError, ValueError) as error:
        raise GrammarMissing(f"no grammar for {name!r}: {error}") from error
