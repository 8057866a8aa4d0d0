"""One step of a process as its allocator's trace tells it."""


def compact(trace, freed):
    """[bytes, stack] of each allocation, [-bytes] of each free, in order; stacks are numbered. `freed` says which event is
    a free: free_requested, where Python lets go, or free_completed, once nothing on another stream uses it any more."""
    stacks, out = {}, []
    for t in trace:
        if t["action"] == "alloc":
            frames = [f"{f['filename'].split('site-packages/')[-1]}:{f['line']} {f['name']}" for f in t.get("frames", [])]
            near = " < ".join(f for f in frames if "/nn/modules/module.py" not in f and "_compile" not in f)[:600]
            out.append([t["size"], stacks.setdefault(near, len(stacks))])
        elif t["action"] == freed:
            out.append([-t["size"]])
        else:
            out.append([0])
    return dict(events=out, stacks=list(stacks))


class Mute:
    """An event that nobody asks for its time."""

    def record(self): pass
