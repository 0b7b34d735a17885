"""Which calls of the option `graphs` are recorded, replayed and launched alone, with a recorder of the CPU."""

import gc
import pathlib
import sys
import unittest
import weakref
from collections import Counter
from unittest import mock

import torch
from beside_eager import assert_same, compiled, errors_of_threads, reset
from fake_recorder import on_stream, recorded_on_cpu
from program_runs import run_program
from random_programs import program_of
from torch import nn
from torch.nn import functional as F

import sinter.pytorch
from sinter.pytorch import from_torch
from sinter.pytorch.runtime import recording
from sinter.pytorch.tools import report
from sinter.pytorch.backend import read_options
from sinter.pytorch.runtime.lending import Lease
from sinter.pytorch.runtime.lent_memory import BLOCK, SpareMemory, apart, blocks

randn = torch.randn


def calls() -> list[recording.RecordedCall]:
    return [call for one in report.REPORTS for call in one.recorded]


def recorder():
    """The recorder of the only entry."""
    (call,) = calls()
    return call._recorder


def recordings() -> int:
    return sum(len(call.recordings) for call in calls())


def record(function, **options):
    return compiled(function, options={"graphs": True}, **options)


def block() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16)).requires_grad_(False)


class TestFromTorch(unittest.TestCase):
    """Runs of `from_torch(...).compile(graphs=True)`."""

    def setUp(self):
        reset()
        self.block, self.x = block(), randn(3, 8)
        size = torch.export.Dim("N", max=32)
        self.model = from_torch(self.block, (self.x,), dynamic_shapes=({0: size},))

    def module(self):
        self.enterContext(recorded_on_cpu())
        return self.model.compile(graphs=True)

    def test_the_second_run_of_a_size_is_recorded_and_the_bits_are_those_of_others(self):
        module, plain = self.module(), self.model.compile()
        kept = []
        for size, held in ((3, 0), (3, 1), (5, 1), (3, 1), (5, 2), (5, 2)):
            x = randn(size, 8)
            result = module.run(input=x)
            kept.append((result, plain.run(input=x)))
            self.assertIn(f"recorded: {held} recording", str(module))
        for result, wanted in kept:
            self.assertTrue(torch.equal(result, wanted))
        (call,) = module._calls.values()
        self.assertEqual(call._recorder.replays, 4)

    def test_reset_drops_the_recordings(self):
        module = self.module()
        for drop in (module.reset, sinter.pytorch.reset):
            for _ in range(2):
                module.run(input=self.x)
            self.assertIn("1 recording,", str(module))
            drop()
            self.assertIn("0 recordings", str(module))
        assert_same(module.run(input=self.x), self.block(self.x))

    def test_several_results_have_their_names(self):
        class Two(nn.Module):
            def forward(self, a, *, b):
                return {"sum": a + b, "difference": a - b}
        module = from_torch(Two(), (self.x,), {"b": self.x}).compile(graphs=True)
        results = module.run({"a": self.x, "b": self.x})
        self.assertEqual([one.sum().item() for one in results.values()], [2 * self.x.sum().item(), 0])
        self.assertEqual(list(results), list(module.compiled.entry().outputs))

    def test_a_number_that_changes_is_an_input_of_one_recording(self):
        class Scaled(nn.Module):
            def forward(self, x, v):
                return torch.add(x, x.sin(), alpha=v) * (v / 4)
        scaled, eager = Scaled(), Scaled()
        self.enterContext(recorded_on_cpu())
        module = from_torch(scaled, (self.x, 3), dynamic_shapes=({}, torch.export.Dim.DYNAMIC)).compile(graphs=True)
        backend = record(scaled, dynamic=True)
        for v in (3, 5, -2, 2**31, 0):
            assert_same([module.run(x=self.x, v=torch.tensor(v)), backend(self.x, v)], [eager(self.x, v)] * 2)
        self.assertIn("recorded: 1 recording", str(module))
        self.assertEqual(recordings(), 1)

    def test_a_cpu_records_nothing(self):
        module = self.model.compile(graphs=True)
        self.assertEqual(str(module), "nothing has run")
        assert_same(module.run(input=self.x), self.block(self.x))
        self.assertEqual(str(module), "cpu: not recorded: it runs on the CPU")

    def test_other_inputs_are_errors(self):
        module = self.module()
        for given, message in (({"x": self.x}, 'no input is called "x"'), ({}, "no tensor is given"),
                               ({"input": 3}, "a int is given"), ({"input": self.x.double()}, "float64"),
                               ({"input": self.x[0]}, r"\[8\] on cpu is given"),
                               ({"input": randn(3, 9)}, r"\[3, 9\] on cpu is given"),
                               ({"input": randn(33, 8)}, "symbol N is 33, 1 to 32 is wanted")):
            with self.subTest(message), self.assertRaisesRegex(sinter.SinterError, message):
                module.run(given)


