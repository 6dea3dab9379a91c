"""Renders prompts: a folder of Jinja2 templates, one per question, each of which a scenario may replace.

A template of a question has two blocks, ``system`` and ``user``, which become the two messages. Inside one of them the
block ``form`` says in what form to answer; another instruction can stand in its place. A template of a plain text (an
agent's initial memory) has no blocks.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, ClassVar

from jinja2 import BytecodeCache, FunctionLoader, StrictUndefined, Template, TemplateError, TemplateSyntaxError, meta
from jinja2.bccache import Bucket
from jinja2.sandbox import ImmutableSandboxedEnvironment

from simengine.errors import InputError
from simengine.llm.request import Message

Slot = str | tuple[str, ...]
_SUFFIX = ".j2"
_BLOCKS = ("system", "user")
_FORM = "form"


@dataclass(frozen=True)
class Rendered:
    """The messages of a prompt, and those of its slots whose text a reader of the messages really sees."""

    messages: tuple[Message, ...]
    slots: Mapping[str, Slot]


class PromptBook:
    """The templates ``<name>.j2`` of ``folders``; ``overrides`` names files to use instead of some of them.

    A name that is in several folders is that of the last.

    Templates run in Jinja2's sandbox, may include one another, and may not use a slot that they are not given.
    """

    def __init__(self, folders: Sequence[Path | Traversable], overrides: Mapping[str, Path] | None = None) -> None:
        """Reads every template at once, so that the hashes are those of what is rendered. Raises InputError."""
        self._files: dict[str, Path | Traversable] = {
            entry.name.removesuffix(_SUFFIX): entry
            for folder in folders
            for entry in sorted(folder.iterdir(), key=lambda entry: entry.name)
            if entry.name.endswith(_SUFFIX)
        }
        for name, path in (overrides or {}).items():
            if name not in self._files:
                known = ", ".join(self._files)
                remedy = f"Prompts: {known}."
                raise InputError("there is no such prompt to replace", field=f"prompts.{name}", remedy=remedy)
            self._files[name] = path
        self._texts = {name: _read(name, file) for name, file in self._files.items()}
        self._env = ImmutableSandboxedEnvironment(
            loader=FunctionLoader(self._source),
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            bytecode_cache=_Compiled(),
        )
        self._used = {name: self._names_in(name) for name in self._texts}

    def render(self, task: str, slots: Mapping[str, Slot], noun: str, form: str = "") -> Rendered:
        """The messages of template ``task``. ``noun`` is what an item is called (``CD``), itself a slot.

        ``form``, where it is given, stands in place of the template's block of that name.

        A slot is withheld from the result where the template does not refer to it or its text (each text of a list)
        is not in the messages: a backend then sees no more than a reader of the messages would.
        """
        values: dict[str, Slot] = {**slots, "noun": noun}
        template = self._template(task)
        blocks = [name for name in _BLOCKS if name in template.blocks]
        if "user" not in blocks:
            raise self._error(task, "the template has no block named user", 1)
        if form and _FORM not in template.blocks:
            raise self._error(task, "llm.output: json needs a block named form, whose place the JSON form takes", 1)
        messages = tuple(Message(name, self._run(task, template.blocks[name], values, form)) for name in blocks)
        text = "\n".join(message.content for message in messages)
        seen = {name: value for name, value in values.items() if name in self._used[task] and _appears(value, text)}
        return Rendered(messages, seen)

    def text(self, name: str, slots: Mapping[str, str], noun: str) -> str:
        """The plain text of a template without blocks, such as ``item`` (an item's initial memory)."""
        return self._run(name, self._template(name).root_render_func, {**slots, "noun": noun})

    def hashes(self) -> dict[str, str]:
        """The SHA-256 of each template's text (UTF-8), by name."""
        return {name: hashlib.sha256(text.encode()).hexdigest() for name, text in sorted(self._texts.items())}

    def _source(self, name: str) -> tuple[str, str, Callable[[], bool]] | None:
        name = name.removesuffix(_SUFFIX)
        return (self._texts[name], str(self._files[name]), lambda: True) if name in self._texts else None

    def _template(self, name: str) -> Template:
        if name not in self._texts:
            raise InputError("there is no such prompt", field=name, remedy=f"Prompts: {', '.join(self._texts)}.")
        try:
            return self._env.get_template(name)
        except TemplateError as error:
            raise self._error(name, str(error), getattr(error, "lineno", 1)) from error

    def _run(self, name: str, body: Callable[[Any], Any], values: Mapping[str, Slot], form: str = "") -> str:
        """The text of one block. An error in it is reported at the line of the template where it arose."""
        context = self._template(name).new_context(dict(values))
        if form:
            context.blocks[_FORM] = [lambda _: iter((f"{form}\n",))]
        try:
            return "".join(body(context)).strip()
        except Exception as error:  # whatever a template's expression raises, the template is at fault
            raise self._error(name, str(error), self._line(name, error)) from error

    def _line(self, name: str, error: Exception) -> int:
        template, line, trace = self._template(name), 1, error.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == template.filename:
                line = template.get_corresponding_lineno(trace.tb_lineno)
            trace = trace.tb_next
        return line

    def _names_in(self, name: str) -> frozenset[str]:
        """The slots that a template refers to, those of the templates that it includes among them."""
        names: set[str] = set()
        reached = [name]
        for current in reached:  # grows as templates include others; each is looked at once
            try:
                own, included = _mentions(self._texts[current])
            except TemplateSyntaxError as error:
                raise self._error(current, error.message or "bad syntax", error.lineno) from error
            names |= own
            for found in included:
                other = found.removesuffix(_SUFFIX)
                if other not in self._texts:
                    raise self._error(current, f"it includes an unknown template: {other!r}", 1)
                if other not in reached:
                    reached.append(other)
        return frozenset(names)

    def _error(self, name: str, problem: str, line: int) -> InputError:
        remedy = "Mend the template; the slots that it may use are those of the packaged template of that name."
        return InputError(f"prompt {name}: {problem}", file=str(self._files[name]), line=line, remedy=remedy)


class _Compiled(BytecodeCache):
    """Keeps what templates were compiled to for as long as the process lives: every run reads the same few."""

    _codes: ClassVar[dict[tuple[str, str], Any]] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        bucket.code = self._codes.get((bucket.key, bucket.checksum))

    def dump_bytecode(self, bucket: Bucket) -> None:
        self._codes[bucket.key, bucket.checksum] = bucket.code


@cache
def _mentions(text: str) -> tuple[frozenset[str], tuple[str, ...]]:
    """The names that a template's text refers to, and the templates that it includes."""
    tree = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True).parse(text)
    return frozenset(meta.find_undeclared_variables(tree)), tuple(
        it or "" for it in meta.find_referenced_templates(tree)
    )


def _read(name: str, file: Path | Traversable) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        problem = f"prompt {name} cannot be read: {error}"
        raise InputError(problem, file=str(file), remedy="Give a readable UTF-8 file.") from error


def _appears(value: Slot, text: str) -> bool:
    parts = (value,) if isinstance(value, str) else value
    return bool(parts) and all(part.strip() and part.strip() in text for part in parts)
