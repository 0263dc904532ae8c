"""Which language a file is written in, by its name or its first line."""

import re
from pathlib import PurePosixPath

TEXT = "text"

_BY_SUFFIX = {
    suffix: language
    for language, suffixes in {
        "bash": "sh bash zsh ksh bats",
        "c": "c h",
        "clojure": "clj cljs cljc edn",
        "cpp": "cc cpp cxx c++ hh hpp hxx h++ ipp inl ino cu cuh",
        "csharp": "cs csx",
        "css": "css scss sass less",
        "csv": "csv tsv",
        "dart": "dart",
        "elixir": "ex exs",
        "erlang": "erl hrl",
        "go": "go",
        "graphql": "graphql gql",
        "groovy": "groovy gradle",
        "haskell": "hs lhs",
        "html": "html htm xhtml jinja jinja2 j2",
        "ini": "ini cfg conf properties",
        "java": "java",
        "javascript": "js jsx mjs cjs",
        "json": "json jsonc json5 jsonl ndjson webmanifest",
        "julia": "jl",
        "jupyter": "ipynb",
        "kotlin": "kt kts",
        "lua": "lua",
        "markdown": "md markdown mdx mdown mkd",
        "nix": "nix",
        "objective-c": "m mm",
        "ocaml": "ml mli",
        "perl": "pl pm",
        "php": "php phtml php5 php7",
        "powershell": "ps1 psm1 psd1",
        "protobuf": "proto",
        "python": "py pyi pyw pyx",
        "r": "r",
        "rst": "rst",
        "ruby": "rb rake gemspec ru",
        "rust": "rs",
        "scala": "scala sc sbt",
        "sql": "sql ddl dml",
        "svelte": "svelte",
        "swift": "swift",
        "terraform": "tf tfvars hcl",
        "toml": "toml",
        "typescript": "ts tsx mts cts",
        "vue": "vue",
        "xml": "xml xsd xsl xslt svg csproj props targets",
        "yaml": "yaml yml",
        "zig": "zig",
    }.items()
    for suffix in suffixes.split()
}
_BY_NAME = {
    "cmakelists.txt": "cmake",
    "containerfile": "dockerfile",
    "dockerfile": "dockerfile",
    "gemfile": "ruby",
    "gnumakefile": "makefile",
    "jenkinsfile": "groovy",
    "makefile": "makefile",
    "rakefile": "ruby",
    "vagrantfile": "ruby",
    ".bash_profile": "bash",
    ".bashrc": "bash",
    ".profile": "bash",
    ".zshrc": "bash",
}
_BY_INTERPRETER = {
    "ash": "bash",
    "bash": "bash",
    "bun": "javascript",
    "dash": "bash",
    "deno": "typescript",
    "ksh": "bash",
    "node": "javascript",
    "nodejs": "javascript",
    "perl": "perl",
    "php": "php",
    "pypy": "python",
    "python": "python",
    "ruby": "ruby",
    "sh": "bash",
    "ts-node": "typescript",
    "zsh": "bash",
}
_INTERPRETER = re.compile(r"#!\s*(?:\S*/env\s+(?:-\S+\s+)*(?:\w+=\S*\s+)*)?(?:\S*/)?([A-Za-z-]+)")


def language_of(path: str, first_line: str = "") -> str:
    """Name the language of a file in lower case; `text` where nothing tells it.

    Args:
        path: Relative, with `/`.
        first_line: May name an interpreter (`#!`), which counts where the name tells nothing.
    """
    name = PurePosixPath(path).name.lower()
    suffix = name.rpartition(".")[2] if "." in name else ""
    found = _BY_NAME.get(name) or _BY_SUFFIX.get(suffix)
    if found is None and name.startswith(("dockerfile.", "makefile.")):
        found = _BY_NAME[name.partition(".")[0]]
    if found is None and (shebang := _INTERPRETER.match(first_line)):
        found = _BY_INTERPRETER.get(shebang[1])
    return found or TEXT