class TestModes(unittest.TestCase):
    def setUp(self):
        reset()

    def test_modes_that_torch_records_are_recorded(self):
        for mode, count in (("default", 0), ("max-autotune-no-cudagraphs", 0), ("reduce-overhead", 1),
                            ("max-autotune", 1)):
            reset()
            compiled(lambda x: x + 1, mode=mode)(randn(3))
            self.assertEqual(len(calls()), count, mode)

    def test_max_autotune_tunes(self):
        for mode, tunes in (("default", False), ("reduce-overhead", False), ("max-autotune", True),
                            ("max-autotune-no-cudagraphs", True)):
            self.assertEqual(read_options(None, mode)["tune"], tunes, mode)
        with self.assertRaisesRegex(Exception, 'option tune: "yes" is neither True nor False'):
            compiled(lambda x: x + 1, options={"tune": "yes"})(randn(3))

    def test_a_cpu_records_nothing_and_explain_says_so(self):
        function = record(lambda x: x + 1)
        for _ in range(3):
            assert_same(function(x := randn(3)), x + 1)
        self.assertIn("\n  inference: not recorded: it runs on the CPU",
                      str(sinter.pytorch.explain(function)))


class TestRecordings(unittest.TestCase):
    def setUp(self):
        reset()
        self.enterContext(recorded_on_cpu())

    def test_the_second_call_is_recorded_and_later_ones_are_replayed(self):
        module = block()
        ours = record(module)
        alone = compiled(module)
        for i in range(5):
            x = randn(4, 8)
            self.assertTrue(torch.equal(ours(x), alone(x)))
            self.assertEqual(recordings(), min(i, 1))
        self.assertEqual(calls()[0]._recorder.replays, 4)

    def test_sizes_have_recordings_of_their_own_up_to_16(self):
        module = block()
        ours = record(module, dynamic=True)
        for _ in range(3):
            for batch in range(2, 20):
                assert_same(ours(x := randn(batch, 8)), module(x))
        self.assertEqual(recordings(), 16)
        self.assertRegex(str(sinter.pytorch.explain(ours)),
                         r"recorded: 16 recordings, [\d,]+ bytes of static buffers, 4,096 bytes of memory "
                         r"with them; not recorded: more than 16 sizes")

    def test_a_size_that_comes_once_takes_no_place(self):
        ours = record(lambda x: x.softmax(-1), dynamic=True)
        for batch in range(2, 40):
            ours(randn(batch, 8))
        self.assertEqual(recordings(), 0)

    def test_results_are_no_memory_of_the_recording(self):
        ours = record(lambda x: (x * 2, x.sum(0)))
        inputs = [randn(4, 8) for _ in range(6)]
        for x, kept in zip(inputs, [ours(x) for x in inputs]):
            assert_same(kept, (x * 2, x.sum(0)))

    def test_an_input_at_its_address_is_read_there_and_one_that_moves_is_copied(self):
        x, y = randn(4, 8), randn(4, 8)
        ours = record(lambda x, y: x * 2 + y)
        for _ in range(4):  # in place
            x.add_(1)
            assert_same(ours(x, y), x * 2 + y)
        (recording,) = calls()[0].recordings
        self.assertEqual(recording.moving, [])
        for _ in range(3):
            y = y + 1
            assert_same(ours(x, y), x * 2 + y)
        (recording,) = calls()[0].recordings
        self.assertEqual([len(buffers) for _, buffers in recording.moving], [1])
        self.assertEqual(sum(place.recorded for place in calls()[0]._places.values()), 2)

    def test_inputs_that_move_one_after_the_other_are_recorded_three_times_at_most(self):
        inputs = [randn(4) for _ in range(6)]
        ours = record(lambda *x: sum(x) * 2)
        ours(*inputs)
        for i in range(6):
            ours(*inputs)
            inputs[i] = randn(4)
            assert_same(ours(*inputs), sum(inputs) * 2)
        self.assertEqual([place.recorded for place in calls()[0]._places.values()], [3])

    def test_a_parameter_that_moves_is_recorded_anew_and_never_copied(self):
        module = block()
        module.register_buffer("scale", randn(16))
        ours = record(Scaled(module))
        wanted = Scaled(module)
        weights = [nn.Parameter(randn(16, 8), False) for _ in range(2)]
        scales = [randn(16) for _ in range(2)]
        for i in range(12):
            module[0].weight.data = weights[i // 3 % 2].data
            module.scale = scales[i // 6 % 2]
            with torch.no_grad():
                module[0].weight.mul_(1.5)
            assert_same(ours(x := randn(4, 8)), wanted(x))
        self.assertEqual(recordings(), 4)
        for one in calls()[0].recordings:
            self.assertEqual([len(buffers) for _, buffers in one.moving], [1])

    def test_addresses_of_parameters_that_never_return_are_not_recorded(self):
        module, kept = nn.Linear(8, 8).requires_grad_(False), []
        ours = record(module)
        for _ in range(20):
            kept.append(module.weight.data)
            module.weight.data = randn(8, 8)
            assert_same(ours(x := randn(4, 8)), module(x))
        self.assertEqual(recordings(), 0)

    def test_addresses_that_are_not_used_any_more_give_their_place_to_others(self):
        module = nn.Linear(8, 8).requires_grad_(False)
        ours = record(module)
        weights = [randn(8, 8) for _ in range(20)]
        for i, weight in enumerate(weights):
            module.weight.data = weight
            for _ in range(20):
                assert_same(ours(x := randn(4, 8)), module(x))
            self.assertEqual(recordings(), min(i + 1, recording.MAX_PLACES))
        places = calls()[0]._places.values()
        self.assertEqual([place.recording is not None for place in places], 4 * [False] + 16 * [True])
        counts = []
        for _ in range(4):  # in turns, they are more than there is room for
            for weight in weights:
                module.weight.data = weight
                assert_same(ours(x := randn(4, 8)), module(x))
            counts.append(sum(place.recorded for place in places))
        self.assertEqual(counts[1:], 3 * counts[:1])
        self.assertIn("more than 16 sets of addresses", str(sinter.pytorch.explain(ours)))

    def test_layouts_types_and_bits(self):
        ours = record(lambda x, i, z: (x.mT * 2, i + 1, torch.view_as_real(z * 2)))
        for _ in range(4):
            x = torch._neg_view(randn(4, 8)).t().unsqueeze(0).expand(3, 8, 4)
            i, z = torch.arange(6).view(2, 3)[:, 1:], randn(4, dtype=torch.complex64).conj()
            assert_same(ours(x, i, z), (x.mT * 2, i + 1, torch.view_as_real(z * 2)))
        self.assertEqual(recordings(), 1)

    def test_an_input_in_inference_mode_and_outside(self):
        ours = record(lambda x: x * 2)
        for i in range(8):
            with torch.inference_mode(i % 2 == 0):
                assert_same(ours(x := randn(4)), x * 2)

    def test_a_recording_that_fails_leaves_the_calls_alone(self):
        ours = record(lambda x: x * 2)
        ours(x := randn(4))
        recorder().record = fail
        for _ in range(3):
            assert_same(ours(x := randn(4)), x * 2)
        self.assertIn("not recorded: recording failed: no room", str(sinter.pytorch.explain(ours)))


    def test_argument_that_a_call_changes_is_written_in_the_recording(self):
        def step(cache, count, x):
            cache.index_copy_(1, count.reshape(1) % 4, x.unsqueeze(1))
            count += 1
            return cache.sum(1) + x

        results = []
        for function in (step, record(step)):
            cache, count = torch.zeros(2, 4, 3), torch.zeros((), dtype=torch.int64)
            kept = [function(cache, count, torch.full((2, 3), i + 1.0)) for i in range(6)]
            results.append([*kept, cache, count])
        for eager, own in zip(*results):
            self.assertTrue(torch.equal(eager, own))
        (call,) = calls()
        (recording_,) = call.recordings
        self.assertEqual(len(recording_.results), 1)  # the cache and the count are no copies

    def test_argument_that_others_read_is_written_behind_the_call(self):
        def step(a, b):
            old = a.clone()
            a.copy_(a * 2 + b)
            b.copy_(old)
            return a + b

        results = []
        for function in (step, record(step)):
            a, b = torch.ones(5), torch.full((5,), 3.0)
            results.append([*[function(a, b) for _ in range(5)], a, b])
        for eager, own in zip(*results):
            self.assertTrue(torch.equal(eager, own))


class Scaled(nn.Module):
    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner(x) * self.inner.scale


def fail(*arguments):
    raise RuntimeError("no room\nat all")


class TestStreamsAndThreads(unittest.TestCase):
    def setUp(self):
        reset()
        self.enterContext(recorded_on_cpu())

    def test_the_first_call_in_each_stream_is_launched_alone(self):
        ours = record(lambda x: x * 2)
        for stream, replays in ((1, 0), (1, 1), (1, 2), (2, 2), (2, 3), (1, 4), (1, 5)):
            with on_stream(stream):
                assert_same(ours(x := randn(4)), x * 2)
            self.assertEqual(recorder().replays, replays)
        self.assertEqual((recordings(), recorder().followed), (1, 3))

    def test_launches_in_the_default_stream_share_memory_with_recordings(self):
        ours = record(lambda x: x * 2, dynamic=True)
        for stream, launches in ((0, 1), (0, 1), (1, 1), (1, 1), (0, 1)):
            with on_stream(stream):
                assert_same(ours(x := randn(4)), x * 2)
            self.assertEqual(recorder().launches, launches)
        ours(randn(5))
        self.assertEqual((recorder().launches, recorder().replays, recorder().followed), (2, 3, 3))

    def test_a_call_in_a_stream_that_is_captured_is_launched_alone(self):
        ours = record(lambda x: x * 2)
        for stream in (1, None, 1, None, 1):
            with on_stream(stream):
                assert_same(ours(x := randn(4)), x * 2)
        self.assertEqual(recorder().replays, 2)

    def test_threads_share_recordings(self):
        module = block()
        ours = record(module, dynamic=True)
        ours(randn(4, 8))

        def work():
            for i in range(100):
                assert_same(ours(x := randn(2 + i % 4, 8)), module(x))

        self.assertEqual((errors_of_threads(work), recordings()), ([], 4))

    def test_reset_frees_what_recordings_hold_at_once(self):
        ours = record(lambda x: x * 2)
        for _ in range(3):
            ours(randn(4))
        (call,) = calls()
        (session,) = call._sessions._by_stream.values()
        held = [weakref.ref(one) for one in (session, *call._sessions._calls.values(), *call.recordings)]
        del session
        gc.disable()  # which would free cycles
        self.addCleanup(gc.enable)
        call.reset()
        self.assertEqual([one() for one in held], [None] * 3)

    def test_reset_drops_recordings_and_calls_are_recorded_anew(self):
        ours = record(lambda x: x * 2)
        for i, drop in enumerate((sinter.pytorch.reset, torch._dynamo.reset)):
            for _ in range(3):
                assert_same(ours(x := randn(4)), x * 2)
            (call,) = [one for one in recording._ALL if one.recordings]
            drop()
            self.assertEqual((call.recordings, call._recorder.released), ([], i + 1))


class TestTraining(unittest.TestCase):
    def setUp(self):
        reset()
        self.enterContext(recorded_on_cpu())

    def test_a_step_with_dropout_and_an_optimizer_is_that_of_eager(self):
        def run(wrap):
            torch.manual_seed(3)
            model = nn.Sequential(nn.Linear(8, 16), nn.Dropout(0.3), nn.GELU(), nn.BatchNorm1d(16),
                                  nn.Linear(16, 4))
            optimizer = torch.optim.AdamW(model.parameters(), lr=torch.tensor(1e-2), capturable=False)
            function, step = wrap(model), wrap(optimizer.step)
            losses = []
            for i in range(8):
                loss = F.cross_entropy(function(randn(6 + i % 2, 8)), torch.randint(0, 4, (6 + i % 2,)))
                loss.backward()
                step()
                optimizer.zero_grad(set_to_none=i % 3 == 0)
                losses.append(loss.detach())
            return losses, [*model.parameters(), *model.buffers()]

        assert_same(run(record), run(lambda function: function), 1e-4)
        self.assertGreater(recordings(), 3)

    def test_a_graph_that_runs_backward_twice(self):
        module = nn.Linear(4, 4)
        ours = record(module)
        for _ in range(4):
            module.zero_grad()
            x = randn(2, 4)
            loss = ours(x).square().sum()
            loss.backward(retain_graph=True)
            loss.backward()
            ours(randn(2, 4))
            assert_same(module.weight.grad, 2 * torch.autograd.grad(
                module(x).square().sum(), module.weight)[0], 1e-5)
        self.assertEqual(recordings(), 2)


class TestLentResults(unittest.TestCase):
    """A recording lends to the backward pass what the forward pass keeps for it."""

    def setUp(self):
        reset()
        self.enterContext(recorded_on_cpu())
        torch.manual_seed(3)
        self.module = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 4))
        self.ours = record(self.module)

    def gradients(self, loss) -> list[torch.Tensor]:
        return [*torch.autograd.grad(loss, [*self.module.parameters()])]

    def step(self, x):
        return self.ours(x).square().sum(), self.module(x).square().sum()

    def check(self, ours, eager):
        for own, other in zip(self.gradients(ours), self.gradients(eager)):
            assert_same(own, other, 1e-5)

    def test_steps_copy_nothing_that_is_kept(self):
        for _ in range(5):
            self.check(*self.step(randn(3, 8)))
        forward, backward = calls()
        self.assertEqual((len(forward.recordings), len(backward.recordings)), (1, 1))
        lent = forward.recordings[0].lease._results
        self.assertGreaterEqual(len(lent), 2)
        moving = sum(len(buffers) for _, buffers in backward.recordings[0].moving)
        self.assertLessEqual(moving, 2)  # the input of the module, and the gradient of its result
        self.assertGreaterEqual(forward._recorder.replays, 4)
        self.assertGreaterEqual(backward._recorder.replays, 4)

    def test_a_forward_pass_ahead_of_the_last_backward_pass_is_launched_alone(self):
        for _ in range(3):
            self.check(*self.step(randn(3, 8)))
        forward, _ = calls()
        replays = forward._recorder.replays
        steps = [self.step(randn(3, 8)) for _ in range(3)]
        self.assertEqual(forward._recorder.replays, replays + 1)
        for ours, eager in reversed(steps):
            self.check(ours, eager)
        del steps, ours, eager
        self.check(*self.step(randn(3, 8)))
        self.assertEqual(forward._recorder.replays, replays + 2)

    def test_recordings_that_are_dropped_between_the_passes(self):
        for _ in range(3):
            self.check(*self.step(randn(3, 8)))
        ours, eager = self.step(randn(3, 8))
        recording.reset()
        gc.collect()
        self.check(ours, eager)
        for _ in range(3):
            self.check(*self.step(randn(3, 8)))


