"""What each language's grammar makes of a small file: lines and symbols."""

import contextlib
from collections.abc import Iterator

import pytest

from ibid.domain.passages import Chunk
from ibid.indexing.chunking import chunk_file, chunk_text
from ibid.indexing.code import ParseFailed, code_spans
from ibid.indexing.grammars import GRAMMARS, Grammar, GrammarMissing, load
from ibid.indexing.text import split_lines

Outline = list[tuple[int, int, str]]


def outline(path: str, text: str) -> Outline:
    return [
        (chunk.start_line, chunk.end_line, chunk.symbol)
        for chunk in chunk_text(path, text, commit_sha=None)
    ]


SAMPLES: dict[str, tuple[str, Outline]] = {
    "a.py": (
        """\
\"\"\"Module.\"\"\"
import os

# Why.
@decorated
def f():
    return 1

class C:
    x = 1
    def m(self):
        return 2
""",
        [(1, 2, ""), (4, 7, "f"), (9, 12, "C")],
    ),
    "a.js": (
        """\
import x from 'x';

/** Doc. */
export class A extends B {
  m() { return 1 }
}
export default function f() {}
const g = async (a) => a;
const notOne = 3;
module.exports.h = function () {};
Foo.prototype.bar = function () {};
""",
        [
            (1, 1, ""),
            (3, 6, "A"),
            (7, 7, "f"),
            (8, 8, "g"),
            (9, 9, ""),
            (10, 10, "h"),
            (11, 11, "Foo.bar"),
        ],
    ),
    "a.ts": (
        """\
@Dec()
export abstract class A<T> { m(): void {} }
interface I { a: string }
type T = { a: 1 };
enum E { A }
namespace N.M {
  export function f() {}
}
declare module "x" {
  function q(): void;
}
export const k = async () => {};
""",
        [
            (1, 2, "A"),
            (3, 3, "I"),
            (4, 4, "T"),
            (5, 5, "E"),
            (6, 8, "N.M N.M.f"),
            (9, 11, "x x.q"),
            (12, 12, "k"),
        ],
    ),
    "a.tsx": (
        "export const View = () => <div>{1}</div>;\nfunction Other() { return <p/>; }\n",
        [(1, 1, "View"), (2, 2, "Other")],
    ),
    "a.go": (
        """\
package x

// T is one.
type T struct{ a int }
type (
	A int
	B int
)

func (t *T) Get() int { return 1 }
func (s Set[K]) Has() bool { return true }
func F[K any](a K) {}
""",
        [
            (1, 1, ""),
            (3, 4, "T"),
            (5, 8, "A B"),
            (10, 10, "T.Get"),
            (11, 11, "Set.Has"),
            (12, 12, "F"),
        ],
    ),
    "a.rs": (
        """\
use std::fmt;

/// Doc.
#[derive(Debug)]
pub struct S { a: i32 }
impl<T> Tr for S<T> {
    fn m(&self) {}
}
mod tests {
    use super::*;
    fn q() {}
}
macro_rules! mm { () => {} }
trait Q { fn z(&self); }
enum E { A }
""",
        [
            (1, 1, ""),
            (3, 8, "S"),
            (9, 12, "tests tests.q"),
            (13, 13, "mm"),
            (14, 14, "Q"),
            (15, 15, "E"),
        ],
    ),
    "A.java": (
        """\
package a.b;

/** Doc. */
@An
public class A {
    int x;
    A() {}
    @Override public void m() {}
}
record R(int a) { R {} }
interface I { void z(); }
@interface Q {}
enum E { X; void q() {} }
""",
        [(1, 1, ""), (3, 9, "A"), (10, 10, "R"), (11, 11, "I"), (12, 12, "Q"), (13, 13, "E")],
    ),
    "a.c": (
        """\
#ifndef A
#define A
/* Doc. */
static int *f(int a) { return 0; }
struct s { int a; };
typedef struct { int b; } t;
#define M(x) (x)
enum e { Q };
#endif
""",
        [(1, 2, ""), (3, 4, "f"), (5, 5, "s"), (6, 6, "t"), (7, 7, "M"), (8, 9, "e")],
    ),
    "a.cpp": (
        """\
#include <x>

namespace a::b {
template <class T> class X : Y {
 public:
  X();
};
int X::foo(int a) { return 1; }
}  // namespace
extern "C" {
void z() {}
}
X::~X() {}
bool operator==(X a, X b) { return true; }
""",
        [
            (1, 1, ""),
            (3, 9, "a.b a.b.X a.b.X.foo"),
            (10, 10, ""),
            (11, 12, "z"),
            (13, 13, "X.~X"),
            (14, 14, "operator=="),
        ],
    ),
    "a.h": (
        "#pragma once\nclass K {\n  int m();\n};\nint proto(void);\n",
        [(1, 1, ""), (2, 4, "K"), (5, 5, "")],
    ),
    "A.cs": (
        """\
using System;

namespace A.B
{
    /// <summary>Doc.</summary>
    [Attr]
    public class C<T> : D
    {
        public int P { get; set; }
        public static C operator +(C a, C b) => a;
        public int this[int i] => i;
    }
    interface I {}
}
void Local() {}
""",
        [(1, 1, ""), (3, 14, "A.B A.B.C A.B.I"), (15, 15, "Local")],
    ),
    "a.rb": (
        """\
# Doc.
module A::B
  class C < D
    attr_reader :x
    def m(a); end
    class << self
      def t; end
    end
  end
end
def top; end
""",
        [(1, 10, "A.B A.B.C"), (11, 11, "top")],
    ),
    "a.php": (
        """\
<?php
namespace A\\B;

/** Doc. */
#[Attr]
abstract class C extends D {
    public function m() {}
}
interface I {}
trait T {}
enum E {}
function f() {}
""",
        [
            (1, 1, ""),
            (2, 2, "A.B"),
            (4, 8, "C"),
            (9, 9, "I"),
            (10, 10, "T"),
            (11, 11, "E"),
            (12, 12, "f"),
        ],
    ),
    "a.kt": (
        """\
package a

/** Doc. */
@Ann
class A(val x: Int) : B() {
    fun m() {}
    companion object {
        fun c() {}
    }
}
object O {
    fun o() {}
}
fun String.ext(): Int = 1
""",
        [(1, 1, ""), (3, 10, "A"), (11, 13, "O"), (14, 14, "ext")],
    ),
    "a.sh": (
        "#!/bin/bash\nset -e\n\n# Doc.\nf() {\n  echo\n}\nfunction g { echo; }\nf\n",
        [(1, 2, ""), (4, 7, "f"), (8, 8, "g"), (9, 9, "")],
    ),
    "a.sql": (
        """\
-- Doc.
CREATE TABLE a.b (id int primary key);
CREATE OR REPLACE VIEW v AS SELECT 1;
SELECT * FROM x;
CREATE INDEX i ON a.b (id);
""",
        [(1, 2, "a.b"), (3, 3, "v"), (4, 4, ""), (5, 5, "i")],
    ),
}


