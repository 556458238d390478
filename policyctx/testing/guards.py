"""What would let a broken scenario pass: told when features are collected, with file and line.

A misspelt keyword makes a step a part of the description, a second scenario of one name takes the
place of the first, an `async` step is never awaited, and so on: each would pass without a word.
"""

from collections.abc import Iterable, Iterator
from inspect import signature
from typing import TypeAlias

from pytest_bdd.gherkin_parser import Scenario
from pytest_bdd.parser import PARAM_RE, Feature, Step, render_string

from policyctx.errors import Diagnostic
from policyctx.testing.gherkin import FeatureSource, KnownTags, misspelt_keywords
from policyctx.testing.step_definitions import Definitions, StepDefinition

Problems: TypeAlias = Iterator["Diagnostic"]


def problems_in(
    source: FeatureSource, definitions: Definitions, tags: KnownTags
) -> list[Diagnostic]:
    """Return everything that is wrong with a feature file, in the order of its lines."""
    found = [
        *_names(source),
        *_outlines(source),
        *_tags(source, tags),
        *misspelt_keywords(source, definitions),
    ]
    if source.feature is not None:
        found += [*_bodies(source, source.feature), *_steps(source, source.feature, definitions)]
    if source.refusal is not None:
        found.append(source.refusal)
    return sorted(dict.fromkeys(found), key=lambda problem: problem.place.line)


def _names(source: FeatureSource) -> Problems:
    first: dict[str, int] = {}
    scenarios = [scenario for scenario, _ in source.scenarios()]
    for scenario in scenarios:
        line = scenario.location.line
        if not scenario.name:
            yield source.problem(line, "the scenario has no name")
        elif first.setdefault(scenario.name, line) != line:
            told = f"a scenario of this name is in line {first[scenario.name]} already"
            yield source.problem(line, told, "of two, only one would run")
    if not scenarios:
        yield source.problem(source.tree.location.line, "the feature has no scenario")


def _bodies(source: FeatureSource, feature: Feature) -> Problems:
    for scenario, _ in source.scenarios():
        line = scenario.location.line
        if not scenario.steps:
            yield source.problem(line, "the scenario has no steps", "it would pass")
            continue
        template = feature.scenarios.get(scenario.name)
        if template and template.line_number == line:
            types = {step.type for step in template.steps[len(template.all_background_steps) :]}
            if "then" not in types:
                hint = "without one it says nothing of the outcome"
                yield source.problem(line, "the scenario has no Then", hint)


def _outlines(source: FeatureSource) -> Problems:
    for scenario, _ in source.scenarios():
        used = set(PARAM_RE.findall(_text(scenario)))
        columns: set[str] = set()
        for table in scenario.examples:
            if table.table_header is None or not table.table_body:
                told = "the examples have no rows"
                yield source.problem(table.location.line, told, "the outline would run as it is")
            if table.table_header is not None:
                columns |= {cell.value for cell in table.table_header.cells}
                for cell in table.table_header.cells:
                    if cell.value not in used:
                        told = f"no step uses the column <{cell.value}>"
                        yield source.problem(cell.location.line, told)
        is_outline = bool(scenario.examples) or "outline" in scenario.keyword.lower()
        missing = sorted(used - columns) if is_outline else []
        if missing:
            told = f"no column is called <{missing[0]}>"
            hint = f"the columns are {', '.join(sorted(columns))}" if columns else "no Examples"
            yield source.problem(_line_of(scenario, f"<{missing[0]}>"), told, hint)
        elif is_outline and not scenario.examples:
            yield source.problem(scenario.location.line, "the outline has no Examples")


def _text(scenario: Scenario) -> str:
    """All the text of a scenario in which a column may be used."""
    parts = [scenario.name]
    for step in scenario.steps:
        parts.append(step.text)
        if step.docstring:
            parts.append(step.docstring.content)
        if step.datatable:
            parts += [cell.value for row in step.datatable.rows for cell in row.cells]
    return "\n".join(parts)


def _line_of(scenario: Scenario, text: str) -> int:
    lines = (step.location.line for step in scenario.steps if text in step.text)
    return next(lines, scenario.location.line)


def _tags(source: FeatureSource, tags: KnownTags) -> Problems:
    for tag in source.tags():
        if problem := tags.problem(tag.name.removeprefix("@")):
            yield source.problem(tag.location.line, *problem)


def _steps(source: FeatureSource, feature: Feature, definitions: Definitions) -> Problems:
    for step, wordings in _wordings(feature):
        for wording in wordings:
            found = definitions.matching(step.type, wording)
            if (problem := _wrong_with(step, wording, found, definitions)) is not None:
                yield source.problem(step.line_number, *problem)
                break


def _wordings(feature: Feature) -> Iterator[tuple[Step, Iterable[str]]]:
    """Yield each step once, with what it says: for an outline in each of its rows."""
    seen: set[int] = set()
    for template in feature.scenarios.values():
        contexts = [row for table in template.examples for row in table.as_contexts()]
        for step in template.steps:
            is_templated = bool(template.examples) and "<" in step.name
            if id(step) not in seen or is_templated:
                seen.add(id(step))
                rendered = (render_string(step.name, row) for row in contexts)
                yield step, dict.fromkeys(rendered) if is_templated else (step.name,)


def _wrong_with(
    step: Step, wording: str, found: tuple[StepDefinition, ...], definitions: Definitions
) -> tuple[str, str] | None:
    if not found:
        return _unknown(step.type, wording, definitions)
    if len(found) > 1:
        places = " and ".join(definition.place for definition in found)
        return f"{len(found)} definitions for one step: {wording}", f"they are {places}"
    if found[0].is_async:
        told = f"the definition of this step is an `async def`: {wording}"
        return told, f"nobody awaits it; it is {found[0].place}"
    taken = signature(found[0].function).parameters
    for kind, given in (("datatable", step.datatable), ("docstring", step.docstring)):
        if given is not None and kind not in taken:
            return f"this step takes no {kind.removeprefix('data')}: {wording}", ""
    return None


def _unknown(type_: str, wording: str, definitions: Definitions) -> tuple[str, str]:
    told = f"unknown step: {type_.capitalize()} {wording}"
    if others := definitions.other_types(wording):
        return told, f"it is known as a {others[0].capitalize()}"
    near = definitions.nearest(type_, wording)
    if not near:
        return told, "`policyctx test --steps` lists those that are known"
    steps = (f"  {kind.capitalize()} {step}" for kind, step in near)
    return told, "\n".join(["did you mean", *steps])
