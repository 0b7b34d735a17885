"""Compiling, and what a plan says."""

import json

import numpy as np
import pytest
from conftest import ADD, BLOCK, CACHE, ROOT, SAMPLES

import sinter


def test_a_module_in_a_file_is_compiled_with_stand_in_weights():
    compiled = sinter.compile(SAMPLES / "layer_norm_residual.sir", random_weights=1)
    entry = compiled.entry()
    assert list(compiled.entries) == ["f"]
    assert entry.inputs == {"x": "bf16[N, 4096]", "residual": "bf16[N, 4096]"}
    assert entry.outputs == {"sum": "bf16[N, 4096]"}
    assert entry.symbols["N"] == sinter.Symbol(1, 16384, 1)
    assert compiled.target == "sm_90a"


def test_keys_of_a_config_that_are_not_known_can_be_ignored(tmp_path):
    config = json.loads((ROOT / "tests/golden/llama/config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"color": 1, "mood": 2}))
    with pytest.raises(sinter.SinterError, match="/color: "):
        sinter.compile(tmp_path, entries=["decode"])
    plan = sinter.compile(tmp_path, entries=["decode"], ignore_keys=["color", "mood"])
    assert list(plan.entries) == ["decode"]


def test_a_text_and_a_builder_give_the_same_plan():
    with sinter.ModuleBuilder("add") as module:
        module.symbol("N", 0, 64)
        graph = module.entry("main")
        x, y = graph.input("x", "f32[N, 4]"), graph.input("y", "f32[N, 4]")
        graph.output(graph.op("add", [graph.op("mul", [x, y], name="p"), y], name="z"))
        built = sinter.compile(module)
    assert built.ledger_text == sinter.compile(ADD).ledger_text
    assert built.text == sinter.compile(built.model).text


def test_why_answers_for_both_verdicts():
    compiled = sinter.compile(SAMPLES / "pre_ln_block.sir", random_weights=1)
    fused = sinter.compile(SAMPLES / "layer_norm_residual.sir", random_weights=1).why("norm", "sum")
    assert fused and fused.reason == "fused" and fused.saved_bytes > 0
    assert str(fused).startswith("norm and sum share a kernel; saves ")
    assert (fused.savings, fused.change, fused.launches) == ("8.39 MB", "", (0, 0))
    refused = next(d for d in compiled.decisions() if d.reason == "convexity.path")
    again = compiled.why(refused.a, refused.b)
    assert not again and again.reason == "convexity.path" and len(again.path) > 2
    assert again.path[0] == again.a and again.path[-1] == again.b
    assert "(convexity.path)" in str(again) and " → ".join(again.path) in str(again)
    assert again.change and again.change in str(again) and again.savings == ""
    assert again.launches == refused.launches and None not in again.launches


def test_why_tells_the_path_between_two_values_and_its_first_refusal():
    answer = sinter.compile(SAMPLES / "pre_ln_block.sir", random_weights=1).why("norm1", "attn")
    assert (answer.reason, answer.path) == ("convexity.path", ("norm1", "qkv", "attn"))
    assert len(answer.path_launches) == 3 and None not in answer.path_launches
    assert (answer.path_launches[0], answer.path_launches[2]) == answer.launches
    first = answer.first_refusal
    assert first is not None and (first.a, first.b, first.reason) == ("norm1", "qkv", "port.closed")
    assert first.launches == answer.path_launches[:2]
    assert f"\nfirst on the path, {first}" in str(answer)


def test_a_module_stands_for_its_last_value():
    text = ADD.replace("%p", "%b.p").replace("%z", "%b.0.z")
    with sinter.compile(text) as compiled:
        assert compiled.why("b.p", "b").b == "b.0.z"
        assert compiled.why("b.p", "b.0").fused
    with pytest.raises(sinter.SinterError, match="must share a kernel"):
        sinter.compile(text, require=[("b.p", "b")], forbid=[("b.p", "b.0")])
    with pytest.raises(sinter.SinterError, match='no value or module is called "c"'):
        sinter.compile(text, forbid=[("b", "c")])


def test_dir_shows_what_the_package_offers():
    shown = dir(sinter)
    assert {"LanguageModel", "compile", "explain", "from_torch"} <= set(shown)
    assert not {"Any", "call", "lib", "text_of"} & set(shown)


def test_why_without_an_entry_takes_the_first_that_has_both_values():
    compiled = sinter.compile(SAMPLES / "attention_cache.sir", random_weights=1)
    assert compiled.why("norm", "res") == compiled.entry("prefill").why("norm", "res")
    with pytest.raises(sinter.SinterError, match="nothing"):
        compiled.why("norm", "nothing")


def test_costs_of_the_fused_and_the_unfused_plan():
    entry = sinter.compile(SAMPLES / "layer_norm_residual.sir", random_weights=1).entry()
    fused, unfused = entry.costs({"N": 1024}), entry.unfused_costs({"N": 1024})
    assert (fused.launches, unfused.launches) == (1, 2)
    assert fused.moved_bytes < unfused.moved_bytes
    assert 0 < fused.predicted_seconds < unfused.predicted_seconds
    assert fused.moved_bytes > entry.costs({"N": 512}).moved_bytes
    with pytest.raises(sinter.SinterError, match="N"):
        entry.costs({"N": 1 << 40})
    with pytest.raises(sinter.SinterError, match='no symbol is called "M"'):
        entry.costs({"M": 1})


def test_steps_name_kernels_whose_text_is_cuda(block):
    (entry,) = block.entries.values()
    assert [step.kind for step in entry.steps].count("kernel") == len(entry.steps)
    kernel = block.kernels[entry.steps[0].kernel]
    assert "__global__" in kernel.source and kernel.name
    assert "%n" in " ".join(step.values for step in entry.steps)


def test_the_ledger_is_text_data_and_a_page(block):
    assert block.ledger["format"] == "sinter.ledger"
    assert [entry["name"] for entry in block.ledger["entries"]] == ["main"]
    assert "main" in block.ledger_text
    assert block.explain_html().lstrip().lower().startswith("<!doctype html")
    shown = block._repr_html_()
    assert shown.startswith("<iframe srcdoc=") and shown.endswith("</iframe>")
    assert "<html" not in shown  # it is escaped


def test_the_page_has_lines_of_source_and_the_text_where_it_is_asked_for(block):
    assert '"module":' not in block.explain_html()
    assert '"module":' in block.explain_html(with_text=True)
    block.sources = {"n": "model.py:7: x = '</script>'"}
    try:
        page = block.explain_html()
    finally:
        block.sources = {}
    assert page.count("</script>") == block.explain_html().count("</script>") == 3
    assert "model.py:7: x = '\\u003c/script\\u003e'" in page


def test_texts_before_and_after_the_passes(block):
    assert block.text.startswith("module @block")
    assert "rms_norm" in block.optimized_text


def test_a_plan_that_was_saved_is_opened_with_the_same_bits(block, weights, tmp_path):
    block.save(tmp_path / "plan")
    opened = sinter.open_plan(tmp_path / "plan")
    ids, r = np.array([3, 0, 9], np.int32), np.ones((3, 8), np.float32)
    assert opened.entry().inputs == block.entry().inputs
    assert opened.entry().costs().predicted_seconds is None
    assert opened.why("s", "n").fused
    again = sinter.compile(tmp_path / "plan", weights=weights)
    np.testing.assert_array_equal(again.run(ids=ids, r=r)["y"], block.run(ids=ids, r=r)["y"])
    manifest = json.loads((tmp_path / "plan" / "manifest.json").read_text())
    assert manifest["sinter"] == sinter.version()


def test_pairs_are_required_and_forbidden():
    assert not sinter.compile(BLOCK, forbid=[("s", "n")]).why("s", "n")
    with pytest.raises(sinter.SinterError) as raised:
        sinter.compile(BLOCK, require=[("n", "m")])
    assert raised.value.code == sinter.Code.CHECK_FAILED


def test_options_of_a_compilation():
    assert len(sinter.compile(BLOCK, fuse=False).entry().steps) > len(
        sinter.compile(BLOCK).entry().steps
    )
    assert sinter.compile(BLOCK, target="sm_80").target == "sm_80"
    cache = sinter.compile(SAMPLES / "attention_cache.sir", entries=["decode"], random_weights=1)
    assert list(cache.entries) == ["decode"]
    assert sinter.compile(CACHE).states == {"cache": "f32[R, 4]"}


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        ("no/such/model", {}, "no/such/model"),
        (BLOCK, {"target": "sm_1"}, "sm_1"),
        (BLOCK, {"numerics": "exact"}, '"exact" is neither strict nor fast'),
        (BLOCK, {"entries": ["side"]}, "side"),
        (BLOCK, {"entries": ["main", "main"]}, 'entry point "main" is named 2 times; name it once'),
        (BLOCK, {"entries": "main,main"}, 'entry point "main" is named 2 times; name it once'),
        ("module @m {\n", {}, "module:2"),
        (3, {}, "compile: an object of type int is given, a model is wanted; give a path"),
    ],
)
def test_what_cannot_be_compiled_is_an_error(source, options, message):
    with pytest.raises(sinter.SinterError, match=message):
        sinter.compile(source, **options)


