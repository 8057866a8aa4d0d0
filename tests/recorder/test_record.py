"""Small models recorded without a GPU: what comes out is what a GPU does."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import tempfile
import unittest
from collections.abc import Callable
from typing import Any
from unittest import mock

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.join(os.path.dirname(os.path.dirname(HERE)), "src", "recorder")
sys.path[:0] = [SOURCE, HERE]

import torch  # noqa: E402
import vramscope  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

from player import written  # noqa: E402


def recorded(work: Callable[[], Any], gpu: str = "h200", steps: int | None = None) -> list[dict[str, Any]]:
    """Lines of a recording of `work`."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "run.vram.gz")
        with vramscope.recording(path, gpu=gpu, steps=steps):
            work()
        return written(path)


def ops(found: list[dict[str, Any]]) -> list[tuple[str, list[int]]]:
    """Operations with the bytes that each makes."""
    names = {x["id"]: x["name"] for x in found if x["t"] == "fn"}
    return [(names[x["f"]], [n for _, n in x.get("n", ())]) for x in found if x["t"] == "op"]


def live(found: list[dict[str, Any]]) -> dict[int, int]:
    """Storages that were never freed, with their bytes."""
    made: dict[int, int] = {}
    for x in found:
        for storage, size in x.get("n", ()) if x["t"] == "op" else ():
            made[storage] = size
        for storage in x["s"] if x["t"] == "free" else ():
            del made[storage]
    return made


def mlp(width: int = 64) -> nn.Module:
    """A small model on the card."""
    return nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)).cuda()


class Values(unittest.TestCase):
    """Integers are known, floats are not; shapes follow from what is known."""

    def test_what_torch_script_cannot_compile_runs_as_python(self) -> None:
        """A function that calls one that is replaced, as those of `torch.distributed.optim` do when it is imported."""

        def work() -> None:
            @torch.jit.script
            def doubled(x: torch.Tensor) -> torch.Tensor:
                return x * torch.tensor(2.0, device=x.device)

            doubled(torch.ones(1000, device="cuda"))

        self.assertIn(("aten.mul.Tensor", [4000]), ops(recorded(work)))

    def test_integers_come_back_as_they_went(self) -> None:
        """`tolist`, `item`, `nonzero`, masks and splits see true values."""
        seen: dict[str, Any] = {}

        def work() -> None:
            x = torch.tensor([[1, 5, 5], [2, 0, 5]], device="cuda")
            seen["list"] = x.tolist()
            seen["sum"] = (x == 5).sum().item()
            seen["nonzero"] = (x == 5).nonzero().shape
            seen["masked"] = torch.randn(2, 3, 4, device="cuda")[x == 5].shape
            x[0, 0] = 5
            seen["changed"] = int((x == 5).sum())
            seen["split"] = [
                t.shape[0] for t in torch.randn(9, 2, device="cuda").split(torch.tensor([4, 5]).cuda().tolist())
            ]
            seen["repeat"] = torch.repeat_interleave(x[:, 0], x[:, 0]).shape[0]
            seen["view"] = x.view(-1)[2:4].tolist()

        recorded(work)
        self.assertEqual(seen["list"], [[1, 5, 5], [2, 0, 5]])
        self.assertEqual((seen["sum"], seen["nonzero"], seen["masked"]), (3, (3, 2), (3, 4)))
        self.assertEqual((seen["changed"], seen["split"], seen["repeat"], seen["view"]), (4, [4, 5], 7, [5, 2]))

    def test_unknown_floats_follow_assumptions_that_the_file_lists(self) -> None:
        """A loss is read as 1.0, and experts are chosen as often as one another."""
        seen: dict[str, Any] = {}

        def work() -> None:
            logits = torch.randn(16, 8, device="cuda")
            seen["experts"] = torch.bincount(logits.topk(2).indices.flatten(), minlength=8).tolist()
            seen["loss"] = logits.mean().item()

        found = recorded(work)
        self.assertEqual(seen, {"experts": [4] * 8, "loss": 1.0})
        self.assertEqual({x["what"] for x in found if x["t"] == "assumed"}, {"topk", "item"})

    def test_devices_are_what_the_script_asked_for(self) -> None:
        """Tensors say `cuda:0`; the host and `meta` stay what they are."""
        seen: list[Any] = []

        def work() -> None:
            x = torch.ones(3, device="cuda")
            seen.extend([str(x.device), x.is_cuda, str(x.cpu().device), str(torch.empty(2, device="meta").device)])
            with torch.device("meta"):
                seen.append(str(nn.Linear(2, 2).weight.device))
            layer = nn.Linear(2, 2)
            held = layer.weight
            layer.cuda()
            seen.extend([layer.weight is held, str(held.device), isinstance(held, nn.Parameter)])

        recorded(work)
        self.assertEqual(seen, ["cuda:0", True, "cpu", "meta", "meta", True, "cuda:0", True])

    def test_constants_stay_known_when_they_are_multiplied(self) -> None:
        """A constant times a number is one; a part of it that changes leaves the rest."""
        seen: dict[str, Any] = {}

        def work() -> None:
            x = torch.ones(1000, device="cuda")
            x.mul_(0.3)
            seen["half"] = x.half()[7].item()
            seen["whole"] = x[7].item()
            seen["kind"] = type(x._vs.values).__name__
            x[:10].mul_(2)
            seen["parts"] = (x[3].item(), x[30].item())
            several = [torch.full((5,), value, device="cuda") for value in (2.0, 3.0)]
            torch._foreach_mul_(several, 5.0)
            seen["several"] = [y[1].item() for y in several]
            several[0].mul_(several[1])
            seen["product"] = several[0][2].item()

        recorded(work)
        three = torch.tensor(1.0).mul_(0.3)
        self.assertEqual((seen["whole"], seen["half"]), (three.item(), three.half().item()))
        self.assertEqual(seen["kind"], "Constant")
        self.assertEqual(seen["parts"], ((three * 2).item(), three.item()))
        self.assertEqual((seen["several"], seen["product"]), ([10.0, 15.0], 150.0))

    def test_views_lie_where_they_lie(self) -> None:
        """A view of a view, of another type, and of complex numbers."""
        seen: dict[str, Any] = {}

        def work() -> None:
            x = torch.arange(24, device="cuda").view(4, 6)
            seen["twice"] = x[1:, 2:].t()[1].tolist()
            seen["bytes"] = x.to(torch.int32)[2:].view(torch.int16)[0, ::2].tolist()
            z = torch.zeros(4, 6, dtype=torch.complex64, device="cuda")
            seen["conjugate"] = (z.conj().t().is_conj(), z.conj().t().shape, z.is_conj())

        recorded(work)
        self.assertEqual(seen["twice"], [9, 15, 21])
        self.assertEqual(seen["bytes"], [12, 13, 14, 15, 16, 17])
        self.assertEqual(seen["conjugate"][1:], ((6, 4), False))


