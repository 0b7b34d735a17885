"""Option `invariant`: rows have the same bits alone and among others; what torch computes is refused."""
import unittest

import torch

import sinter.pytorch  # noqa: F401: the backend


class TestInvariant(unittest.TestCase):
    def test_rows_of_products_are_equal_among_any_number_of_others(self):
        torch.manual_seed(0)
        module = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.GELU(), torch.nn.Linear(128, 32))
        rows = torch.randn(65, 64)
        for dtype in (torch.bfloat16, torch.float32):
            torch._dynamo.reset()
            compiled = torch.compile(module.to(dtype), backend="sinter", options={"invariant": True}, dynamic=True)
            x = rows.to(dtype)
            with torch.no_grad():
                together = compiled(x)
                for count in (1, 2, 8, 9, 31, 64):
                    self.assertTrue(torch.equal(compiled(x[-count:]), together[-count:]), f"{dtype}, {count} rows")

    def test_an_op_that_torch_computes_is_refused_by_name(self):
        compiled = torch.compile(lambda x: torch.kthvalue(x, 2).values + 1, backend="sinter", options={"invariant": True})
        with self.assertRaisesRegex(Exception, "(?s)aten.kthvalue.*require_full, or invariant"):
            compiled(torch.randn(2, 9))


if __name__ == "__main__":
    unittest.main()