def test_an_open_model_takes_no_options_of_files():
    model = sinter.compile(ADD).model
    with pytest.raises(
        sinter.SinterError, match="random-weights is given for a model that is open"
    ):
        sinter.compile(model, random_weights=1)


def test_an_entry_must_be_named_where_there_are_several():
    compiled = sinter.compile(SAMPLES / "attention_cache.sir", random_weights=1)
    with pytest.raises(sinter.SinterError, match="2 entries; name one: prefill, decode"):
        compiled.entry()
    with pytest.raises(sinter.SinterError, match='no entry is called "encode"'):
        compiled.entry("encode")


def test_progress_tells_stages_and_stops():
    stages = []
    sinter.compile(BLOCK, progress=lambda stage, done, total: stages.append(stage))
    assert {"passes", "fusion"} <= set(stages)
    with pytest.raises(sinter.SinterError) as raised:
        sinter.compile(BLOCK, progress=lambda *step: False)
    assert raised.value.code == sinter.Code.CANCELLED


def test_an_exception_of_a_progress_function_comes_out():
    def broken(stage, done, total):
        raise ZeroDivisionError("of the caller")

    with pytest.raises(ZeroDivisionError, match="of the caller"):
        sinter.compile(BLOCK, progress=broken)


def test_verify_compares_fused_and_unfused(block):
    report = block.verify("cpu", symbols={"N": 12})
    assert report and report.difference == ""
    assert report.fused_launches < report.unfused_launches
    assert report.elements > 0 and 0 <= report.fused_error < 1e-5
    assert str(report).startswith("verified: ")
