"""Random tokenizer folders through `sinter.LanguageModel`, beside transformers.

    python random_tokenizers.py --seed 0 --count 300 [--processes 4]

A seed gives a folder: a small tokenizer.json (or vocab.txt, or vocab.json with merges.txt), and perhaps
tokenizer_config.json, special_tokens_map.json and added_tokens.json with tokens and flags. Ids of texts that
spell the tokens, and the texts of ids, must be those of transformers' AutoTokenizer; an error is right where
transformers fails as well, and where a file gives a token another id than transformers. Prints the files of
each seed that fails. Exit code 1 if one fails.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import sys
import tempfile
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import transformers
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

import sinter

VOCABULARY = 400  # of the model, more than all tokens
CONFIG = {
    "model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": VOCABULARY, "hidden_size": 16,
    "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 2,
    "max_position_embeddings": 64, "rms_norm_eps": 1e-5, "hidden_act": "silu", "bos_token_id": None,
    "eos_token_id": None}
NAMES = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
FLAGS = ("lstrip", "rstrip", "single_word", "normalized")
CONTENTS = ("<|a|>", "<|B|>", "<|a|>b", "ab", "Ab", " x", "x ", "[C]", "[c]", "</s>", "<s>", "q", "w.", "\u00e9",
            "e\u0301", "<unk>", "[UNK]", "n't", "zz")
BYTES = {c: i for i, c in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
LETTERS = "abcdeqwxyzABCQX.,!?'<>|[]/ \u00e9"
BERT = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


@dataclass
class Case:
    seed: int
    files: dict[str, str] = field(default_factory=dict)
    texts: list[str] = field(default_factory=list)
    ids: list[list[int]] = field(default_factory=list)  # to be decoded, of tokens that exist


class Draw:
    """The random choices of a seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.case = Case(seed)
        self.config: dict[str, Any] = {}

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def one_of(self, values: Any) -> Any:
        return self.random.choice(list(values))

    def token(self, content: str | None = None, special: bool | None = None) -> dict[str, Any]:
        """A token with flags, as JSON files have it."""
        token = {"content": content or self.one_of(CONTENTS), "special": self.chance(0.5)}
        if special is not None:
            token["special"] = special
        token |= {flag: self.chance(0.25) for flag in FLAGS}
        return token

    def tokens(self, most: int) -> list[dict[str, Any]]:
        contents = {self.one_of(CONTENTS) for _ in range(self.random.randint(0, most))}
        return [self.token(content) for content in sorted(contents)]

    # ---- tokenizers

    def byte_level(self) -> Tokenizer:
        vocabulary = dict(BYTES)
        merges = []
        for pair in ("ab", "zz", "qx"):
            if self.chance(0.5):
                vocabulary[pair] = len(vocabulary)
                merges.append((pair[0], pair[1]))
        if self.chance(0.5):
            vocabulary["<|a|>"] = len(vocabulary)
        if self.chance(0.1):
            vocabulary["far"] = len(vocabulary) + 3  # ids with a hole
        made = Tokenizer(models.BPE(vocabulary, merges))
        made.normalizer = self.one_of((None, None, normalizers.Lowercase(), normalizers.NFC(),
                                       normalizers.Replace("q", "Q"), normalizers.Strip()))
        made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=self.chance(0.3))
        made.decoder = decoders.ByteLevel()
        return made

    def unigram(self) -> Tokenizer:
        pieces = ["<unk>", "<s>", "</s>", "\u2581", *LETTERS.replace(" ", ""), "\u2581a", "ab", "zz"]
        made = Tokenizer(models.Unigram([(piece, -float(i)) for i, piece in enumerate(pieces)], unk_id=0))
        made.normalizer = self.one_of((None, normalizers.NFC(), normalizers.Lowercase()))
        made.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=self.one_of(("always", "first", "never")))
        made.decoder = self.one_of((decoders.Metaspace(), decoders.Metaspace(prepend_scheme="never")))
        return made

    def word_piece(self) -> Tokenizer:
        pieces = [*BERT, *LETTERS.replace(" ", ""), *("##" + letter for letter in LETTERS.replace(" ", ""))]
        made = Tokenizer(models.WordPiece({piece: i for i, piece in enumerate(pieces)}, unk_token="[UNK]"))
        made.normalizer = normalizers.BertNormalizer(
            lowercase=self.chance(0.5), strip_accents=self.one_of((None, True, False)))
        made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        made.decoder = decoders.WordPiece(prefix="##", cleanup=self.chance(0.5))
        return made

    def pieces_with_bytes(self) -> Tokenizer:
        pieces = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), "\u2581",
                  *LETTERS.replace(" ", ""), "ab", "\u2581ab"]
        vocabulary = {piece: i for i, piece in enumerate(pieces)}
        made = Tokenizer(models.BPE(vocabulary, [("a", "b"), ("\u2581", "ab")], unk_token="<unk>", fuse_unk=True,
                                    byte_fallback=True))
        made.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
        made.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(),
                                          decoders.Strip(" ", 1, 0)])
        return made

    # ---- files

    def write(self, name: str, content: Any) -> None:
        self.case.files[name] = json.dumps(content, ensure_ascii=False)

    def tokenizer_json(self) -> list[str]:
        """Writes tokenizer.json; the contents of its added tokens."""
        made = self.one_of((self.byte_level, self.byte_level, self.unigram, self.word_piece, self.pieces_with_bytes))()
        own = self.tokens(4)
        made.add_tokens([AddedToken(**token) for token in own])
        if self.chance(0.3):
            made.add_special_tokens(["</s>"])
            made.post_processor = processors.TemplateProcessing(
                single=self.one_of(("</s> $A", "$A </s>")), special_tokens=[("</s>", made.token_to_id("</s>"))])
        if self.chance(0.15):
            made.enable_padding(pad_token=self.one_of(CONTENTS))
        self.case.files["tokenizer.json"] = made.to_str()
        return [token["content"] for token in json.loads(made.to_str())["added_tokens"]]

    def named(self, marked: bool) -> Any:
        """A named token as tokenizer_config.json has it (`marked`), or special_tokens_map.json."""
        if self.chance(0.1):
            return None
        if self.chance(0.6):
            return self.one_of(CONTENTS)
        token = self.token()
        token.pop("special")
        return {"__type": "AddedToken", **token} if marked else token

    def tokenizer_config(self, next_id: int, known: list[str], ids: dict[str, int]) -> None:
        config = self.config
        if self.chance(0.5):
            config["tokenizer_class"] = self.one_of(("PreTrainedTokenizerFast", "TokenizersBackend", "Unheard"))
        if self.chance(0.5):
            decoder = {}
            for token in self.tokens(5):
                content = token["content"]
                number = ids.get(content)
                if number is None:
                    number, next_id = next_id, next_id + 1
                if self.chance(0.05):
                    number = self.random.randint(0, VOCABULARY - 1)
                decoder[str(number)] = token
            for content in known:  # most files repeat those of tokenizer.json
                if self.chance(0.6) and str(ids[content]) not in decoder:
                    decoder[str(ids[content])] = self.token(content)
            config["added_tokens_decoder"] = dict(sorted(decoder.items(), key=lambda item: self.random.random()))
        for name in (*NAMES, "image_token", "own_token"):
            if self.chance(0.2):
                config[name] = self.named(True)
        for key in ("extra_special_tokens", "additional_special_tokens"):
            if self.chance(0.2):
                config[key] = [self.one_of(CONTENTS) for _ in range(self.random.randint(0, 3))]
        if self.chance(0.1):
            config["extra_special_tokens"] = {
                key: self.one_of(CONTENTS) for key in ("own_token", "more_token", "eos_token") if self.chance(0.5)}
        for key, share in (("clean_up_tokenization_spaces", 0.3), ("split_special_tokens", 0.2), ("add_bos_token", 0.2),
                           ("add_eos_token", 0.2), ("add_prefix_space", 0.2), ("legacy", 0.1),
                           ("clean_up_tokenization_spaces_for_bpe_even_though_it_will_corrupt_output", 0.15)):
            if self.chance(share):
                config[key] = self.chance(0.6)
        if self.chance(0.2):
            config |= {"model_max_length": self.one_of((4, int(1e30))), "padding_side": "left"}

    def beside(self, next_id: int) -> None:
        if self.chance(0.3):
            content: dict[str, Any] = {name: self.named(False) for name in (*NAMES, "image_token") if self.chance(0.2)}
            if self.chance(0.3):
                content["additional_special_tokens"] = [self.one_of(CONTENTS) for _ in range(2)]
            if self.chance(0.2):
                content["extra_special_tokens"] = [self.one_of(CONTENTS) for _ in range(2)]
            self.write("special_tokens_map.json", content)
        if self.chance(0.3):
            tokens = [token["content"] for token in self.tokens(3)]
            self.write("added_tokens.json", {token: next_id + i for i, token in enumerate(tokens)})

    # ---- tokenizers of a class, whose own components transformers puts in the place of the file's

    def bert(self) -> None:
        """tokenizer.json or vocab.txt, and the settings of BertTokenizer."""
        made = self.word_piece()
        made.normalizer = normalizers.BertNormalizer(
            lowercase=self.chance(0.5), strip_accents=self.one_of((None, True)))
        made.decoder = decoders.WordPiece(prefix="##")
        made.add_special_tokens(list(BERT))
        made.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]",
                                                            special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
        for key in ("do_lower_case", "tokenize_chinese_chars", "strip_accents"):
            if self.chance(0.5):
                self.config[key] = self.chance(0.5)
        self.config["tokenizer_class"] = self.one_of(("BertTokenizer", "BertTokenizerFast", "DistilBertTokenizer"))
        if self.chance(0.5):
            self.case.files["tokenizer.json"] = made.to_str()
        else:
            vocabulary = made.get_vocab(with_added_tokens=False)
            self.case.files["vocab.txt"] = "\n".join(sorted(vocabulary, key=vocabulary.__getitem__)) + "\n"

    def gpt2(self) -> None:
        """tokenizer.json, or vocab.json with merges.txt, and the settings of GPT2Tokenizer."""
        vocabulary = {**BYTES, "ab": 256, "<|endoftext|>": 257}
        made = Tokenizer(models.BPE(vocabulary, [("a", "b")]))
        made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=self.chance(0.5))
        made.decoder = decoders.ByteLevel()
        made.post_processor = processors.ByteLevel()
        made.add_special_tokens(["<|endoftext|>"])
        if self.chance(0.5):
            self.config["add_prefix_space"] = self.chance(0.5)
        self.config["tokenizer_class"] = "GPT2Tokenizer"
        if self.chance(0.5):
            self.case.files["tokenizer.json"] = made.to_str()
        else:
            self.write("vocab.json", vocabulary)
            self.case.files["merges.txt"] = "#version: 0.2\na b\n"

    def of_class(self) -> None:
        self.one_of((self.bert, self.gpt2))()
        for key in ("extra_special_tokens", "additional_special_tokens"):
            if self.chance(0.3):
                self.config[key] = [self.one_of(CONTENTS) for _ in range(self.random.randint(1, 3))]
        if self.chance(0.3):
            self.config["clean_up_tokenization_spaces"] = self.chance(0.5)
        if self.chance(0.2):
            self.config["split_special_tokens"] = True
        self.write("tokenizer_config.json", self.config)
        if self.chance(0.2):
            self.write("special_tokens_map.json", {"additional_special_tokens": [self.one_of(CONTENTS)]})

    def of_file(self) -> None:
        known = self.tokenizer_json()
        tokenizer = Tokenizer.from_str(self.case.files["tokenizer.json"])
        ids = tokenizer.get_vocab()
        next_id = max((ids[content] for content in known), default=-1) + 1
        next_id = max(next_id, tokenizer.get_vocab_size(with_added_tokens=False))
        if self.chance(0.85):
            self.tokenizer_config(next_id, known, ids)
            self.write("tokenizer_config.json", self.config)
        self.beside(next_id)

    def folder(self) -> Case:
        if self.chance(0.75):
            self.of_file()
        else:
            self.of_class()
        spelled = [*CONTENTS, *(content.upper() for content in CONTENTS), " ", "  ", "a", "b", " ", ". ", " .", " '",
                   "\u4f60"]
        for _ in range(5):
            self.case.texts.append("".join(self.one_of(spelled) for _ in range(self.random.randint(0, 9))))
        return self.case


