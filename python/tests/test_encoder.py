"""Encoders: texts to vectors."""

import json
import shutil

import numpy as np
import pytest
from conftest import ROOT

import sinter

GOLDEN = ROOT / "tests" / "golden"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bert")
    for name in ("config.json", "model.safetensors"):
        shutil.copy(GOLDEN / "bert_post_ln" / name, folder)
    shutil.copy(GOLDEN / "tokenizers/wordpiece_bert/tokenizer.json", folder)
    return folder


def test_texts_become_rows(folder):
    with sinter.Encoder(folder, "cpu", normalize=True) as encoder:
        assert encoder.width == 64
        both = encoder.encode(["a b", "c"])
        assert both.shape == (2, 64) and both.dtype == np.float32
        np.testing.assert_allclose(np.linalg.norm(both, axis=1), 1, rtol=1e-6)
        np.testing.assert_allclose(encoder.encode("c"), both[1], atol=1e-5)
        assert encoder.encode([]).shape == (0, 64)


def test_long_texts_are_refused_or_truncated(folder):
    with sinter.Encoder(folder, "cpu", pooling="cls") as encoder:
        with pytest.raises(sinter.SinterError, match="202 tokens, 1 to 128 are possible"):
            encoder.encode("a " * 200)
        with pytest.warns(UserWarning, match="1 text was truncated"):
            assert encoder.encode("a " * 200, truncate=True).shape == (64,)


@pytest.fixture
def prompted(folder, tmp_path):
    """The folder as sentence-transformers saves it, with a default prompt."""
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    (tmp_path / "1_Pooling").mkdir()
    kinds = {"": "models.Transformer", "1_Pooling": "models.Pooling"}
    modules = [{"path": path, "type": "x." + kind} for path, kind in kinds.items()]
    (tmp_path / "modules.json").write_text(json.dumps(modules))
    prompts = {"prompts": {"query": "b c ", "long": "a a a "}, "default_prompt_name": "query"}
    (tmp_path / "config_sentence_transformers.json").write_text(json.dumps(prompts))

    def pooled(**settings):
        config = {"pooling_mode_mean_tokens": True, **settings}
        (tmp_path / "1_Pooling" / "config.json").write_text(json.dumps(config))
        return tmp_path

    return pooled


def test_the_default_prompt_stands_before_each_text(folder, prompted):
    with sinter.Encoder(folder, "cpu") as encoder:
        assert encoder.prompts == {} and encoder.default_prompt_name is None
        plain, query, long = encoder.encode(["a", "b c a", "a a a a"])
    with sinter.Encoder(prompted(), "cpu") as encoder:
        assert encoder.prompts == {"query": "b c ", "document": "", "long": "a a a "}
        assert encoder.default_prompt_name == "query" and "prompt 'b c '" in repr(encoder)
        for options, wanted in (
            ({}, query),
            ({"prompt_name": "long"}, long),
            ({"prompt_name": "document"}, plain),
            ({"prompt": ""}, plain),
            ({"prompt": "a a a "}, long),
        ):
            np.testing.assert_allclose(encoder.encode("a", **options), wanted, atol=1e-5)
        with pytest.raises(sinter.SinterError, match='"x"; one of: query, document, long'):
            encoder.encode("a", prompt_name="x")
        with pytest.raises(sinter.SinterError, match="give one of them"):
            encoder.encode("a", prompt="x", prompt_name="query")


def test_a_prompt_can_be_left_out_of_the_mean(prompted):
    with sinter.Encoder(prompted(), "cpu") as encoder:
        whole = encoder.encode("a")
        first = sinter.Encoder(prompted(), "cpu", pooling="cls").encode("a")
    with sinter.Encoder(prompted(include_prompt=False), "cpu") as encoder:
        rest = encoder.encode("a")
        assert np.abs(rest - whole).max() > 1e-3 and np.abs(rest - first).max() > 1e-3
        empty = encoder.encode("a", prompt_name="document")
        np.testing.assert_array_equal(encoder.encode("a", prompt=""), empty)


def test_what_an_encoder_refuses(folder):
    with pytest.raises(sinter.SinterError, match="give mean or cls"):
        sinter.Encoder(folder, "cpu", pooling="most")
    with sinter.Encoder(folder, "cpu") as encoder:
        with pytest.raises(sinter.SinterError, match="zero character"):
            encoder.encode("a\0b")
