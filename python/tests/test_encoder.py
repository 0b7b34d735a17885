"""Encoders: texts to vectors."""

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


def test_what_an_encoder_refuses(folder):
    with pytest.raises(sinter.SinterError, match="give mean or cls"):
        sinter.Encoder(folder, "cpu", pooling="most")
    with sinter.Encoder(folder, "cpu") as encoder:
        with pytest.raises(sinter.SinterError, match="zero character"):
            encoder.encode("a\0b")
