"""Writes docs/json.md from the code that makes the documents: `python docs/documents.py`.

With `--print` it goes to stdout. A document is a dict literal with the key `schema`; calls
of functions of `gitcp.cli` in it are followed to what they return.
"""

# ruff: noqa: INP001  a script, not a package
import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
CLI = HERE.parent / "gitcp" / "cli"
# module and function -> the title on the page of what it returns
SHARED = {
    ("documents", "checkpoint"): "checkpoint",
    ("documents", "path_fields"): "path",
    ("commands.steps", "document"): "step",
}

ABOUT = """\
With `--json` a command prints one of these documents on stdout; `watch` prints one for
each checkpoint, a line each. The number after the slash changes when a field is renamed,
removed or means something else; fields may be added without that. Times are RFC 3339, in
UTC. A path that is not UTF-8 is given escaped as `path` and whole as `path_b64`. `…` stands
for a value, `[…]` for a list of values, and `<checkpoint>`, `<path>` or `<step>` for the
fields of the object of that name. What is not there is null.

A rename is listed as its two paths: the new one as `added`, with `renamed_from` and lines
counted against the old content, and the old one as `deleted`, with `renamed_to`. Other paths
have neither field. Of a turn, `changes` in `gitcp.show/1` are those of its last checkpoint,
and `turn.changes`, `stat` and `patch` those of the whole turn. `changes` compares with the
checkpoint before on the branch; `stat` and `patch`, as the text of `show` and the counts of `log`,
with the state before in the work tree. With paths, checkpoints of `gitcp.log/1` have `touched`:
what happened to these paths, each with `path` and `status`.

If turns of other agents overlapped a turn (`turn.beside`), `turn.changes`, and `changed` of
`gitcp.log/1`, have what is its own; `turn.also` are those of its own that the others changed, too.
`turn.unsure` may be theirs as well, and `turn.others` is theirs; `stat` and `patch` leave
the latter out.

An error is one document on stderr: `{"error": {"code": …, "message": …, "hint": …,
"exit": …}}`, with the names and numbers of [exit-codes.md](exit-codes.md). `left`, `paths`,
`secrets` or `steps` list what it is about, where there is more than the message says.
"""


class Module(NamedTuple):
    """A parsed module of the command line, with its functions by name."""

    name: str
    tree: ast.Module
    functions: dict[str, ast.FunctionDef]


def modules() -> dict[str, Module]:
    """Returns every module of `gitcp.cli` by its name in it."""
    parsed = {}
    for path in sorted(CLI.rglob("*.py")):
        tree = ast.parse(path.read_text("utf-8"))
        functions = {
            node.name: node
            for node in ast.walk(tree)
            if isinstance(node, ast.FunctionDef)
        }
        key = ".".join(path.relative_to(CLI).with_suffix("").parts)
        parsed[key] = Module(key, tree, functions)
    return parsed


class Shapes:
    """Turns the expressions of one function into text that looks like JSON."""

    def __init__(self, known: dict[str, Module], module: Module) -> None:
        self._known = known
        self._module = module

    def fields(self, node: ast.Dict, function: ast.FunctionDef) -> Iterator[str]:
        """Yields the fields of a dict literal, `"name": shape` each."""
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                shape = self.value(value, function)
                yield shape.removeprefix("{").removesuffix("}")
            elif isinstance(key, ast.Constant):
                yield f'"{key.value}": {self.value(value, function)}'

    def value(self, node: ast.expr, function: ast.FunctionDef) -> str:
        """Returns the shape of a value."""
        match node:
            case ast.Dict():
                return "{" + ", ".join(self.fields(node, function)) + "}"
            case ast.ListComp(elt=item) | ast.List(elts=[item, *_]):
                return _several(self.value(item, function))
            case ast.IfExp():
                shape = self.value(node.body, function)
                return self.value(node.orelse, function) if shape == "…" else shape
            case ast.Constant(value=str() as text) if text.startswith("gitcp."):
                return f'"{text}"'
            case ast.Name():
                return self._assigned(node.id, function)
            case ast.Call():
                return self._called(node)
        return "…"

    def _assigned(self, name: str, function: ast.FunctionDef) -> str:
        for node in ast.walk(function):
            targets = node.targets if isinstance(node, ast.Assign) else ()
            if any(isinstance(one, ast.Name) and one.id == name for one in targets):
                assert isinstance(node, ast.Assign)
                shape = self.value(node.value, function)
                if shape != "…":
                    return shape
        return "…"

    def _called(self, call: ast.Call) -> str:
        name, home = self._function(call)
        match call:
            case ast.Call(args=[ast.Call(func=ast.Name(id="map"), args=[item, _])]):
                return _several(self._called(ast.Call(item, [], [])))
        if name in {"list", "sorted"}:
            return "[…]"
        if home is None:
            return "…"
        if (home.name, name) in SHARED:
            return f"<{SHARED[home.name, name]}>"
        shapes = Shapes(self._known, home)
        function = home.functions[name]
        for node in ast.walk(function):
            if isinstance(node, ast.Return) and node.value is not None:
                shape = shapes.value(node.value, function)
                if shape != "…":
                    return shape
        return "…"

    def added(self, name: str, function: ast.FunctionDef) -> Iterator[str]:
        """Yields the fields that a function adds to a document it has under a name."""
        for node in ast.walk(function):
            match node:
                case ast.AugAssign(
                    target=ast.Name(id=target), value=ast.Dict() as more
                ):
                    if target == name:
                        yield from self.fields(more, function)
                case ast.Assign(
                    targets=[
                        ast.Subscript(
                            value=ast.Name(id=target), slice=ast.Constant(value=key)
                        )
                    ],
                    value=value,
                ) if target == name:
                    yield f'"{key}": {self.value(value, function)}'

    def _function(self, call: ast.Call) -> tuple[str, Module | None]:
        """Returns the name of a called function, and the module of ours that has it."""
        match call.func:
            case ast.Name(id=name):
                if name in self._module.functions:
                    return name, self._module
                homes = [one for one in self._known.values() if name in one.functions]
                return name, homes[0] if len(homes) == 1 else None
            case ast.Attribute(value=ast.Name(id=module), attr=name):
                home = self._known.get(module)
                return name, home if home and name in home.functions else None
        return "", None


