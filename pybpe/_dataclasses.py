"""What pybpe uses of the standard library's dataclasses, without their cost at each start: that module loads `inspect`,
which takes 10 ms, and compiles methods for each class, which takes a millisecond. Here all classes share their methods.

Type checkers see the standard library's decorator. Its functions, such as `dataclasses.replace`, take these objects."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataclasses import MISSING as MISSING
    from dataclasses import Field as Field
    from dataclasses import dataclass as dataclass
    from dataclasses import field as field
    from dataclasses import fields as fields
    from dataclasses import replace as replace
else:
    MISSING = object()

    class Field:
        """A field of a dataclass."""

        def __init__(self, default=MISSING, default_factory=None, metadata=None):
            self.default, self.default_factory, self.metadata = default, default_factory, metadata or {}
            self.name = self.type = ""  # until the class is made

    field = Field

    def dataclass(cls=None, /, *, frozen=False, repr=True):
        if cls is None:
            return lambda cls: dataclass(cls, frozen=frozen, repr=repr)
        cls._fields_of = dict(getattr(cls, "_fields_of", {}))
        for name, kind in cls.__annotations__.items():
            if not kind.startswith("ClassVar"):
                default = vars(cls).get(name, MISSING)
                each = cls._fields_of[name] = default if isinstance(default, Field) else Field(default)
                each.name, each.type = name, kind
                if each.default is not MISSING:
                    setattr(cls, name, each.default)
                elif default is each:
                    delattr(cls, name)
        methods = {"__init__": _init, "__eq__": _eq, "__hash__": _hash if frozen else None, "__replace__": replace}
        methods |= {"__repr__": _repr} if repr else {}
        methods |= {"__setattr__": _refuse, "__delattr__": _refuse} if frozen else {}
        methods |= {"__dataclass_fields__": _Fields()}
        for name, method in methods.items():
            setattr(cls, name, method)
        return cls

    def _init(self, /, *values, **named):
        names = self._fields_of
        given = dict(zip(names, values))
        for name in named:
            if name not in names or name in given:
                problem = "multiple values for" if name in given else "an unexpected keyword"
                raise TypeError(f"{type(self).__name__}.__init__() got {problem} argument {name!r}")
        if len(values) > len(names):
            raise TypeError(f"{type(self).__name__}.__init__() takes {len(names)} arguments, but got {len(values)}")
        given.update(named)
        for name, each in names.items():
            if name in given:
                value = given[name]
            elif each.default_factory is not None:
                value = each.default_factory()
            elif each.default is not MISSING:
                value = each.default
            else:
                raise TypeError(f"{type(self).__name__}.__init__() missing a required argument: {name!r}")
            self.__dict__[name] = value
        if hasattr(self, "__post_init__"):
            self.__post_init__()

    def _values(self):
        return tuple([getattr(self, name) for name in self._fields_of])

    def _eq(self, other):
        return _values(self) == _values(other) if type(other) is type(self) else NotImplemented

    def _hash(self):
        return hash(_values(self))

    def _repr(self):
        return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in self._fields_of)})"

    def _refuse(self, name, *_):
        raise AttributeError(f"{type(self).__name__} cannot change: {name}")

    def fields(record):
        return tuple(record._fields_of.values())

    def replace(record, /, **changes):
        return type(record)(**{**{name: getattr(record, name) for name in record._fields_of}, **changes})

    class _Fields:
        """The fields as the standard library's functions need them."""

        def __get__(self, record, cls):
            import dataclasses

            def made(each):
                more = {"default_factory": each.default_factory} if each.default_factory is not None else {}
                more |= {"default": each.default} if each.default is not MISSING else {}
                return each.name, each.type, dataclasses.field(metadata=each.metadata, **more)

            return dataclasses.make_dataclass(cls.__name__, map(made, fields(cls))).__dataclass_fields__
