"""`generate` of transformers with a StaticCache through the backend: the tokens of eager."""

import unittest

from generation import LLAMA, differences, model_of
from modules import reset

import sinter


class TestGeneration(unittest.TestCase):
    def test_tokens_are_those_of_eager(self):
        reset()
        self.assertEqual(differences(model_of(*LLAMA, "cpu"), 8, 18), [])
        (graph,) = sinter.explain().graphs
        self.assertEqual(([str(op) for op in graph.eager], len(graph.entries)), ([], 1))


if __name__ == "__main__":
    unittest.main()