@pytest.mark.parametrize("path", SAMPLES)
def test_a_file_is_cut_at_its_definitions(path: str) -> None:
    text, expected = SAMPLES[path]

    chunked = chunk_file(path, text, commit_sha=None)

    assert chunked.fallback is None
    assert outline(path, text) == expected


MEMBERS = {
    "a.py": ("class C:\n    x = 1\n", "    def m{n}(self):\n{body}\n", "        a = {i}", ""),
    "a.js": ("class C {\n  x = 1;\n", "  m{n}() {{\n{body}\n  }}\n", "    a({i});", "}\n"),
    "a.ts": ("class C {\n  x = 1;\n", "  m{n}(): void {{\n{body}\n  }}\n", "    a({i});", "}\n"),
    "A.java": ("class C {\n  int x;\n", "  void m{n}() {{\n{body}\n  }}\n", "    a({i});", "}\n"),
    "a.cpp": ("class C {\n  int x;\n", "  void m{n}() {{\n{body}\n  }}\n", "    a({i});", "};\n"),
    "A.cs": ("class C {\n  int x;\n", "  void m{n}() {{\n{body}\n  }}\n", "    a({i});", "}\n"),
    "a.rb": ("class C\n  attr :x\n", "  def m{n}\n{body}\n  end\n", "    a({i})", "end\n"),
    "a.php": (
        "<?php class C {\n  public $x;\n",
        "  function m{n}() {{\n{body}\n  }}\n",
        "    a({i});",
        "}\n",
    ),
    "a.kt": ("class C {\n  val x = 1\n", "  fun m{n}() {{\n{body}\n  }}\n", "    a({i})", "}\n"),
    "a.rs": (
        "impl C {{\n  const X: u8 = 1;\n",
        "  fn m{n}() {{\n{body}\n  }}\n",
        "    a({i});",
        "}\n",
    ),
}


