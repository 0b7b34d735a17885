"""No integer that enters the library is cut to the bits of its C type."""

import ctypes
import re
import sys

import numpy as np
import pytest
from conftest import ADD, CACHE, ROOT, SAMPLES

import sinter
from sinter._bindings import FUNCTIONS
from sinter.integers import Address, Integer, Integers

sys.path.insert(0, str(ROOT / "python"))
from make_bindings import HEADER, Header  # noqa: E402

WIDE = 2**64


class Tensor:
    """A tensor of another library, of one element."""

    def __init__(self, value, ndim=0, dtype="int64"):
        self.value, self.ndim, self.dtype = value, ndim, dtype

    def __index__(self):
        return self.value


def test_every_parameter_that_is_a_number_is_checked():
    """Numbers and numbers behind `const`, in the declarations of the header."""
    integer = re.compile(r"(const )?(int|u?int32_t|u?int64_t|size_t|sinter_value)( ?\*)? ?")
    header, seen = Header(HEADER.read_text()), 0
    for _, name, text in header.functions:
        declarations = header.arguments(text)
        for (declared, parameter), kind in zip(declarations, FUNCTIONS[name][1], strict=True):
            if declared.strip() in ("void*", "const void*"):
                assert isinstance(kind, Address) and kind.name == parameter
                check(kind, 2**64 - 1, [-1, WIDE, True], lambda one: one.value)
            match = integer.fullmatch(declared)
            if match and not match[3]:
                assert isinstance(kind, Integer) and kind.name == parameter, (name, parameter)
                check(kind, 5, [WIDE + 5, -WIDE, True, 5.0, "5", None], lambda one: one.value)
                seen += 1
            elif match and match[1]:
                assert isinstance(kind, Integers) and kind.name == parameter, (name, parameter)
                check(kind, [5, 6], [[WIDE + 5], [1, True], [5.0], 5], lambda one: one[:])
                seen += 1
    assert seen > 60


def check(kind, right, wrong, value_of):
    assert value_of(kind.from_param(right)) == right
    for value in wrong:
        with pytest.raises(sinter.SinterError, match=re.escape(kind.name)):
            kind.from_param(value)


def test_the_package_makes_arrays_of_integers_in_one_place():
    made = re.compile(r"(c_(u?int\d*|s?size_t|u?long\w*)|sinter_value) \* [^\n]+?\)\((?!\))")
    for file in (ROOT / "python" / "sinter").rglob("*.py"):
        assert not made.search(file.read_text()), file


@pytest.mark.parametrize(
    "value",
    [5, np.int8(5), np.uint64(5), np.array(5), np.array(5, np.uint8), Tensor(5)],
    ids=lambda value: type(value).__name__,
)
def test_what_holds_a_whole_number_is_one(value):
    assert Integer(ctypes.c_int32, "x").from_param(value).value == 5


@pytest.mark.parametrize(
    "value",
    [
        True,
        np.True_,
        np.array(True),
        5.0,
        np.float32(5),
        np.array(5.0),
        np.array([5]),
        "5",
        None,
        Tensor(1, dtype="torch.bool"),
        Tensor(5, ndim=1),
    ],
    ids=repr,
)
def test_what_holds_none_is_refused(value):
    with pytest.raises(sinter.SinterError, match="x: .*is given, a whole number is wanted"):
        Integer(ctypes.c_int32, "x").from_param(value)


@pytest.fixture(scope="module")
def model():
    with sinter.LanguageModel(SAMPLES / "tiny-llama", "cpu") as model:
        yield model


def refuses(function, *words):
    with pytest.raises(sinter.SinterError) as raised:
        function()
    for word in words:
        assert str(word) in str(raised.value)


def test_tokens_are_not_cut(model):
    token = 2**32 + 5
    with model.batch(places=2, capacity=32) as batch:
        refuses(lambda: batch.add([1, token]), "tokens[1]", token, 2**31 - 1)
        refuses(lambda: batch.add([True, 5]), "tokens[0]", True)
        sequence = batch.add(np.array([5, 9]))
        refuses(lambda: batch.remove(sequence + WIDE), "sequence", sequence + WIDE, 2**63 - 1)
        refuses(lambda: batch.remove(-1), "no sequence -1")
        batch.remove(np.int32(sequence))
    refuses(lambda: model.decode([token]), "tokens[0]", token)
    refuses(lambda: model.generate([token]), "prompt 0[0]", token)
    refuses(lambda: model.generate(["a", [1, token]]), "prompt 1[1]", token)
    refuses(lambda: model.generate([5.0]), "prompt 0", 5.0)
    refuses(lambda: model.generate([True]), "prompt 0", True)
    text = model.generate([5, 9], count=4).text
    assert model.generate(np.array([5, 9]), count=np.int8(4)).text == text
    assert model.generate([Tensor(5), np.array(9)], count=Tensor(4)).text == text
    assert model.generate(np.array([[5, 9], [9, 5]]), count=4).texts[0] == text


def test_end_tokens_are_of_the_vocabulary(model):
    def end(*tokens):
        return lambda: model.generate([5], count=2, end_tokens=tokens).text

    refuses(end(5, 1024), "option end: item 2", 1024, 1023)
    refuses(end(2**32 + 5), "option end", 2**32 + 5, 1023)
    refuses(end(-1), "option end", -1)
    refuses(end(True), "option end", "true")
    assert end(np.int64(1023))() == end()()


def test_counts_are_neither_negative_nor_bools(model):
    refuses(lambda: model.batch(places=-1, capacity=32), "places", -1)
    refuses(lambda: model.batch(places=True, capacity=32), "places", True)
    refuses(lambda: model.batch(places=WIDE + 2, capacity=32), "places", WIDE + 2)
    refuses(lambda: model.batch(places=2, capacity=WIDE + 32), "capacity", WIDE + 32)
    model.batch(places=np.int64(2), capacity=np.array(32)).close()
    for count in (-1, True, WIDE + 2, 2.0):
        refuses(lambda: model.generate([5], count=count).text, "option count")


def test_symbols_addresses_and_streams_are_not_cut():
    add, x = sinter.compile(ADD), np.zeros((2, 4), np.float32)
    entry = add.entry()
    refuses(lambda: entry.costs({"N": WIDE + 8}), "symbol N", WIDE + 8, 2**63 - 1)
    refuses(lambda: entry.costs({"N": True}), "symbol N", True)
    assert entry.costs({"N": np.int64(8)}) == entry.costs({"N": 8})
    refuses(lambda: add.run(x=x, y=x, symbols={"N": WIDE + 2}), "symbol N", WIDE + 2)
    refuses(lambda: add.verify("cpu", symbols={"N": WIDE + 8}), "symbol.N", WIDE + 8)
    refuses(lambda: sinter.compile(CACHE).session("cpu", symbols={"R": WIDE + 8}), "symbol R")
    for stream in (WIDE + 8, -1, True):
        refuses(lambda: add.session("cpu", stream=stream), "stream", stream)
    with add.session("cpu") as session:
        call, address = session.call().bind(x=x, y=x), x.ctypes.data
        refuses(lambda: call.move([address, address], [WIDE + address]), "outputs[0]")
    with sinter.ModuleBuilder() as module:
        refuses(lambda: module.symbol("N", 1, WIDE + 8), "high", WIDE + 8)
        assert "N in [1, 8]" in (module.symbol("N", np.int8(1), np.array(8)), module.text())[1]