def case_of(seed: int) -> Case:
    return Draw(seed).folder()


def fault_of(case: Case) -> str | None:
    """Says how a folder's results are wrong; nothing if they are right. "refused" is no fault."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, text in {"config.json": json.dumps(CONFIG), **case.files}.items():
            (folder / file).write_text(text, encoding="utf-8")
        try:
            wanted = transformers.AutoTokenizer.from_pretrained(folder)
        except Exception as error:  # transformers has no one kind of error
            wanted = error
        try:
            with sinter.LanguageModel(folder, "cpu", random_weights=1) as model:
                if isinstance(wanted, Exception) or _left_to_chance(wanted):
                    return None
                return _difference(case, wanted, model)
        except sinter.SinterError as error:
            if isinstance(wanted, Exception) or _other_ids(str(error), case, wanted):
                return None
            return f"refused: {error}"


def _other_ids(message: str, case: Case, wanted: Any) -> bool:
    """Whether a file gives a token another id than transformers, or two tokens have one id there."""
    if "would get the id" not in message and "stands for" not in message:
        return False
    decoder = json.loads(case.files.get("tokenizer_config.json", "{}")).get("added_tokens_decoder")
    stated = [(token["content"], int(number)) for number, token in (decoder or {}).items()]
    if decoder is None:
        stated += json.loads(case.files.get("added_tokens.json", "{}")).items()
    if "tokenizer.json" not in case.files:
        return False
    ids = Tokenizer.from_str(case.files["tokenizer.json"]).get_vocab(with_added_tokens=False)
    holes = len(ids) <= max(ids.values())
    return holes or any(wanted.convert_tokens_to_ids(content) != number for content, number in stated)


def _left_to_chance(wanted: Any) -> bool:
    """Two tokens with one normal form: the library finds one or the other, from run to run."""
    normalizer = wanted.backend_tokenizer.normalizer
    forms = [normalizer.normalize_str(token.content) if normalizer else token.content
             for token in wanted.added_tokens_decoder.values() if token.normalized]
    return len(set(forms)) < len(forms)


def _difference(case: Case, wanted: Any, model: sinter.LanguageModel) -> str | None:
    rows = []
    for text in case.texts:
        ids = wanted(text)["input_ids"]
        ours = model.encode(text)
        if ours != ids:
            names = wanted.convert_ids_to_tokens
            return f"ids of {text!r}: {ours} {names(ours)}, wanted {ids} {names(ids)}"
        rows.append(ids)
    chosen = random.Random(case.seed)
    for _ in range(3):
        rows.append([chosen.choice(range(len(wanted))) for _ in range(6)])
    for ids in rows:
        if any(wanted.convert_ids_to_tokens(token) is None for token in ids):
            continue
        text, ours = wanted.decode(ids, skip_special_tokens=True), model.decode(ids)
        if ours != text and "\0" not in text:  # which ends a text of the C interface
            return f"text of {ids} {wanted.convert_ids_to_tokens(ids)}: {ours!r}, wanted {text!r}"
    return None


def _run(seed: int) -> tuple[Case, str | None]:
    warnings.simplefilter("ignore")
    transformers.utils.logging.set_verbosity_error()
    case = case_of(seed)
    return case, fault_of(case)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--processes", type=int, default=1)
    given = parser.parse_args()
    failed = []
    with multiprocessing.get_context("spawn").Pool(given.processes) as pool:
        for case, fault in pool.imap(_run, range(given.seed, given.seed + given.count)):
            if fault is not None:
                failed.append(case.seed)
                files = "\n".join(f"--- {name}\n{text}" for name, text in case.files.items())
                print(f"{'=' * 80}\nseed {case.seed}: {fault}\n\n{files}\n", flush=True)
    if failed:
        print("failing seeds: " + " ".join(map(str, failed)))
    print(f"tokenizer folders: {given.count - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