class TestGradients(unittest.TestCase):
    """Gradients are lent, too, until a step finds the gradients of the step before alive."""

    def setUp(self):
        reset()
        self.enterContext(recorded_on_cpu())
        torch.manual_seed(4)
        make = lambda: nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4))
        self.own, self.eager = make(), make()
        self.eager.load_state_dict(self.own.state_dict())
        self.ours = record(self.own)

    def backward(self):
        x = randn(3, 8)
        for model in (self.ours, self.eager):
            model(x).square().sum().backward()

    def check(self, clear: bool):
        for own, other in zip(self.own.parameters(), self.eager.parameters()):
            assert_same(own.grad, other.grad, 1e-5)
        for model in (self.own, self.eager) if clear else ():
            model.zero_grad(set_to_none=True)

    def test_steps_that_drop_gradients_copy_none(self):
        places = []
        for _ in range(5):
            self.backward()
            places.append([one.grad.data_ptr() for one in self.own.parameters()])
            self.check(clear=True)
        _, backward = calls()
        self.assertEqual(places[-1], places[-2])
        self.assertEqual(backward.recordings[0]._copied, [])
        self.assertGreaterEqual(backward._recorder.replays, 3)

    def test_gradients_that_are_summed_over_passes(self):
        for number in range(12):
            self.backward()
            self.check(clear=number % 3 == 2)
        _, backward = calls()
        self.assertEqual(backward.recordings[0].lease._results, [])  # copied
        self.assertGreaterEqual(backward._recorder.replays, 8)

    def test_gradients_that_outlive_their_recording(self):
        kept = []
        for _ in range(4):
            self.backward()
            kept.append([(own.grad, other.grad.clone()) for own, other in
                         zip(self.own.parameters(), self.eager.parameters())])
            self.check(clear=True)
        recording.reset()
        gc.collect()
        self.backward()
        for pairs in kept:
            for own, other in pairs:
                assert_same(own, other, 1e-5)


