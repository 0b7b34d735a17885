"""Recorded calls on a GPU beside calls that are launched alone: bits, random numbers, memory. Skipped
without one."""

import unittest
import warnings

import torch
import torch._dynamo
from beside_eager import assert_same, compiled, errors_of_threads, reset
from program_runs import run_program
from random_programs import program_of
from torch import nn
from torch.nn import functional as F

import sinter.pytorch
from sinter.pytorch.tools import report

PROGRAMS = 16  # random programs, of which half have gradients


def record(function, **options):
    return compiled(function, mode="reduce-overhead", **options)


def recordings() -> int:
    return sum(len(call.recordings) for one in report.REPORTS for call in one.recorded)


def refusals() -> set:
    return {call.reason for one in report.REPORTS for call in one.recorded} - {None}


def assert_bits(ours, wanted) -> None:
    assert_same(ours, wanted, 0)


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.q, self.k, self.v, self.out = (nn.Linear(width, width) for _ in range(4))
        self.fc1, self.fc2 = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.register_buffer("scale", torch.rand(width) + 0.5)

    def heads(self, x):
        return x.view(x.shape[0], x.shape[1], 4, -1).transpose(1, 2)

    def forward(self, x):
        y = self.norm(x)
        q, k, v = self.heads(self.q(y)), self.heads(self.k(y)), self.heads(self.v(y))
        x = x + self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(-2)) * self.scale
        return x + self.fc2(F.gelu(self.fc1(x)))