class Memory(unittest.TestCase):
    """Births and frees are those of a GPU."""

    def test_a_step_ends_with_parameters_and_states_alone(self) -> None:
        """Activations and gradients are gone after `zero_grad`."""

        def work() -> None:
            model = mlp()
            optimizer = torch.optim.AdamW(model.parameters(), foreach=True)
            for _ in range(2):
                model(torch.randn(8, 64, device="cuda")).square().mean().backward()
                optimizer.step()
                optimizer.zero_grad()

        parameters = 4 * (64 * 256 + 256 + 256 * 64 + 64)
        found = recorded(work, steps=2)
        self.assertEqual(sum(live(found).values()), 3 * parameters)
        self.assertEqual([x["step"] for x in found if x["t"] == "mark" and x["at"] == "step_end"], [1, 2])
        self.assertEqual(found[-1]["steps"], 2)

    def test_autograd_adds_in_place_where_it_holds_the_last_reference(self) -> None:
        """Of three uses of a tensor the second adds to a gradient that nobody else holds."""

        def work() -> None:
            x = torch.randn(1024, device="cuda", requires_grad=True) * 1
            ((x * 2).sum() + (x * 3).sum() + (x * 4).sum()).backward()

        made = ops(recorded(work))
        self.assertEqual([n for n, _ in made].count("aten.add_.Tensor"), 2)
        self.assertNotIn(("aten.add.Tensor", [4096]), made)

    def test_a_gradient_that_is_shared_is_not_added_to(self) -> None:
        """Both inputs of an addition get one gradient, which the engine may not change."""

        def work() -> None:
            x = torch.randn(1024, device="cuda", requires_grad=True) * 1
            y = x.relu()
            (((x + y) + x) * 2).sum().backward()

        made = ops(recorded(work))
        self.assertIn(("aten.add.Tensor", [4096]), made[len(made) // 2 :])

    def test_checkpointing_makes_activations_again(self) -> None:
        """Recomputation runs on autograd's thread, reentrant or not."""
        for reentrant in (False, True):
            with self.subTest(reentrant=reentrant):

                def work(reentrant: bool = reentrant) -> None:
                    model = mlp()
                    x = torch.randn(8, 64, device="cuda", requires_grad=True)
                    checkpoint(model, x, use_reentrant=reentrant).sum().backward()

                found = recorded(work)
                names = {x["id"]: x["name"] for x in found if x["t"] == "fn"}
                gelus = [x.get("b", 0) for x in found if x["t"] == "op" and names[x["f"]] == "aten.gelu.default"]
                self.assertEqual(gelus, [0, 1])

    def test_autocast_keeps_copies_of_weights_until_it_ends(self) -> None:
        """One low-precision copy of a weight, however often it is used."""

        def work() -> None:
            layer = nn.Linear(64, 64, bias=False).cuda()
            with torch.autocast("cuda", dtype=torch.bfloat16):
                y = layer(layer(torch.randn(8, 64, device="cuda")))
                F.layer_norm(y, (64,)).sum()

        found = recorded(work)
        copies = [n for name, n in ops(found) if name == "aten._to_copy.default" and n == [64 * 64 * 2]]
        self.assertEqual(len(copies), 1)
        self.assertEqual(len([x for x in found if x["t"] == "why" and x["is"] == "autocast"]), 1)
        self.assertIn(("aten.native_layer_norm.default", [2048, 32, 32]), ops(found))

    def test_host_memory_is_not_counted(self) -> None:
        """A model of 70 billion parameters on the host takes none of the card and little of the machine."""

        def work() -> None:
            layers = [torch.empty(1 << 17, 1 << 16) for _ in range(8)]
            self.assertEqual(sum(x.numel() for x in layers), 1 << 36)

        self.assertEqual(ops(recorded(work)), [])

    def test_channels_last_convolutions_stay_so(self) -> None:
        """cuDNN returns the layout of its input, gradients included."""
        seen: list[bool] = []

        def work() -> None:
            layer = nn.Conv2d(3, 8, 3).cuda().to(memory_format=torch.channels_last)
            out = layer(torch.randn(2, 3, 16, 16, device="cuda"))
            out.sum().backward()
            seen.extend(x.is_contiguous(memory_format=torch.channels_last) for x in (out, layer.weight.grad))

        recorded(work)
        self.assertEqual(seen, [True, True])

    def test_gradients_of_indices_are_added_in_place_and_those_of_puts_are_copies(self) -> None:
        """`IndexBackward` adds into its zeros; `IndexPutBackward` puts zeros into a copy of the gradient."""

        def work() -> None:
            x = torch.randn(64, 16, device="cuda", requires_grad=True)
            at = torch.tensor([1, 2], device="cuda")
            y = x * 1
            y[at] = torch.randn(2, 16, device="cuda")
            (y * 2).sum().backward()
            x[at].sum().backward()

        made = ops(recorded(work))
        self.assertEqual(made.count(("aten.index_put.default", [4096])), 1)
        self.assertIn(("aten._index_put_impl_.default", []), made)

    def test_the_highest_pass_their_gradient_back_in_place(self) -> None:
        """`TopkBackward` scatters into its zeros."""

        def work() -> None:
            torch.randn(16, 64, device="cuda", requires_grad=True).topk(2).values.sum().backward()

        self.assertIn(("aten.scatter_.src", []), ops(recorded(work)))

    def test_numbers_are_assigned_from_the_host(self) -> None:
        """No scalar is made on the card, whatever the index."""

        def work() -> None:
            x = torch.zeros(4, 4, device="cuda")
            x[1], x[2, 2], x[x > 1] = 3, 0.5, 0
            x[torch.tensor([1, 2], device="cuda")] = 2

        made = [n for n, sizes in ops(recorded(work)) if sizes]
        self.assertEqual(made, ["aten.zeros.default", "aten.gt.Scalar", "aten._to_copy.default"])

    def test_a_bias_is_added_in_place_where_a_linear_map_has_a_strided_input(self) -> None:
        """Nothing is made for the sum; a contiguous input takes the bias along."""

        def work() -> None:
            layer = nn.Linear(8, 16).cuda()
            layer(torch.randn(2, 3, 8, device="cuda").transpose(0, 1))
            layer(torch.randn(2, 3, 8, device="cuda"))

        names = [name for name, _ in ops(recorded(work))]
        self.assertEqual([n for n in names if "add" in n], ["aten.add_.Tensor", "aten.addmm.default"])

    def test_softmax_widens_fp16_within_its_kernel(self) -> None:
        """No copy is made in fp32, as one is of bf16."""
        for dtype, made in ((torch.float16, ["_softmax"]), (torch.bfloat16, ["_to_copy", "_softmax"])):
            with self.subTest(dtype=dtype):

                def work(dtype: torch.dtype = dtype) -> None:
                    torch.randn(4, 64, device="cuda", dtype=dtype).softmax(-1, torch.float32)

                found = ops(recorded(work))[1:]
                self.assertEqual(found, [(f"aten.{name}.default", [1024]) for name in made])

    def test_slow_attention_adds_its_mask_in_place(self) -> None:
        """A mask whose rows lie apart is taken by no fused kernel; scores are masked where they are."""

        def work() -> None:
            q = torch.randn(1, 4, 32, 64, device="cuda", dtype=torch.bfloat16)
            mask = torch.randn(32, 32, 4, device="cuda", dtype=torch.bfloat16).permute(2, 0, 1)[None]
            F.scaled_dot_product_attention(q, q, q, attn_mask=mask)

        made = ops(recorded(work))
        self.assertIn(("aten.add_.Tensor", []), made)
        self.assertIn(("aten._safe_softmax.default", [4 * 32 * 32 * 4]), made)

    def test_a_mean_loss_keeps_the_memory_of_all_elements(self) -> None:
        """Its result is made in full, then resized."""

        def work() -> None:
            x = torch.randn(64, 16, device="cuda")
            F.mse_loss(x, x)

        self.assertEqual(ops(recorded(work))[-1], ("aten.mse_loss.default", [4096]))

    def test_norms_of_gradients_are_taken_together(self) -> None:
        """`clip_grad_norm_` finds that the card has kernels for lists."""

        def work() -> None:
            model = mlp()
            model(torch.randn(8, 64, device="cuda")).sum().backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)

        made = ops(recorded(work))
        self.assertIn(("aten._foreach_norm.Scalar", [4, 4, 4, 4]), made)
        self.assertIn(("aten._foreach_mul_.Tensor", []), made)

    def test_lists_are_copied_to_the_host(self) -> None:
        """`tolist` has a line of its own, which tells how the tensor lies."""

        def work() -> None:
            torch.arange(8, device="cuda")[::2].tolist()

        found = recorded(work)
        names = {x["id"]: x["name"] for x in found if x["t"] == "fn"}
        last = [x for x in found if x["t"] == "op"][-1]
        self.assertEqual((names[last["f"]], last["k"]), ("aten._to_copy.default", {"device": "@cpu"}))
        self.assertEqual(last["o"][0][:3], "#h:")

    def test_reasons_of_what_lives(self) -> None:
        """Arguments by name, and what the script's own names hold."""

        class Model(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.linear = nn.Linear(8, 8)

            def forward(self, x: torch.Tensor, mask: torch.Tensor) -> dict[str, Any]:
                y = self.linear(x)
                return {"loss": (y * mask).mean(), "kept": [y.detach() * 2]}

        def work() -> None:
            model = Model().cuda()
            out = model(x=torch.randn(4, 8, device="cuda"), mask=torch.ones(8, device="cuda"))
            out["loss"].backward()

        told = {(x["is"], x.get("name")) for x in recorded(work) if x["t"] == "why"}
        expected = {("batch", "x"), ("batch", "mask"), ("held", "out.loss"), ("held", "out.kept[0]"), ("saved", None)}
        self.assertLessEqual(expected, told)

    def test_looking_at_names_keeps_nothing_alive(self) -> None:
        """What a function deletes after it was looked at is free at once."""

        def work() -> None:
            model = mlp()
            out = model(torch.randn(8, 64, device="cuda"))
            out.sum().backward()
            del out
            held = sum((4 * p.numel() + 511) // 512 * 512 for p in model.parameters())
            self.assertEqual(torch.cuda.memory_allocated(), 2 * held)

        recorded(work)


class Progress(unittest.TestCase):
    """What a dry run says while it goes on."""

    def test_progress_says_which_micro_batch_runs(self) -> None:
        """Of a step that has several, from its first to its last."""
        from vramscope.dry_run import batches, run

        seen: list[str] = []
        loaders = mock.Mock(ahead=batches.Ahead(200, accumulated=2))
        with (
            tempfile.TemporaryDirectory() as folder,
            vramscope.recording(os.path.join(folder, "run.vram.gz")) as session,
        ):
            model = torch.nn.Linear(4, 4).cuda()
            optimizer = torch.optim.SGD(model.parameters())
            model.register_forward_hook(lambda *given: seen.append(run.where(session, loaders)))
            seen.append(run.where(session, loaders))
            for _ in range(2):
                for _ in range(2):
                    model(torch.randn(2, 4, device="cuda")).sum().backward()
                optimizer.step()
                optimizer.zero_grad()
        places = [f"step {step}, micro-batch {batch} of 2, " for step in (1, 2) for batch in (1, 2)]
        self.assertEqual(seen, ["", *places])


class Attention(unittest.TestCase):
    """The backend is the one that PyTorch takes on the card."""

    def backend(self, gpu: str, dtype: torch.dtype, mask: bool = False, shared: bool = False) -> str:
        """Name of the operation that computes an attention."""

        def work() -> None:
            q = torch.randn(1, 8, 32, 64, device="cuda", dtype=dtype)
            k = torch.randn(1, 2 if shared else 8, 32, 64, device="cuda", dtype=dtype)
            allowed = torch.ones(1, 1, 32, 32, dtype=torch.bool, device="cuda") if mask else None
            F.scaled_dot_product_attention(q, k, k, attn_mask=allowed, enable_gqa=shared)

        names = [name for name, _ in ops(recorded(work, gpu=gpu))]
        found = [n for n in names if "scaled_dot" in n]
        return (
            found[0].removeprefix("aten._scaled_dot_product_").removesuffix("_attention.default") if found else "math"
        )

    def test_backends(self) -> None:
        """cuDNN on Hopper, Flash elsewhere, efficient for masks and fp32, math for shared heads in fp32."""
        self.assertEqual(self.backend("h100", torch.bfloat16), "cudnn")
        self.assertEqual(self.backend("a100", torch.bfloat16), "flash")
        self.assertEqual(self.backend("a100", torch.bfloat16, mask=True), "efficient")
        self.assertEqual(self.backend("h100", torch.float32), "efficient")
        self.assertEqual(self.backend("h100", torch.float32, shared=True), "math")
        self.assertEqual(self.backend("t4", torch.float16), "efficient")


class Format(unittest.TestCase):
    """Files are what `docs/recording.md` says."""

    def test_every_id_is_declared_before_it_is_used(self) -> None:
        """Names, layouts, modules, lines and nodes; storages are born once and freed once."""

        def work() -> None:
            model = mlp()
            model(torch.randn(8, 64, device="cuda")).sum().backward()

        found = recorded(work)
        self.assertEqual((found[0]["t"], found[0]["version"], found[-1]["t"]), ("header", 1, "end"))
        declared: dict[str, set[int]] = {k: set() for k in ("fn", "meta", "module", "line", "node", "param")}
        keys = {"f": "fn", "mod": "module", "l": "line", "v": "node", "p": "param"}
        born = -1
        for x in found:
            if x["t"] in declared:
                self.assertEqual(x["id"], len(declared[x["t"]]))
                declared[x["t"]].add(x["id"])
                continue
            for key, kind in keys.items():
                if key in x:
                    self.assertIn(x[key], declared[kind])
            for storage, _ in x.get("n", ()):
                self.assertEqual(storage, born + 1)
                born = storage
        live(found)

    def test_code_that_is_gone_lends_no_line_to_code_that_comes(self) -> None:
        """Python gives the place of a code object that died to the next one."""

        def work() -> None:
            for i in range(40):
                names = {"x": torch.ones(3, device="cuda")}
                exec(compile(f"y = x * {i}", f"made_{i}.py", "exec"), names)

        found = recorded(work)
        files = {x["id"]: x["file"] for x in found if x["t"] == "line"}
        names = {x["id"]: x["name"] for x in found if x["t"] == "fn"}
        products = [files[x["l"]] for x in found if x["t"] == "op" and names[x["f"]] == "aten.mul.Tensor"]
        self.assertEqual(products, [f"made_{i}.py" for i in range(40)])

    def test_a_backward_operation_has_its_forward_module(self) -> None:
        """The gradient of the second linear layer belongs to it."""

        def work() -> None:
            mlp()(torch.randn(8, 64, device="cuda")).sum().backward()

        found = recorded(work)
        modules = {x["id"]: x["name"] for x in found if x["t"] == "module"}
        nodes = {x["id"]: x["name"] for x in found if x["t"] == "node"}
        places = [
            modules[x["mod"]]
            for x in found
            if x["t"] == "op" and nodes.get(x.get("v")) == "AddmmBackward0" and x.get("n")
        ]
        self.assertEqual(list(dict.fromkeys(places)), ["2", "0"])

    def test_questions_are_written_and_answered(self) -> None:
        """A script's questions stand in order, each answered by what it holds but for what kernels take inside."""
        asked: list[Any] = []

        def work() -> None:
            torch.cuda.reset_peak_memory_stats()
            x = torch.randn(1 << 20, device="cuda")
            y = x * 2
            del x
            asked.extend([torch.cuda.memory_allocated(), torch.cuda.max_memory_allocated()])
            del y

        found = [(x["t"], x.get("what"), x.get("i")) for x in recorded(work) if x["t"] in ("ask", "reset_peak")]
        questions = [("ask", "memory_allocated", 0), ("ask", "max_memory_allocated", 1)]
        self.assertEqual(found, [("reset_peak", None, None), *questions])
        self.assertEqual((asked, [a.question for a in asked]), ([4 << 20, 8 << 20], [0, 1]))


class Scripts(unittest.TestCase):
    """Scripts run unchanged, and errors say what to do."""

    def command(self, *words: str, script: str = "") -> tuple[int, str, list[dict[str, Any]]]:
        """Status, what it said, and lines of the recording."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "train.py")
            with open(path, "w", encoding="utf-8") as file:
                file.write(script)
            out = os.path.join(folder, "run.vram.gz")
            words = tuple(path if w == "SCRIPT" else w for w in words)
            done = subprocess.run(
                [sys.executable, "-m", "vramscope.record", "-o", out, *words],
                env={**os.environ, "PYTHONPATH": SOURCE},
                capture_output=True,
                text=True,
                cwd=folder,
                check=False,
            )
            found = []
            if os.path.exists(out) and done.returncode == 0:
                with gzip.open(out, "rt") as file:
                    found = [json.loads(line) for line in file]
            return done.returncode, done.stderr, found

    def test_a_script_stops_after_its_steps(self) -> None:
        """An endless loop ends; `sys.argv` is the script's own."""
        script = (
            "import sys, torch\n"
            "assert sys.argv[1:] == ['--width', '8'] and torch.cuda.is_available()\n"
            "model = torch.nn.Linear(8, 8).to('cuda'); o = torch.optim.SGD(model.parameters(), lr=0.1)\n"
            "while True:\n"
            "    o.zero_grad(); model(torch.randn(2, 8).cuda()).sum().backward(); o.step()\n"
        )
        status, _, found = self.command("--steps", "2", "SCRIPT", "--width", "8", script=script)
        self.assertEqual((status, found[-1]["steps"], found[0]["command"][1:]), (0, 2, ["--width", "8"]))

    def test_errors(self) -> None:
        """A card, a script and a step that are not there."""
        self.assertIn("is no card", self.command("--gpu", "gtx1", "SCRIPT", script="")[1])
        self.assertIn("There is no script", self.command("nowhere.py")[1])
        self.assertIn("without an optimizer step", self.command("SCRIPT", script="print(1)")[1])
        status, said, _ = self.command("SCRIPT", script="def f():\n    raise KeyError('x')\nf()\n")
        self.assertEqual(status, 1)
        self.assertIn("train.py:2 in f", said)


if __name__ == "__main__":
    unittest.main()