class TestGradientsInLentMemory(unittest.TestCase):
    """Gradients lie in what the forward pass has lent, until one is alive when that is to be written again."""

    def setUp(self):
        reset()
        self.enterContext(recorded_on_cpu())
        self.enterContext(mock.patch.object(recording.RecordedCall, "reuse_arguments",
                                            lambda call: setattr(call, "_reuses", True)))
        torch.manual_seed(6)
        make = lambda: nn.Sequential(nn.Linear(8, 64), nn.GELU(), nn.Linear(64, 4))
        self.own, self.eager = make(), make()
        self.eager.load_state_dict(self.own.state_dict())
        self.ours = record(self.own)

    def losses(self):
        x = randn(24, 8)
        return [model(x).square().sum() for model in (self.ours, self.eager)]

    def check(self):
        for own, other in zip(self.own.parameters(), self.eager.parameters()):
            assert_same(own.grad, other.grad, 1e-5)

    def drop(self):
        for model in (self.own, self.eager):
            model.zero_grad(set_to_none=True)

    def step(self, backward=torch.Tensor.backward):
        for loss in self.losses():
            backward(loss)
        self.check()

    def hosts(self) -> list:
        (one,) = calls()[1].recordings
        return one.lease.hosts

    def test_steps_that_drop_gradients_first(self):
        for _ in range(6):
            self.step()
            self.drop()
        forward, backward = calls()
        self.assertEqual(self.hosts(), [forward.recordings[0].lease])
        self.assertGreaterEqual(min(forward._recorder.replays, backward._recorder.replays), 4)

    def test_steps_that_drop_gradients_behind_the_forward_pass(self):
        for number in range(8):
            losses = self.losses()
            self.drop()
            for loss in losses:
                loss.backward()
            self.check()
        forward, backward = calls()
        self.assertEqual(self.hosts(), [])
        self.assertGreaterEqual(min(forward._recorder.replays, backward._recorder.replays), 3)

    @torch._functorch.config.patch(donated_buffer=False)
    def test_a_graph_that_is_kept_is_not_overwritten(self):
        for _ in range(3):
            self.step()
            self.drop()
        replays = calls()[1]._recorder.replays
        for loss in self.losses():
            loss.backward(retain_graph=True)
            loss.backward()
        self.check()
        self.assertEqual(calls()[1]._recorder.replays, replays + 1)

    @torch._functorch.config.patch(donated_buffer=False)
    def test_a_kept_graph_whose_gradients_are_summed(self):
        for _ in range(5):
            for loss in self.losses():
                loss.backward(retain_graph=True)
                loss.backward()
            self.check()
            self.drop()

    def test_gradients_that_outlive_the_recordings(self):
        for _ in range(3):
            self.step()
            self.drop()
        self.step()
        kept = [(own.grad, other.grad) for own, other in zip(self.own.parameters(), self.eager.parameters())]
        recording.reset()
        gc.collect()
        self.drop()
        for _ in range(4):
            self.step()
            self.drop()
        for own, other in kept:
            assert_same(own, other, 1e-5)


