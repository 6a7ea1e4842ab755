"""pybpe's own dataclasses behave as the standard library's."""

import copy
import dataclasses
import pickle
from types import ModuleType
from typing import Any, ClassVar

import pytest

import pybpe
from pybpe import _dataclasses


def classes(module: ModuleType) -> tuple[Any, Any]:
    """Returns a frozen class that inherits fields, and one that is not frozen, as a module makes them."""

    @module.dataclass(frozen=True)
    class Base:
        number: "int"
        text: "str" = "x"

    @module.dataclass(frozen=True)
    class Frozen(Base):
        values: "list[int]" = module.field(default_factory=list)
        SHARED: "ClassVar[int]" = 5
        other: "int" = module.field(default=4, metadata={"help": "h"})

        def __post_init__(self) -> None:
            object.__setattr__(self, "other", self.other + 1)

    @module.dataclass
    class Open:
        number: "int" = 0

    return Frozen, Open


def seen(module: ModuleType, functions: ModuleType) -> list[Any]:
    """What the classes of a module do, and what the functions of a module return for them."""
    frozen, opened = classes(module)
    one = frozen(1, values=[2])
    found: list[Any] = [repr(one), vars(one), vars(frozen(other=1, number=2)), vars(functions.replace(one, number=3))]
    found += [one == frozen(1, "x", [2]), one == copy.copy(one), one == frozen(2), one != opened(1), one.SHARED]
    found += [(each.name, each.type, dict(each.metadata)) for each in functions.fields(one)]
    found += [each.default is functions.MISSING or each.default for each in functions.fields(frozen)]
    for call in (
        lambda: hash(one),
        lambda: hash(frozen(1, values=())) == hash(frozen(1, values=())),
        lambda: hash(opened()),
        lambda: setattr(one, "text", "y"),
        lambda: delattr(one, "text"),
        frozen,
        lambda: frozen(1, 2, 3, 4, 5),
        lambda: frozen(1, number=1),
        lambda: frozen(1, unknown=1),
        lambda: functions.replace(one, unknown=1),
    ):
        try:
            found.append(call())
        except (TypeError, AttributeError) as error:
            found.append(TypeError if isinstance(error, TypeError) else AttributeError)
    return found


@pytest.mark.parametrize("functions", [_dataclasses, dataclasses])
def test_they_behave_as_those_of_the_standard_library(functions: ModuleType) -> None:
    assert seen(_dataclasses, functions) == seen(dataclasses, dataclasses)


def test_public_ones_are_pickled_and_known_to_the_standard_library() -> None:
    template = pybpe.Template.around(eos="</s>")
    assert pickle.loads(pickle.dumps(template)) == template == copy.deepcopy(template)
    other = pybpe.Template.around(eos="<e>")
    assert dataclasses.is_dataclass(template) and dataclasses.replace(template, **vars(other)) == other != template
    assert dataclasses.asdict(template) == vars(template)
    with pytest.raises(TypeError, match=r"Template.__init__\(\) got an unexpected keyword argument 'ends'"):
        pybpe.Template(ends=())  # type: ignore[call-arg]