@pytest.mark.parametrize("path", MEMBERS)
def test_a_long_class_is_its_head_and_its_members(path: str) -> None:
    head, member, line, tail = MEMBERS[path]
    body = "\n".join(line.format(i=i) for i in range(33))
    text = head.replace("{{", "{") + "".join(member.format(n=n, body=body) for n in (1, 2)) + tail

    chunks = chunk_text(path, text, commit_sha=None)

    assert [chunk.symbol for chunk in chunks] == ["C", "C.m1", "C.m2"]
    assert [chunk.start_line for chunk in chunks[1:]] == [3, 3 + member.count("\n") + 32]
    assert chunks[-1].end_line == len(split_lines(text))


def test_short_members_are_joined_and_named_each() -> None:
    methods = "".join(f"    def m{n}(self):\n        return {n}\n\n" for n in range(30))

    chunks = chunk_text("a.py", f"class C:\n    x = 1\n\n{methods}", commit_sha=None)

    assert chunks[0].symbol == "C C.m0 C.m1 C.m2 C.m3 C.m4 C.m5 C.m6 C.m7 C.m8"
    assert chunks[0].end_line == 29
    assert all(chunk.end_line - chunk.start_line < 30 for chunk in chunks)


def test_a_long_function_is_cut_into_windows_of_its_name() -> None:
    body = "".join(f"    a = {n}\n" for n in range(150))

    assert outline("a.py", f"def f():\n{body}") == [
        (1, 60, "f"),
        (41, 100, "f"),
        (81, 140, "f"),
        (121, 151, "f"),
    ]


def test_a_comment_behind_a_statement_stays_with_the_statement() -> None:
    text = "x = 1  # of x\ndef f():\n    pass\n"

    assert outline("a.py", text) == [(1, 1, ""), (2, 3, "f")]


def test_a_comment_with_a_blank_line_under_it_stays_apart() -> None:
    text = "# Of the file.\n\n# Of f.\ndef f():\n    pass\n"

    assert outline("a.py", text) == [(1, 1, ""), (3, 5, "f")]


def test_two_definitions_on_one_line_are_one_chunk() -> None:
    assert outline("a.js", "function a() {} function b() {}\n") == [(1, 1, "a")]


@pytest.mark.parametrize("grammar", GRAMMARS)
def test_no_nesting_is_too_deep(grammar: str) -> None:
    lines = ["(" * 20_000, "{" * 20_000, "class A {" * 3_000, "def f():"]

    with contextlib.suppress(ParseFailed):  # some grammars give up in time
        code_spans(lines, grammar, timeout_s=0.5)


def test_deeply_nested_classes_are_opened_without_recursion() -> None:
    depth = 2_000
    text = "".join(f"class C{n} {{\n" for n in range(depth)) + "}\n" * depth

    chunks = chunk_text("A.java", text, commit_sha=None)

    assert chunks[0].symbol.startswith("C0")