class TestGradientsOfSeveralReaders(unittest.TestCase):
    """One gradient that autograd gives to two backward passes."""

    def setUp(self):
        reset()
        self.enterContext(recorded_on_cpu())
        self.enterContext(mock.patch.object(recording.RecordedCall, "reuse_arguments",
                                            lambda call: setattr(call, "_reuses", True)))

    def test_a_sum_of_compiled_blocks(self):
        torch.manual_seed(8)
        make = lambda middle: nn.Sequential(nn.Linear(16, 16), middle, nn.Linear(16, 16))
        blocks = nn.ModuleList(map(make, (nn.GELU(), nn.Tanh(), nn.SiLU())))
        ours = [record(block) for block in blocks]
        for _ in range(8):
            x = randn(24, 16)
            found = []
            for f, g, h in (ours, blocks):
                given = x.clone().requires_grad_()
                h(given + f(given) + g(given)).square().sum().backward()
                found.append([given.grad, *(one.grad for one in blocks.parameters())])
                blocks.zero_grad(set_to_none=True)
            for own, other in zip(*found):
                assert_same(own, other, 1e-5)


class TestSpareMemory(unittest.TestCase):
    """Results in the memory of arguments that have been read."""

    def memory(self, sizes: list[int]):
        """Spare blocks, one behind the other, of these sizes; a gap of a block behind each."""
        whole = torch.zeros(sum(sizes) + BLOCK * (len(sizes) + 2), dtype=torch.uint8)
        begin = -whole.data_ptr() % BLOCK
        spare, places = SpareMemory(), []
        for size in sizes:
            places.append(whole.data_ptr() + begin)
            spare.add(whole[begin:begin + size])
            begin += blocks(size) + BLOCK
        return whole, spare, places

    def take(self, spare: SpareMemory, count: int):
        return spare.take([count], [1], torch.uint8, torch.device("cpu"))

    def test_the_smallest_range_that_is_large_enough(self):
        whole, spare, places = self.memory([4 * BLOCK, 2 * BLOCK, 3 * BLOCK])
        first, second = self.take(spare, 2 * BLOCK - 7), self.take(spare, 2 * BLOCK)
        self.assertEqual([first.data_ptr(), second.data_ptr()], [places[1], places[2]])
        self.assertEqual(self.take(spare, BLOCK).data_ptr(), places[2] + 2 * BLOCK)
        self.assertIsNone(self.take(spare, 4 * BLOCK + 1))
        first.fill_(1)
        self.assertEqual(whole.sum(), 2 * BLOCK - 7)

    def test_neighbours_are_one_range(self):
        whole = torch.zeros(8 * BLOCK, dtype=torch.uint8)
        begin = -whole.data_ptr() % BLOCK
        parts = [whole[begin + i * BLOCK:begin + (i + 1) * BLOCK] for i in range(4)]
        spare = SpareMemory()
        for i in (0, 3, 1, 2):
            spare.add(parts[i])
        self.assertEqual(self.take(spare, 4 * BLOCK).data_ptr(), parts[0].data_ptr())

    def test_shared_memory_is_not_spare(self):
        whole = torch.zeros(16 * BLOCK, dtype=torch.uint8)
        begin = -whole.data_ptr() % BLOCK
        at = lambda first, last: whole[begin + first * BLOCK:begin + last * BLOCK]
        tensors = [at(0, 6), at(1, 2), at(3, 4), at(6, 7), at(7, 9), at(8, 10), whole[begin + 10 * BLOCK + 8:][:8]]
        self.assertEqual(apart(tensors, range(7)), {3})