def documents() -> Iterator[tuple[str, str]]:
    """Yields schema and shape of each document."""
    known = modules()
    for module in known.values():
        shapes = Shapes(known, module)
        for function in module.functions.values():
            for node in ast.walk(function):
                match node:
                    case ast.Dict(keys=[ast.Constant(value="schema"), *_]):
                        yield from _variants(shapes, module, node, function)


def _variants(
    shapes: Shapes, module: Module, node: ast.Dict, function: ast.FunctionDef
) -> Iterator[tuple[str, str]]:
    """Yields a document for each schema it is made with, and each way it is completed."""
    shape = shapes.value(node, function)
    match node.values[0]:
        case ast.Constant(value=str() as schema):
            schemas = [schema]
        case _:
            schemas = _schemas(module)
            shape = shape.replace('"schema": …', '"schema": "{}"')
    for schema in schemas:
        whole = shape.replace('"{}"', f'"{schema}"')
        completed = list(_completed(shapes, module, function))
        for more in completed or [[]]:
            yield schema, ", ".join([whole.removesuffix("}"), *more]) + "}"


def _completed(
    shapes: Shapes, module: Module, maker: ast.FunctionDef
) -> Iterator[list[str]]:
    """Yields what other functions add to the document that one makes."""
    for function in module.functions.values():
        for node in ast.walk(function):
            match node:
                case ast.Assign(
                    targets=[ast.Name(id=name)],
                    value=ast.Call(func=ast.Name(id=called)),
                ) if called == maker.name:
                    fields: dict[str, str] = {}
                    for field in shapes.added(name, function):
                        key = field.partition(":")[0]
                        # One branch may give a number where another gives the list.
                        fields[key] = max(fields.get(key, ""), field, key=len)
                    yield list(fields.values())


def _schemas(module: Module) -> list[str]:
    """Returns the schemas that a module's commands hand to one function."""
    texts = [
        node.value
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    return [text for text in texts if text.startswith("gitcp.") and text.endswith("/1")]


def _several(shape: str) -> str:
    return "[…]" if shape == "…" else f"[{shape}, …]"


def indented(shape: str) -> str:
    """Returns a shape with each field of the outermost object on a line of its own."""
    lines, depth, line = [], 0, ""
    for letter in shape[1:-1]:
        depth += (letter in "{[") - (letter in "}]")
        if letter == "," and depth == 0:
            lines.append(line.strip() + ",")
            line = ""
        else:
            line += letter
    return "{\n" + "\n".join(f"  {one}" for one in (*lines, line.strip())) + "\n}"


def page() -> str:
    """Returns the page."""
    known = modules()
    parts = [
        "# JSON documents",
        "<!-- Made by docs/documents.py; do not edit. -->",
        ABOUT.strip(),
    ]
    for (module, name), title in SHARED.items():
        home = known[module]
        function = home.functions[name]
        literals = [node for node in ast.walk(function) if isinstance(node, ast.Dict)]
        largest = max(literals, key=lambda node: len(node.keys))
        shape = Shapes(known, home).value(largest, function)
        parts += [f"## {title}", f"```\n{indented(shape)}\n```"]
    found = sorted(set(documents()))
    for schema in dict.fromkeys(schema for schema, _ in found):
        parts.append(f"## {schema}")
        parts += [
            f"```\n{indented(each)}\n```" for name, each in found if name == schema
        ]
    return "\n\n".join(parts) + "\n"


def main(arguments: list[str]) -> None:
    """Writes the page, or prints it."""
    if arguments == ["--print"]:
        sys.stdout.write(page())
    else:
        (HERE / "json.md").write_text(page(), "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