def test_a_parser_out_of_time_leaves_the_file_to_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    times = ticking()

    with pytest.raises(ParseFailed):
        code_spans(["x = 1"] * 20_000, "python", timeout_s=0.5, monotonic=lambda: next(times))

    def late(*_: object) -> None:
        raise ParseFailed("late")

    monkeypatch.setattr("ibid.indexing.chunking.code_spans", late)
    chunked = chunk_file("a.py", "x = 1\n" * 70, commit_sha=None)
    assert chunked.fallback == "parse_failed"
    assert [(chunk.start_line, chunk.end_line) for chunk in chunked.chunks] == [(1, 60), (41, 70)]


def ticking() -> Iterator[float]:
    now = 0.0
    while True:
        yield now
        now += 1.0


def test_a_grammar_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    absent = Grammar(module="no_such_wheel", units=frozenset())
    monkeypatch.setattr("ibid.indexing.grammars.GRAMMARS", {"absent": absent})

    with pytest.raises(GrammarMissing, match="absent"):
        load("absent")


def test_symbols_of_windows_keep_their_chunks_apart() -> None:
    text = "def f():\n" + "    a = 1\n" * 120
    chunks: list[Chunk] = chunk_text("a.py", text, commit_sha=None)

    assert [chunk.chunk_index for chunk in chunks] == [0, 1, 2]
    assert {chunk.symbol for chunk in chunks} == {"f"}


@pytest.mark.parametrize(
    ("path", "line", "symbol"),
    [
        ("a.cs", "class C { public static implicit operator int(C c) => 1; }", "C"),
        ("a.cpp", "namespace { int f() { return 1; } }", "f"),
        ("a.cpp", "int& g(int a) { return a; }", "g"),
        ("a.cpp", "template <class T> void h<T>::m(T a) {}", "h.m"),
        ("a.js", "a[b] = function () {};", ""),
        ("a.js", "var x = class Y { m() {} };", "x"),
        ("a.js", "export { a };", ""),
        ("a.go", "func (List[K, V]) M() {}", "List.M"),
        ("a.go", "func () M() {}", "M"),
        ("a.ts", "abstract class A { abstract m(): void }", "A"),
        ("a.rb", "class << self; def a; end; end", "a"),
        ("a.c", "int (*table[2])(int);", ""),
        ("a.sql", "CREATE FUNCTION s.f(a int) RETURNS int AS $$ SELECT 1 $$ LANGUAGE sql;", "s.f"),
        ("a.kt", "companion object { val x = 1 }", ""),
    ],
)
def test_a_definition_is_named_as_its_language_names_it(path: str, line: str, symbol: str) -> None:
    assert [chunk.symbol for chunk in chunk_text(path, line, commit_sha=None)] == [symbol]


def test_members_of_a_long_csharp_class_have_their_names() -> None:
    members = [
        "public int P { get; set; }",
        "public C() {}",
        "~C() {}",
        "public static C operator +(C a, C b) => a;",
        "public static implicit operator int(C c) => 1;",
        "public int this[int i] => i;",
        "public void M<T>() {}",
        "delegate void D();",
        "enum E { A }",
    ]
    text = (
        "class C {\n"
        + "\n" * 40
        + "".join(f"  {member}\n" + "\n" * 40 for member in members)
        + "}\n"
    )

    assert [symbol for _, _, symbol in outline("a.cs", text)] == [
        "C",
        "C.P",
        "C.C",
        "C.C",
        "C.operator+",
        "C.operator",
        "C.this",
        "C.M",
        "C.D",
        "C.E",
    ]


def test_members_of_a_long_kotlin_class_have_their_names() -> None:
    members = ["constructor(a: Int) : this() {}", "companion object {\n    fun c() {}\n  }"]
    text = (
        "class C {\n"
        + "\n" * 40
        + "".join(f"  {member}\n" + "\n" * 40 for member in members)
        + "}\n"
    )

    assert [symbol for _, _, symbol in outline("a.kt", text)] == [
        "C",
        "C.constructor",
        "C.Companion",
    ]