class TestWorkOfCalls(unittest.TestCase):
    """The host's work in a replayed step, the replays apart, does not grow with a model."""

    def setUp(self):
        self.enterContext(recorded_on_cpu())

    def step_of(self, layers: int):
        """A training step whose replays do nothing."""
        reset()
        model = nn.Sequential(*[nn.Sequential(nn.Linear(8, 8), nn.GELU()) for _ in range(layers)])
        ours, x = record(model), randn(3, 8)

        def step():
            ours(x).sum().backward()
            model.zero_grad(set_to_none=True)

        for _ in range(4):
            step()
        results = 0
        for call in calls():
            (one,) = call.recordings
            one.replay, results = lambda: None, results + len(one.results)
        self.assertGreater(results, 3 * layers)
        step()
        return step

    def test_own_python(self):
        def called(step) -> int:
            place, count = str(pathlib.Path(sinter.pytorch.__file__).parent), 0

            def see(frame, event, _):
                nonlocal count
                count += event in ("call", "c_call") and frame.f_code.co_filename.startswith(place)

            sys.setprofile(see)
            try:
                step()
            finally:
                sys.setprofile(None)
            return count

        few, many = called(self.step_of(2)), called(self.step_of(12))
        self.assertGreater(few, 20)
        self.assertEqual(few, many)

    def test_operations_of_torch(self):
        def operations(step) -> Counter:
            with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as trace:
                step()
            return Counter(event.name for event in trace.events() if event.name.startswith("aten::"))

        few, many = operations(self.step_of(2)), operations(self.step_of(12))
        self.assertGreater(few.total(), 5)
        # autograd detaches the gradient of each parameter
        self.assertEqual(many - few, Counter({"aten::detach": 20}))


