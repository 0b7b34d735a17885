"""Plans on a GPU with torch's tensors and streams. Skipped where there is no GPU or no torch."""

import numpy as np
import pytest
from conftest import ADD, BLOCK, CACHE, SAMPLES, block_in_float64

import sinter

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("there is no GPU", allow_module_level=True)


def random(*shape):
    return torch.randn(*shape, device="cuda")


@pytest.fixture(scope="module")
def add():
    return sinter.compile(ADD, target=sinter.Device("cuda"))


def expected(x, y):
    return (x * y).add_(y)  # two roundings, as ADD has them


def test_a_run_is_enqueued_in_torchs_current_stream(add):
    x, y = random(64, 4), random(64, 4)
    result = add.run(x=x, y=y)
    assert result.device == x.device and torch.equal(result, expected(x, y))
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        add.run(x=x + 1, y=y)  # makes the stream's session, which waits
        torch.cuda._sleep(20_000_000)
        late = x + 1
        result = add.run(x=late, y=y)
        assert not stream.query()  # nothing waited
        assert torch.equal(result, expected(late, y))


def test_runs_of_different_sizes_and_memory_follow_one_another(add):
    for rows in (3, 64, 1, 5, 3):
        x, y = random(rows, 4), random(rows, 4)
        assert torch.equal(add.run(x=x, y=y), expected(x, y))


def test_weights_in_device_memory(weights):
    on_device = {name: torch.from_numpy(value).cuda() for name, value in weights.items()}
    block = sinter.compile(BLOCK, weights=on_device, target=sinter.Device("cuda"))
    ids = torch.tensor([3, 0, 9], dtype=torch.int32, device="cuda")
    r = random(3, 8)
    outputs = block.run(ids=ids, r=r)
    y, n = block_in_float64(weights, ids.cpu().numpy(), r.cpu().numpy())
    np.testing.assert_allclose(outputs["n"].cpu(), n, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(outputs["y"].cpu(), y, rtol=1e-5, atol=1e-5)
    with pytest.raises(sinter.SinterError, match="is 10"):
        block.run(ids=ids + 1, r=r, check=True)
    assert block.verify("cuda", symbols={"N": 12})


def test_a_prepared_call_moves_to_other_memory(add):
    x, y, z = random(8, 4), random(8, 4), torch.empty(8, 4, device="cuda")
    stream = torch.cuda.current_stream().cuda_stream
    with add.session("cuda", stream=stream) as session:
        assert session.stream == stream
        call = session.call().bind(x=x, y=y, out={"z": z})
        call.prepare()
        call.run()
        assert torch.equal(z, expected(x, y))
        for _ in range(3):
            x2, y2, z2 = random(8, 4), random(8, 4), torch.empty(8, 4, device="cuda")
            call.move([x2.data_ptr(), y2.data_ptr()], [z2.data_ptr()])
            call.run()
            assert torch.equal(z2, expected(x2, y2))
        assert torch.equal(z, expected(x, y))
        with pytest.raises(sinter.SinterError, match="overlaps that of input x"):
            call.move([x.data_ptr(), y.data_ptr()], [x.data_ptr()])
        with pytest.raises(sinter.SinterError, match="is aligned to 4 bytes"):
            call.move([x.data_ptr() + 4, y.data_ptr()], [z.data_ptr()])


def test_torch_captures_a_prepared_call_in_a_graph(add):
    x, y, z = random(8, 4), random(8, 4), torch.zeros(8, 4, device="cuda")
    stream = torch.cuda.Stream()
    with add.session("cuda", stream=stream.cuda_stream) as session:
        call = session.call().bind(x=x, y=y, out={"z": z})
        torch.cuda.synchronize()
        call.prepare()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            call.run()
        for _ in range(2):
            x.copy_(random(8, 4))
            graph.replay()
            torch.cuda.synchronize()
            assert torch.equal(z, expected(x, y))


def test_states_stay_on_the_gpu():
    cached = sinter.compile(CACHE, target=sinter.Device("cuda"))
    x, slot = random(2, 4), torch.tensor([0, 1], dtype=torch.int32, device="cuda")
    with cached.session("cuda", symbols={"R": 8}) as session:
        session.run(x=x, slot=slot)
        total = session.run(x=x, slot=slot + 4)
        torch.testing.assert_close(total, 2 * x.sum(0, keepdim=True))
        np.testing.assert_array_equal(session.read_state("cache")[4:6], x.cpu())


class Exporter:
    def __init__(self, tensor):
        self._tensor = tensor

    def __dlpack__(self, stream=None):
        assert stream is not None
        return self._tensor.__dlpack__(stream=stream)

    def __dlpack_device__(self):
        return self._tensor.__dlpack_device__()


def test_dlpack_tensors_on_the_gpu(add):
    x, y, z = random(8, 4), random(8, 4), torch.zeros(8, 4, device="cuda")
    add.run(x=Exporter(x), y=Exporter(y), out={"z": Exporter(z)})
    assert torch.equal(z, expected(x, y))
    with pytest.raises(sinter.SinterError, match="memory on cuda:0 is wanted for a result"):
        add.run(x=Exporter(x), y=Exporter(y))


def test_what_does_not_fit_is_named(add):
    x = random(8, 8)
    with pytest.raises(sinter.SinterError, match="input x: strides .8, 1. of .*must be dense"):
        add.run(x=x[:, :4], y=random(8, 4))
    with pytest.raises(sinter.SinterError, match="the tensor is on cpu, the session is on cuda:0"):
        add.run(x=random(8, 4), y=torch.zeros(8, 4))


def test_a_language_model_writes_the_same_on_the_gpu():
    prompt = "Long ago, Mira the baker"
    texts = []
    for device in ("cpu", "cuda"):
        with sinter.LanguageModel(SAMPLES / "tiny-llama", device) as model:
            texts.append(model.generate(prompt, count=20).text)
    assert texts[0][:40] == texts[1][:40]