@unittest.skipUnless(torch.cuda.is_available(), "no GPU")
class TestOnCuda(unittest.TestCase):
    def setUp(self):
        reset()
        self.enterContext(torch.device("cuda"))
        self.enterContext(torch._dynamo.config.patch(recompile_limit=64, accumulated_recompile_limit=1024))

    def tearDown(self):
        sinter.pytorch.reset()

    def test_300_calls_of_changing_sizes_addresses_types_streams_and_parameters(self):
        blocks = {dtype: Block(64).requires_grad_(False).to(dtype)
                  for dtype in (torch.float32, torch.float16, torch.bfloat16)}
        ours = {dtype: record(one, dynamic=True) for dtype, one in blocks.items()}
        alone = {dtype: compiled(one, dynamic=True) for dtype, one in blocks.items()}
        streams = [torch.cuda.current_stream(), torch.cuda.Stream(), torch.cuda.Stream()]
        kept = [torch.randn(2, 8, 64) for _ in range(2)]
        for i in range(300):
            dtype, stream = list(blocks)[i % 3], streams[i // 20 % 3]
            stream.wait_stream(streams[(i // 20 - 1) % 3])
            with torch.cuda.stream(stream):
                if i % 50 == 49:
                    blocks[dtype].fc1.weight.data = torch.randn(256, 64, dtype=dtype)
                if i % 31 == 30:
                    blocks[dtype].scale.mul_(1.01)
                x = kept[i % 2] if i % 5 == 0 else torch.randn(1 + i // 9 % 5, 8 + i // 7 % 2, 64)
                x = x.to(dtype)
                assert_bits(ours[dtype](x), alone[dtype](x))
        self.assertGreater(recordings(), 12)
        self.assertEqual(refusals(), set())

    def test_training_with_dropout_has_the_random_numbers_of_eager(self):
        def run(wrap):
            torch.manual_seed(3)
            model = nn.Sequential(nn.Linear(64, 128), nn.Dropout(0.3), nn.GELU(), nn.LayerNorm(128),
                                  nn.Dropout(0.5), nn.Linear(128, 16))
            optimizer = torch.optim.AdamW(model.parameters(), lr=torch.tensor(1e-3), capturable=True)
            function, step = wrap(model), wrap(optimizer.step)
            losses = []
            for i in range(12):
                rows = 32 + i % 2
                loss = F.cross_entropy(function(torch.randn(rows, 64)), torch.randint(0, 16, (rows,)))
                loss.backward()
                step()
                optimizer.zero_grad(set_to_none=i % 3 == 0)
                losses.append(loss.detach())
            return losses, [*model.parameters()]

        eager = run(lambda function: function)
        alone = run(compiled)
        reset()
        ours = run(record)
        assert_bits(ours, alone)
        assert_same(ours[0], eager[0], 1e-3)
        self.assertGreater(recordings(), 4)
        self.assertEqual(refusals(), set())

    def test_results_that_are_kept_stay_as_they_are(self):
        module = Block(64).requires_grad_(False)
        ours = record(module)
        inputs = [torch.randn(2, 8, 64) for _ in range(40)]
        kept = [ours(x) for x in inputs]
        alone = compiled(module)
        for x, result in zip(inputs, kept):
            assert_bits(result, alone(x))
        self.assertEqual(recordings(), 1)

    def test_memory_does_not_grow_over_2000_calls(self):
        ours = record(Block(64).requires_grad_(False), dynamic=True)
        used = []
        for i in range(2000):
            ours(torch.randn(2 + i % 4, 8, 64))
            if i in (100, 1999):
                torch.cuda.synchronize()
                used.append((torch.cuda.memory_allocated(), torch.cuda.memory_reserved()))
        self.assertEqual(*used)
        self.assertEqual(recordings(), 4)

    def test_reset_returns_the_memory(self):
        module, x = Block(64).requires_grad_(False), torch.randn(64, 128, 64)
        ours = record(module)
        for _ in range(2):
            ours(x)  # the first moves parameters
        held = torch.cuda.memory_allocated()
        (call,) = [call for one in report.REPORTS for call in one.recorded]
        self.assertEqual(len(call.recordings), 1)
        self.assertRegex(str(sinter.pytorch.explain(ours)),
                         r"recorded: 1 recording, [\d,]+ bytes of static buffers, [\d,]{7,} bytes of memory")
        call.reset()
        self.assertLess(torch.cuda.memory_allocated(), held - x.nbytes)
        for _ in range(3):
            assert_same(ours(x), module(x), 1e-3)
        self.assertEqual(len(call.recordings), 1)

    def test_a_call_in_a_capture_of_the_users_is_a_part_of_it(self):
        module, x = Block(64).requires_grad_(False), torch.randn(2, 8, 64)
        ours, alone, stream = record(module), compiled(module), torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                ours(x)
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            result = ours(x)
        for _ in range(5):
            x.copy_(torch.randn(2, 8, 64))
            graph.replay()
            assert_bits(result, alone(x))
            assert_bits(ours(x), alone(x))
        self.assertEqual(recordings(), 1)

    def test_a_training_step_in_a_capture_of_the_users(self):
        batches = [(torch.randn(32, 64), torch.randint(0, 16, (32,))) for _ in range(6)]

        def run(wrap, is_captured: bool):
            torch.manual_seed(3)
            model = nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.LayerNorm(128), nn.Linear(128, 16))
            optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True, capturable=True)
            function, stream, losses = wrap(model), torch.cuda.Stream(), []
            x, labels = (one.clone() for one in batches[0])

            def step():
                loss = F.cross_entropy(function(x), labels)
                loss.backward()
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)
                return loss.detach()

            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                for _ in range(3):
                    step()
            torch.cuda.current_stream().wait_stream(stream)
            if is_captured:
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph, stream=stream):
                    loss = step()
            for given, wanted in batches:
                x.copy_(given)
                labels.copy_(wanted)
                if is_captured:
                    graph.replay()
                else:
                    loss = step()
                losses.append(loss.clone())
            return losses, [*model.parameters()]

        wanted = run(compiled, False)
        for wrap in (compiled, record):
            reset()
            assert_bits(run(wrap, True), wanted)

    def test_threads_in_streams_of_their_own(self):
        module = Block(64).requires_grad_(False)
        ours, alone = record(module, dynamic=True), compiled(module, dynamic=True)
        for batch in range(2, 6):
            for function in (ours, ours, alone):
                function(torch.randn(batch, 8, 64))
        torch.cuda.synchronize()

        def work():
            # While a thread records, torch draws no number of the default generator in others.
            generator = torch.Generator("cuda")
            with torch.device("cuda"), torch.cuda.stream(torch.cuda.Stream()):
                for i in range(100):
                    x = torch.randn(2 + i % 4, 8, 64, generator=generator)
                    assert_bits(ours(x), alone(x))

        self.assertEqual((errors_of_threads(work), recordings()), ([], 4))

    def test_a_number_in_host_memory_that_changes_is_read_anew(self):
        ours = record(lambda x, scale: x * scale + 1)
        for scale in (0.5, 0.7, 0.9, 1.1, 1.3):
            assert_same(ours(x := torch.randn(8), scale), x * scale + 1)
        self.assertEqual((recordings(), refusals()), (1, set()))

    def test_explain_says_why_a_graph_is_not_recorded(self):
        ours = compiled(lambda x: x * 2, options={"graphs": True, "check": True})
        ours(torch.randn(8))
        self.assertEqual(refusals(), {"the option check waits in every call"})

    def test_pieces_between_ops_in_eager_are_recorded(self):
        def function(x):
            return torch.tanh(x * 2).cummax(-1)[0].softmax(-1) + 1

        ours, alone = record(function), compiled(function)
        for _ in range(6):
            assert_bits(ours(x := torch.randn(8, 64)), alone(x))
        self.assertEqual((recordings(), refusals()), (2, set()))

    def test_bert(self):
        transformers = self.transformers()
        config = transformers.BertConfig(hidden_size=64, num_hidden_layers=2, num_attention_heads=4,
                                         intermediate_size=128, vocab_size=512)
        model = transformers.BertModel(config).eval()
        ours, alone = record(model), compiled(model)
        for i in range(8):
            ids, mask = torch.randint(1, 512, (2, 16)), torch.ones(2, 16).long()
            mask[1, 10 + i % 3:] = 0
            with torch.no_grad():
                assert_bits(*(one(input_ids=ids, attention_mask=mask).last_hidden_state
                              for one in (ours, alone)))
        self.assertEqual((recordings(), refusals()), (1, set()))
        for _ in range(4):  # with gradients
            ids, gradients = torch.randint(1, 512, (2, 16)), []
            for one in (ours, alone):
                model.zero_grad()
                one(input_ids=ids).last_hidden_state.square().mean().backward()
                gradients.append([parameter.grad for parameter in model.parameters()])
            assert_bits(*gradients)
        self.assertEqual((recordings(), refusals()), (3, set()))

    def transformers(self):
        try:
            import transformers
        except ImportError:
            self.skipTest("transformers is not installed")
        return transformers


@unittest.skipUnless(torch.cuda.is_available(), "no GPU")
class TestRandomPrograms(unittest.TestCase):
    def test_random_programs(self):
        reset()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for seed in range(PROGRAMS):
                outcome = run_program(program_of(40_000 + seed, dynamic=seed % 4 == 3), "graphs", "cuda")
                self.assertFalse(outcome.is_failure, (seed, outcome))


if __name__ == "__main__":
    unittest.main()