class TestLentTensors(unittest.TestCase):
    """The tensors of a lease."""

    def setUp(self):
        self.lease = Lease([torch.arange(6.0).view(2, 3).t(), torch.arange(4)])
        self.addCleanup(self.lease.end)

    def test_they_are_new_tensors_in_the_results_memory(self):
        first, second = self.lease.lend()
        self.assertEqual((first.tolist(), first.stride(), second.tolist()),
                         ([[0, 3], [1, 4], [2, 5]], (1, 3), [0, 1, 2, 3]))
        first.mul_(2).t_().requires_grad_()
        again, _ = self.lease.lend()
        self.assertEqual((again.tolist(), again.requires_grad, again._version),
                         ([[0, 6], [2, 8], [4, 10]], False, 0))

    def test_it_is_out_while_anything_of_a_call_is_alive(self):
        make = [lambda x: x, torch.Tensor.detach, lambda x: x[:1], torch.Tensor.untyped_storage,
                lambda x: (x, x.untyped_storage())[0]]
        for number, keep in enumerate([*make, *make]):
            kept = keep(self.lease.lend()[number % 2])
            self.assertTrue(self.lease.is_out(), number)
            del kept
            self.assertFalse(self.lease.is_out(), number)

    def test_their_memory_is_not_resized(self):
        with self.assertRaisesRegex(RuntimeError, "not resizable"):
            self.lease.lend()[0].untyped_storage().resize_(0)

    def test_in_inference_mode_they_are_as_outside(self):
        with torch.inference_mode():
            first, _ = self.lease.lend()
        self.assertFalse(first.is_inference())


class TestRandomPrograms(unittest.TestCase):
    def test_programs(self):
        reset()
        with recorded_on_cpu():
            for seed in range(4):
                outcome = run_program(program_of(30_000 + seed, dynamic=seed % 4 == 3), "graphs")
                self.assertFalse(outcome.is_failure, (seed, outcome))


if __name__ == "__main__":
    unittest.main()
