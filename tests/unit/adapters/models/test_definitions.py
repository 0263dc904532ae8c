import pytest

from ibid.adapters.models.definitions import assigned_name, defined_name


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("def run(self):", "run"),
        ("    async def run(self):", "run"),
        ("class Cart(Base):", "Cart"),
        ("export default class Cart {", "Cart"),
        ("export async function load() {", "load"),
        ("function* walk() {", "walk"),
        ("func (s *Server) Run(ctx context.Context) error {", "Run"),
        ("func main() {", "main"),
        ("pub(crate) fn parse<T>(x: T) -> T {", "parse"),
        ("impl<T> Stack<T> {", "Stack"),
        ("pub struct Stack<T> {", "Stack"),
        ("trait Walk {", "Walk"),
        ("macro_rules! vec_of {", "vec_of"),
        ("interface Shape {", "Shape"),
        ("type Id = string;", "Id"),
        ("enum Color { RED }", "Color"),
        ("public static void main(String[] args) {", "main"),
        ("    private final List<String> names(int n) throws IOException {", "names"),
        ("static int *find(struct node *n, int key)", "find"),
        ("std::string Parser::name(int x) const {", "Parser::name"),
        ("public record Point(int x, int y) {}", "Point"),
        ("data class User(val name: String)", "User"),
        ("suspend fun load(): Data {", "load"),
        ("  def self.build(x)", "build"),
        ("module Shop", "Shop"),
        ("namespace App\\Shop;", "App"),
        ("deploy() {", "deploy"),
        ("CREATE TABLE IF NOT EXISTS orders (", "orders"),
        ("create or replace function add_one(i int)", "add_one"),
        ("return run(x)", ""),
        ("else if (x) {", ""),
        ("    raise CartFull(self)", ""),
        ("x = run(y)", ""),
        ("await client.send(x);", ""),
        ("for (int i = 0; i < n; i++) {", ""),
        ("# def of something", ""),
        ("", ""),
        ("def " + "x" * 400, ""),
    ],
)
def test_a_line_that_begins_a_definition_names_it(line: str, name: str) -> None:
    assert defined_name(line) == name


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

        assert defined_name(line) == assigned_name(line) == ""
