"""Draws cases that were measured before and are not among a file's, to measure again elsewhere.

usage: draw.py SEED COUNT TAKEN.jsonl FROM.jsonl... > CASES.json
Without fp16 (GradScaler leaves steps out) and what reserves 70 GiB and more; each is timed five times.
"""
import json, random, sys

def rows(path): return [json.loads(line) for line in open(path) if '"case"' in line]
def key(case): return json.dumps({name: value for name, value in case.items() if name != "timed"}, sort_keys=True)
def trained(row): return "ms" in row and "fp16" not in row["case"]["precision"] and row["reserved_peak"] < 70 * 2**30

seed, count, taken, *sources = sys.argv[1:]
seen, pool = {key(row["case"]) for row in rows(taken)}, []
for row in (row for path in sources for row in rows(path) if trained(row)):
    if key(row["case"]) not in seen:
        seen.add(key(row["case"]))
        pool.append({**row["case"], "timed": 5})
json.dump(random.Random(int(seed)).sample(pool, int(count)), sys.stdout)
