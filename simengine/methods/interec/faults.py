"""What can be wrong with a plan or a tool's input: a code for counting, and a detail for whoever plans again."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

Code: TypeAlias = Literal[
    # the plan, before anything runs
    "unreadable",  # no plan can be read in the reply
    "too_many_steps",
    "unknown_tool",
    "wrong_input",  # a field is missing, unknown, or of another type or size
    "unknown_reference",  # a step or a column that is not there, or a step that has no rows
    "later_reference",  # a step refers to one that comes after it
    "cycle",  # a step refers to itself, or steps refer to one another
    # the text of a query
    "empty",
    "too_long",
    "comment",
    "several_statements",
    "forbidden_statement",  # anything that does not begin with SELECT or WITH, and whatever would change something
    "forbidden_table",
    "forbidden_function",
    "recursion",
    "bad_sql",  # SQLite cannot read it, or fails at it
    # a query at work
    "too_large",  # a value, an expression or a row is beyond the limits
    "too_much_work",
    "too_slow",
    "too_many_rows",
    "no_ids",  # a filter that returns no column of ids
    # what was asked for is not there
    "not_found",
    "ambiguous",
    "no_match",  # nothing is left of the candidates
    "empty_bus",  # there are no candidates to begin with
    "empty_reference",  # the step referred to has failed, or has returned nothing
]
CODES: tuple[str, ...] = get_args(Code)


class Fault(ValueError):
    """A plain value for the caller, who writes it into the tracker. ``detail`` is fit for a corrective prompt."""

    def __init__(self, code: Code, detail: str) -> None:
        super().__init__(code, detail)
        self.code: Code = code
        self.detail = detail

    def __str__(self) -> str:
        return f"{self.code}: {self.detail}"


def quoted(text: str, longest: int = 60) -> str:
    """The beginning of a text of the model's, on one line, to quote it in a detail."""
    line = " ".join(text.encode("utf-8", "replace").decode().split())
    return repr(line if len(line) <= longest else line[:longest] + "...")
