"""The dispatch mode: answers every operation without data and writes it down."""

from __future__ import annotations

import weakref
from typing import Any

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from vramscope.record import assumed, gradients, indices, shaped, values
from vramscope.record.errors import CannotEmulate
from vramscope.record.place import Place
from vramscope.record.plan import Lines, Out, Plan, Unplannable, make, meta_call, scan
from vramscope.record.tensors import CUDA, META, CudaTensor, Emulated, HostTensor, Storage, bare, dress, normal_device
from vramscope.record.writer import Writer

aten = torch.ops.aten
UNWRITTEN = frozenset(("detach", "alias", "lift_fresh", "lift"))
# Stands for an operation whose result holds data on the host.
REAL = Plan(outs=[], spec=None, news=[], kind=HostTensor, single=True)
FAKE = torch._C._TorchDispatchModeKey.FAKE

# Asked at each operation, of which a recording has a million: looked up once.
_empty_strided = torch.empty_strided
_as_strided = torch._C.TensorBase.as_strided
_dispatch_mode = torch._C._get_dispatch_mode
_graph_task = torch._C._current_graph_task_id


class Recorder(TorchDispatchMode):
    """PyTorch below autograd: plans instead of kernels, storages that are counted instead of memory."""

    def __init__(self, writer: Writer) -> None:
        """A recorder that writes to `writer`."""
        super().__init__()
        self.writer = writer
        self.lines = Lines(writer)
        self.place = Place(writer)
        self.noted = assumed.Assumptions()
        self.plans: dict[tuple, Plan] = {}
        self.names: dict[Any, tuple[str, Any, bool]] = {}
        self.storages: dict[int, weakref.ref[Storage]] = {}
        self.next_storage = 0
        self.live_bytes = 0
        self.peak_bytes = 0
        self.cached_peak = 0  # since the cache was last emptied
        self.explicit_meta = False
        self.off = False
        self.finished = False
        self.counting = gradients.UseCounts()

    # Memory

    def storage(self, bare_tensor: torch.Tensor, kind: type[Emulated], nbytes: int) -> Storage:
        """The storage of `bare_tensor`, made if it is new."""
        cdata = bare_tensor.untyped_storage()._cdata
        if kind is CudaTensor:
            made = Storage(self, self.next_storage, nbytes, cdata)
            self.next_storage += 1
            self.counted(nbytes)
        else:
            made = Storage(None, -1, nbytes, cdata)
        self.storages[cdata] = weakref.ref(made)
        return made

    def counted(self, nbytes: int) -> None:
        """Counts new memory of the card."""
        self.live_bytes += (nbytes + 511) // 512 * 512
        self.peak_bytes = max(self.peak_bytes, self.live_bytes)
        self.cached_peak = max(self.cached_peak, self.live_bytes)

    def freed(self, storage: Storage) -> None:
        """Writes down that a storage of the card is free."""
        self.gone(storage.id, storage.nbytes)

    def gone(self, number: int, nbytes: int) -> None:
        """Writes down that memory of the card is free."""
        self.live_bytes -= (nbytes + 511) // 512 * 512
        if not self.finished:
            self.writer.free(number)

    def new(self, shape: Any, dtype: torch.dtype, kind: type[Emulated], strides: Any = None) -> Emulated:
        """A tensor in memory of its own."""
        with torch._C.DisableTorchFunction():
            if strides is None:
                plain = torch.empty(tuple(shape), dtype=dtype, device=META)
            else:
                plain = torch.empty_strided(tuple(shape), tuple(strides), dtype=dtype, device=META)
        return dress(plain, kind, self.storage(plain, kind, plain.untyped_storage().nbytes()))

    def adopt(self, x: torch.Tensor) -> Emulated:
        """`x`, a meta tensor that C++ made in known memory, as what Python shall see."""
        known = self.storages.get(x.untyped_storage()._cdata)
        storage = known() if known is not None else None
        if storage is None:
            raise CannotEmulate("a tensor that was made behind PyTorch's dispatcher", "")
        return dress(bare(x), CudaTensor if storage.recorder is not None else HostTensor, storage)

    # Dispatch

    def dispatch(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        """Answers one operation."""
        # PyTorch's own FakeTensorMode, below this mode, asks what shapes come out and makes no memory.
        if self.off or _dispatch_mode(FAKE) is not None:
            return func(*args, **(kwargs or {}))
        for t in types:
            if not issubclass(t, Emulated) and t is not torch.Tensor and t is not torch.nn.Parameter:
                return NotImplemented
        kwargs = kwargs or {}
        named = self.names.get(func)
        if named is None:
            name = func._schema.name.split("::")[-1] if hasattr(func, "_schema") else str(func)
            # `c10d::scatter_` is another operation.
            is_torch = hasattr(func, "_schema") and func._schema.name.startswith("aten::")
            named = self.names[func] = (name, shaped.HANDLERS.get(name), is_torch and name in indices.CHECKS)
        name, handler, has_indices = named
        # Backward's indices are forward's.
        if has_indices and _graph_task() == -1:
            indices.check(func, name, args, kwargs, self.place.module_path())
        if name in gradients.IN_PLACE and _graph_task() != -1:
            func = self.counting.in_place(name, func, args)
            name = func._schema.name.split("::")[-1]
        if handler is not None:
            answer = handler(self, func, args, kwargs)
            if answer is not NotImplemented:
                return answer
        elif name == "add" and _graph_task() != -1:
            func, args = self.counting.accumulated(func, args)
            name = "add_" if func is aten.add_.Tensor else "add"
        return self.answer(func, name, args, kwargs)

    def answer(self, func: Any, name: str, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Result of an operation whose shapes follow from those of its arguments."""
        device = kwargs.get("device")
        if device is not None and torch.device(device).type == "meta":
            if self.explicit_meta:
                return meta_call(func, args, kwargs)[0]
            if all(type(x) is torch.Tensor and x.device.type == "cpu" for x in _leaves(args, [])):
                # C++ asks for memory where an emulated tensor is
                kwargs = {**kwargs, "device": CUDA}
        key: list[Any] = [func, torch.get_default_dtype()]
        tensors: list[torch.Tensor] = []
        try:
            scan(args, key, tensors)
            for k, v in kwargs.items():
                key.append(k)
                scan((v,), key, tensors)
            hashed = tuple(key)
            plan = self.plans.get(hashed)
        except Unplannable:
            hashed, plan = None, None
            tensors = [x for x in pytree.tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)]
        if plan is None:
            kind = self.kind(func, kwargs, tensors)
            if kind is None:
                return func(*args, **kwargs)
            if torch.Tag.inplace_view in func.tags:
                return self.move(func, args, kwargs)
            plan = self.plan(func, args, kwargs, kind)
            if kind is HostTensor and not tensors and self.small(plan):
                plan = REAL
            if hashed is not None:
                self.plans[hashed] = plan
        if plan is REAL:
            return func(*args, **kwargs)
        return self.follow(plan, func, name, args, kwargs, tensors)

    def kind(self, func: Any, kwargs: dict[str, Any], tensors: list[torch.Tensor]) -> type[Emulated] | None:
        """Where results are: on the card, on the host without data, or None for an ordinary operation."""
        device = normal_device(kwargs.get("device"))
        emulated = [t for t in tensors if isinstance(t, Emulated)]
        if device is not None and device.type != "meta":
            if device.type == "cuda":
                return CudaTensor
            return HostTensor if emulated or not tensors else None
        if not emulated:
            return None if tensors else HostTensor
        return CudaTensor if any(type(t) is CudaTensor for t in emulated) else HostTensor

    def small(self, plan: Plan) -> bool:
        """True if results that hold data on the host may be made."""
        return all(values.limit(o.dtype) * o.dtype.itemsize >= plan.news[o.group] for o in plan.outs if o.group >= 0)

    def plan(self, func: Any, args: tuple, kwargs: dict[str, Any], kind: type[Emulated]) -> Plan:
        """Works out what `func` returns, or says that it can't be emulated."""
        try:
            return make(func, args, kwargs, kind)
        except (NotImplementedError, getattr(torch, "AcceleratorError", NotImplementedError)) as e:
            raise CannotEmulate(str(func), self.place.stack()) from e

    def follow(
        self, plan: Plan, func: Any, name: str, args: tuple, kwargs: dict[str, Any], tensors: list[torch.Tensor]
    ) -> Any:
        """Makes the outputs of a plan, writes the operation down and works values out."""
        if plan.alone:
            out = plan.outs[0]
            plain = _empty_strided(out.shape, out.strides, dtype=out.dtype, device=META)
            storage = self.storage(plain, plan.kind, plan.news[0])
            news = [(plain, storage)]
            fresh = outs = [dress(plain, plan.kind, storage)]
        else:
            news = self.allocate(plan)
            outs = [self.output(o, plan, news, tensors) for o in plan.outs]
            fresh = [x for x, o in zip(outs, plan.outs, strict=True) if o.group >= 0] if news else []
        if name == "_conj" and isinstance(outs[0], Emulated):
            # Kernels that take no conjugates get a copy, which C++ makes where it sees one.
            torch._C._set_conj(outs[0], not tensors[0].is_conj())
        if name not in UNWRITTEN:
            self.write(plan, func, args, kwargs, outs, news, tensors)
        if plan.mutates:
            values.mutate(func, name, args, kwargs, tensors)
        elif fresh:
            self.give_values(func, name, args, kwargs, tensors, fresh)
            values.follow_assumptions(tensors, fresh)
        if plan.single:
            if fresh and plan.kind is HostTensor and isinstance(fresh[0]._vs.values, torch.Tensor):
                return values.of(fresh[0])
            return outs[0]
        return pytree.tree_unflatten(outs, plan.spec)

    def allocate(self, plan: Plan) -> list[tuple[torch.Tensor, Storage]]:
        """New memory of a plan, each with its first tensor."""
        if not plan.news:
            return []
        news: list[tuple[torch.Tensor, Storage]] = []
        for out in sorted(plan.outs, key=_group) if len(plan.outs) > 1 else plan.outs:
            if out.group == len(news):
                nbytes = plan.news[out.group]
                plain = torch.empty_strided(out.shape, out.strides, dtype=out.dtype, device=META)
                if plain.untyped_storage().nbytes() != nbytes or out.offset:
                    whole = torch.empty(nbytes, dtype=torch.uint8, device=META)
                    plain = torch.empty(0, dtype=out.dtype, device=META)
                    plain.set_(whole.untyped_storage(), out.offset, out.shape, out.strides)
                news.append((plain, self.storage(plain, plan.kind, nbytes)))
        return news

    def output(self, out: Out, plan: Plan, news: list[tuple[torch.Tensor, Storage]], tensors: list) -> Any:
        """One output of a plan."""
        if out.itself:
            return tensors[out.argument]
        if out.group >= 0:
            plain, storage = news[out.group]
            if plain.dtype != out.dtype or plain.shape != out.shape or plain.stride() != out.strides:
                plain = torch.empty(0, dtype=out.dtype, device=META).set_(
                    plain.untyped_storage(), out.offset, out.shape, out.strides
                )
            return dress(plain, plan.kind, storage)
        if out.argument >= 0:
            source = tensors[out.argument]
            if not isinstance(source, Emulated):
                return source.as_strided(out.shape, out.strides, source.storage_offset() + out.offset)
            return self.view(source, out)
        return out.value.clone() if isinstance(out.value, torch.Tensor) else out.value

    def view(self, source: Emulated, out: Out) -> Emulated:
        """A view of an emulated tensor."""
        offset = source.storage_offset() + out.offset
        if out.strided:
            try:
                return dress(_as_strided(source, out.shape, out.strides, offset), type(source), source._vs)
            except RuntimeError:
                pass  # beyond a storage that was resized meanwhile
        plain = torch.empty(0, dtype=out.dtype, device=META)
        plain.set_(source.untyped_storage(), offset, out.shape, out.strides)
        return dress(plain, type(source), source._vs)

    def write(
        self, plan: Plan, func: Any, args: tuple, kwargs: dict[str, Any], outs: list, news: list, given: list
    ) -> None:
        """Writes an operation down if it touches the card; `given` are the tensors among its arguments, in order."""
        if not plan.written:
            references: list[tuple[Any, bool]] = []
            shown = outs or None
            plan.template = self.lines.template(func, args, kwargs, shown, references)
            pool = given + [x for x in outs if isinstance(x, torch.Tensor)]
            plan.references = []
            for x, offset in references:
                plan.references.append((next(i for i, y in enumerate(pool) if y is x), offset))
            if plan.news and plan.kind is CudaTensor:
                plan.template += ',"n":[' + ",".join(f"[%s,{n}]" for n in plan.news) + "]"
            plan.written = True
            if plan.kind is not CudaTensor and not any(type(x) is CudaTensor for x in pool):
                plan.template = ""
        if not plan.template:
            return
        pool = given + (outs if plan.alone else [x for x in outs if isinstance(x, torch.Tensor)])
        filled: list[Any] = []
        for i, offset in plan.references:
            x = pool[i]
            filled.append(x._vs.id if type(x) is CudaTensor else "h")
            if offset:
                filled.append(x.storage_offset())
        if plan.kind is CudaTensor:
            filled.extend(storage.id for _, storage in news)
        self.writer.ops += 1
        self.writer.line(plan.template % tuple(filled) + self.place.tail() + "}")

    def write_made(self, func: Any, args: tuple, kwargs: dict[str, Any], outs: list[Any]) -> None:
        """Writes down an operation without a plan, all of whose outputs are in new memory."""
        fresh = [x for x in outs if isinstance(x, Emulated)]
        plan = Plan(outs=[], spec=None, news=[x._vs.nbytes for x in fresh], kind=CudaTensor, single=False)
        if fresh and type(fresh[0]) is not CudaTensor:
            return
        given = _leaves(list(kwargs.values()), _leaves(args, []))
        self.write(plan, func, args, kwargs, outs, [(x, x._vs) for x in fresh], given)

    # Values

    def give_values(
        self, func: Any, name: str, args: tuple, kwargs: dict[str, Any], tensors: list, fresh: list[Emulated]
    ) -> None:
        """Gives new tensors values, derived from the arguments' or assumed."""
        for t in tensors:
            if isinstance(t, Emulated) and t._vs.values is None:
                known = name in values.EMPTY or name in values.FILLS
                break
        else:
            known = True
        if known:
            if values.derive(func, name, args, kwargs, fresh):
                return
        if name in assumed.CHOICES:
            how = assumed.choose(name, args, kwargs, fresh)
            self.noted.note(name, how, self.place.module())
        elif name in assumed.COMPARISONS:
            assumed.compare(name, args, fresh)

    def need(self, x: torch.Tensor, what: str) -> torch.Tensor:
        """Elements of `x` on the host, assumed if nobody knows them."""
        return assumed.read(x, what, self.noted, self.place.module())

    def move(self, func: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        """An operation that changes how its first argument lies: `resize_`, `t_`, `squeeze_`, `set_`."""
        x = args[0]
        before = x._vs.nbytes if isinstance(x, Emulated) else 0
        with torch._C._DisableTorchDispatch():
            included = torch._C._meta_in_tls_dispatch_include()
            torch._C._set_meta_in_tls_dispatch_include(True)
            try:
                func(*args, **kwargs)
            finally:
                torch._C._set_meta_in_tls_dispatch_include(included)
        if isinstance(x, Emulated):
            self.settle(x, before)
        return x

    def settle(self, x: Emulated, before: int) -> None:
        """Makes `x` refer to the storage that it has now, which may have grown or be another's."""
        storage = x.untyped_storage()
        known = self.storages.get(storage._cdata)
        current = known() if known is not None else None
        if current is None or (storage.nbytes() > before and current is x._vs):
            made = self.storage(x, type(x), storage.nbytes())
            x._vs = made
            if type(x) is CudaTensor:
                self.write_made(aten.empty.memory_format, ([storage.nbytes()],), {}, [x])
        elif current is not x._vs:
            x._vs = current


# Set here, so that PyTorch does not wrap it in a function that turns the compiler off at every operation.
Recorder.__torch_dispatch__ = Recorder.dispatch  # type: ignore[method-assign]


def _leaves(items: Any, found: list[torch.Tensor]) -> list[torch.Tensor]:
    """Tensors among arguments, in order."""
    for a in items:
        if isinstance(a, torch.Tensor):
            found.append(a)
        elif isinstance(a, (list, tuple)):
            _leaves(a, found)
    return found


def _group(out: Out) -> int:
    """Place of an output's memory among what a plan makes."""
    return out.group
