import pytest

from ibid.adapters.models.definitions import assigned_name, defined_name


@pytest.mark.parametrize(
    ("language", "line", "name"),
    [
        ("python", "def run(self):", "run"),
        ("python", "    async def run(self):", "run"),
        ("python", "class Cart(Base):", "Cart"),
        ("python", "class Cart:", "Cart"),
        ("py", "def first[T](items: list[T]) -> T:", "first"),
        ("javascript", "export default class Cart {", "Cart"),
        ("js", "export async function load() {", "load"),
        ("javascript", "function* walk() {", "walk"),
        ("typescript", "interface Shape extends Base {", "Shape"),
        ("tsx", "export type Id = string;", "Id"),
        ("go", "func (s *Server) Run(ctx context.Context) error {", "Run"),
        ("go", "func main() {", "main"),
        ("go", "type Server struct {", "Server"),
        ("go", "type ID string", "ID"),
        ("rust", "pub(crate) fn parse<T>(x: T) -> T {", "parse"),
        ("rust", "impl<T> Stack<T> {", "Stack"),
        ("rust", "pub struct Stack<T> {", "Stack"),
        ("rust", "macro_rules! vec_of {", "vec_of"),
        ("java", "public static void main(String[] args) {", "main"),
        ("java", "    private final List<String> names(int n) throws IOException {", "names"),
        ("java", "public record Point(int x, int y) {}", "Point"),
        ("java", "enum Color { RED }", "Color"),
        ("c", "static int *find(struct node *n, int key)", "find"),
        ("c", "struct node {", "node"),
        ("c++", "std::string Parser::name(int x) const {", "Parser::name"),
        ("csharp", "internal sealed class Store : IStore", "Store"),
        ("kotlin", "data class User(val name: String)", "User"),
        ("kotlin", "suspend fun <T> load(): T {", "load"),
        ("kotlin", "fun String.shout() = uppercase()", "shout"),
        ("ruby", "  def self.build(x)", "build"),
        ("ruby", "module Shop", "Shop"),
        ("php", "public function total(): int", "total"),
        ("bash", "deploy() {", "deploy"),
        ("sh", "function deploy {", "deploy"),
        ("sql", "CREATE TABLE IF NOT EXISTS orders (", "orders"),
        ("sql", "create or replace function add_one(i int)", "add_one"),
        ("python", "        directory, path, **_prepare_kwargs(**kwargs)", ""),
        ("python", "    class that holds items", ""),
        ("python", "    raise CartFull(self)", ""),
        ("javascript", "  function that returns the sum", ""),
        ("java", "return run(x)", ""),
        ("java", "    else if (x) {", ""),
        ("c", "for (int i = 0; i < n; i++) {", ""),
        ("c", "x = run(y)", ""),
        ("bash", "if() {", ""),
        ("toml", "def run(self):", ""),
        ("python", "", ""),
        ("python", "def " + "x" * 400 + "():", ""),
    ],
)
def test_a_line_that_begins_a_definition_names_it(language: str, line: str, name: str) -> None:
    assert defined_name(line, language) == name


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("MAX_ITEMS = 50", "MAX_ITEMS"),
        ("const retry = (n) => n;", "retry"),
        ("export const URL: string = 'x';", "URL"),
        ("limit: Final = 3", "limit"),
        ("if = 3", ""),
        ("x == 3", ""),
        ("    x = 3", ""),
        ("f(x)", ""),
        ("x = " + "1" * 400, ""),
    ],
)
def test_an_unindented_assignment_names_what_it_assigns(line: str, name: str) -> None:
    assert assigned_name(line) == name


@pytest.mark.parametrize("piece", ["a ", "a<", "pub(", "* ", "a\t", "(", " \t", "static "])
def test_a_line_of_one_thing_over_and_over_is_read_in_the_end(piece: str) -> None:
    for length in (290, 100_000):
        line = (piece * length)[:length]

        assert assigned_name(line) == ""
        for language in ("python", "typescript", "go", "rust", "c", "sql", "bash", "kotlin"):
            assert defined_name(line, language) == ""
