"""Random problems of ``paceline plan``, compared with the mixed-integer solver HiGHS.

The formulation here is written from the issue of the planner and the paper (K. Juvva, 1999), and shares no code with
it. ``PACELINE_PROBLEMS=500`` runs as many problems as the planner must agree on; the default is a short form.
"""

import json
import math
import os
import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import highspy
import pytest
from conftest import SOON_S

PLAN = [os.environ.get("PACELINE_BINARY", str(Path(sys.executable).parent / "paceline")), "plan", "-", "--json"]
PROBLEMS = int(os.environ.get("PACELINE_PROBLEMS", "40"))
SEGMENT = 1090
Problem = dict[str, Any]
Loads = dict[tuple[str, int], float]


def make(seed: int) -> Problem:
    """A connected network with limits, several tags and several publishers."""
    rng = random.Random(seed)
    count = rng.randint(3, 9)
    pairs = {(node, rng.randrange(node)) for node in range(1, count)}
    pairs |= {(a, b) for a, b in ((rng.randrange(count), rng.randrange(count)) for _ in range(count)) if a > b}
    links = []
    for a, b in sorted(pairs):
        link: Problem = {"from": f"n{a}", "to": f"n{b}", "delay": f"{rng.randint(1, 20)}ms", "both": True}
        if rng.random() < 0.6:
            link["capacity"] = f"{rng.randint(20, 300) * 8}kbit"
        links.append(link)
    nodes: list[Problem] = [{"id": f"n{node}"} for node in range(count)]
    for node in nodes:
        if rng.random() < 0.3:
            node["cpu"] = rng.randint(2, 40) / 100
    tags = []
    for number in range(rng.randint(1, 4)):
        size = rng.randint(1, 10) * 100
        subscribers = []
        for _ in range(rng.randint(1, 4)):
            subscriber: Problem = {"node": f"n{rng.randrange(count)}", "scale": rng.randint(1, 4)}
            subscriber["bytes"] = f"{size // rng.choice([1, 1, 2, 4])}B"
            if rng.random() < 0.6:
                subscriber["within"] = f"{rng.randint(30, 500)}ms"
            subscribers.append(subscriber)
        tag: Problem = {"tag": f"t{number}", "subscribers": subscribers, "bytes": f"{size}B"}
        tag["publishers"] = [f"n{node}" for node in rng.sample(range(count), rng.choice([1, 1, 2]))]
        tag["period"] = f"{rng.randint(1, 5) * 10}ms"
        for cost in ("cpu_receive", "cpu_send", "cpu_scale"):
            tag[cost] = rng.randint(0, 20) * 1e-5
        tags.append(tag)
    return {
        "nodes": nodes,
        "links": links,
        "tags": tags,
        "objective": rng.choice(["bandwidth", "cpu", "weighted"]),
        "weight": 1_000_000,
        "cost": rng.choice(["per_subscriber", "shared_upstream", "multicast"]),
        "delay_model": rng.choice(["periods", "links", "bounds"]),
        "proxies": rng.choice([1, 1, 2, 3]),
    }


class Network:
    """Directed links, and paths with the fewest links, then the widest bottleneck, then the first nodes."""

    def __init__(self, problem: Problem) -> None:
        self.ids = {node["id"]: index for index, node in enumerate(problem["nodes"])}
        self.count = len(self.ids)
        self.capacity: dict[tuple[int, int], float] = {}
        self.delay: dict[tuple[int, int], int] = {}
        for link in problem["links"]:
            a, b = self.ids[link["from"]], self.ids[link["to"]]
            for pair in ((a, b), (b, a)):
                self.capacity[pair] = int(link["capacity"][:-4]) * 1000 if "capacity" in link else math.inf
                self.delay[pair] = int(link["delay"][:-2]) * 1_000_000
        self.paths = [self.tree(node) for node in range(self.count)]

    def tree(self, root: int) -> dict[int, list[tuple[int, int]]]:
        paths: dict[int, list[tuple[int, int]]] = {root: []}
        width: dict[int, float] = {root: math.inf}
        layer = [root]
        while layer:
            new: dict[int, tuple[float, int]] = {}
            for a in sorted(layer):
                for b in range(self.count):
                    if (a, b) in self.capacity and b not in paths:
                        wide = min(width[a], self.capacity[a, b])
                        if b not in new or wide > new[b][0]:
                            new[b] = (wide, a)
            for b, (wide, a) in new.items():
                paths[b] = [*paths[a], (a, b)]
                width[b] = wide
            layer = list(new)
        return paths

    def part_ns(self, model: str, path: list[tuple[int, int]], period: int, size: int) -> int:
        if model == "periods":
            return len(path) * period
        delay = sum(self.delay[pair] for pair in path)
        if model == "links" or not path:
            return delay
        share = -(-period * min(SEGMENT, size) // size)
        wire = sum(
            -(-SEGMENT * 1_000_000_000 // int(self.capacity[pair] // 8))
            for pair in path
            if self.capacity[pair] < math.inf
        )
        return delay + period + len(path) * share + wire


class Model:
    """One-hot variables of each subscriber's proxy, and rows for shared streams, links and nodes."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.network = problem, Network(problem)
        self.solver = highspy.Highs()
        self.solver.setOptionValue("output_flag", False)
        self.solver.setOptionValue("mip_rel_gap", 0.0)
        self.solver.setOptionValue("threads", 1)
        self.cost: list[float] = []
        self.rows: dict[tuple[str, Any], dict[int, float]] = {}
        self.rules: list[tuple[float, float, dict[int, float]]] = []

    def variable(self, links: list[tuple[tuple[int, int], float, float, Problem]], scales: Loads) -> int:
        """A binary variable for copies on links (link, bits, samples, tag) and for scaling at nodes."""
        bits, cpu = 0.0, 0.0
        new = len(self.cost)
        for pair, rate, samples, tag in links:
            bits += rate
            self.row(("link", pair), new, rate)
            for node, cost in ((pair[0], tag["cpu_send"]), (pair[1], tag["cpu_receive"])):
                cpu += cost * samples
                self.row(("cpu", node), new, cost * samples)
        for (_, node), seconds in scales.items():
            cpu += seconds
            self.row(("cpu", node), new, seconds)
        goal = self.problem["objective"]
        weight = {"bandwidth": 0.0, "cpu": 1.0, "weighted": self.problem["weight"]}[goal]
        self.cost.append((0.0 if goal == "cpu" else bits) + weight * cpu)
        return new

    def row(self, key: tuple[str, Any], variable: int, amount: float) -> None:
        row = self.rows.setdefault(key, {})
        row[variable] = row.get(variable, 0.0) + amount

    def add_tag(self, tag: Problem) -> None:
        network, model = self.network, self.problem["cost"]
        period, size = int(tag["period"][:-2]) * 1_000_000, int(tag["bytes"][:-1])
        sources = [network.ids[name] for name in tag["publishers"]]
        rate = 1e9 / period
        opens: dict[int, int] = {}
        scalers: dict[tuple[int, tuple[int, int]], int] = {}
        trees: dict[tuple[int, tuple[int, int], tuple[int, int]], int] = {}

        def tree(source: int, form: tuple[int, int], pair: tuple[int, int]) -> int:
            if (source, form, pair) not in trees:
                copies = [(pair, form[1] * 8 * rate / form[0], rate / form[0], tag)]
                trees[source, form, pair] = self.variable(copies, {})
            return trees[source, form, pair]

        original = (1, size)
        for subscriber in tag["subscribers"]:
            target = network.ids[subscriber["node"]]
            form = (subscriber["scale"], int(subscriber["bytes"][:-1]))
            seconds = 0.0 if form == original else tag["cpu_scale"] * rate / form[0] * len(sources)
            bound = int(subscriber["within"][:-2]) * 1_000_000 if "within" in subscriber else math.inf
            hot: dict[int, float] = {}
            uses: dict[tuple[int, int], dict[int, float]] = {}
            for node in range(network.count):
                after = network.paths[node][target]
                delay = max(
                    network.part_ns(self.problem["delay_model"], network.paths[source][node], period, size)
                    + network.part_ns(self.problem["delay_model"], after, period * form[0], form[1])
                    for source in sources
                )
                if delay > bound:
                    continue
                copies = []
                if model != "multicast":
                    copies += [(pair, form[1] * 8 * rate / form[0], rate / form[0], tag) for pair in after] * len(sources)
                if model == "per_subscriber":
                    copies += [(p, size * 8 * rate, rate, tag) for source in sources for p in network.paths[source][node]]
                place = self.variable(copies, {("cpu", node): seconds} if model == "per_subscriber" else {})
                hot[place] = 1.0
                if node not in opens:
                    before = [(p, size * 8 * rate, rate, tag) for source in sources for p in network.paths[source][node]]
                    opens[node] = self.variable(before if model == "shared_upstream" else [], {})
                    if model == "multicast":
                        for source in sources:
                            for pair in network.paths[source][node]:
                                on = tree(source, original, pair)
                                self.rules.append((-math.inf, 0.0, {opens[node]: 1.0, on: -1.0}))
                self.rules.append((-math.inf, 0.0, {place: 1.0, opens[node]: -1.0}))
                if model != "per_subscriber" and seconds > 0:
                    if (node, form) not in scalers:
                        scalers[node, form] = self.variable([], {("cpu", node): seconds})
                    self.rules.append((-math.inf, 0.0, {place: 1.0, scalers[node, form]: -1.0}))
                if model == "multicast":
                    for pair in after:
                        uses.setdefault(pair, {})[place] = 1.0
            for source in sources:
                for pair, places in uses.items():
                    self.rules.append((-math.inf, 0.0, {**places, tree(source, form, pair): -1.0}))
            self.rules.append((1.0, 1.0, hot))
        self.rules.append((-math.inf, self.problem["proxies"], dict.fromkeys(opens.values(), 1.0)))

    def limits(self) -> None:
        for (kind, key), row in self.rows.items():
            limit = self.network.capacity[key] if kind == "link" else self.problem["nodes"][key].get("cpu", math.inf)
            if limit < math.inf:
                self.rules.append((-math.inf, 1.0, {variable: amount / limit for variable, amount in row.items()}))

    def solve(self) -> float | None:
        """The least cost, or None if there is no plan."""
        for tag in self.problem["tags"]:
            self.add_tag(tag)
        self.limits()
        if any(not row and lower > 0 for lower, _, row in self.rules):
            return None
        scale = max(self.cost) or 1.0
        for cost in self.cost:
            self.solver.addVar(0.0, 1.0)
            column = self.solver.getNumCol() - 1
            self.solver.changeColCost(column, cost / scale)
            self.solver.changeColIntegrality(column, highspy.HighsVarType.kInteger)
        for lower, upper, row in self.rules:
            low = -highspy.kHighsInf if lower == -math.inf else lower
            self.solver.addRow(low, upper, len(row), list(row), list(row.values()))
        self.solver.run()
        status = self.solver.getModelStatus()
        if status == highspy.HighsModelStatus.kInfeasible:
            return None
        assert status == highspy.HighsModelStatus.kOptimal, status
        return float(self.solver.getInfo().objective_function_value) * scale


def planned(problem: Problem) -> Problem:
    text = json.dumps(problem)
    done = subprocess.run(PLAN, input=text, capture_output=True, text=True, timeout=6 * SOON_S)
    assert done.returncode in (0, 3), done
    answer: Problem = json.loads(done.stdout)
    return answer


def test_the_planner_costs_as_much_as_another_solver() -> None:
    problems = [make(seed) for seed in range(PROBLEMS)]
    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(planned, problems))
    feasible = 0
    for seed, (problem, answer) in enumerate(zip(problems, answers, strict=True)):
        least = Model(problem).solve()
        if least is None:
            assert answer["status"] == "infeasible", (seed, answer)
            continue
        feasible += 1
        assert answer["status"] == "optimal", (seed, answer, least)
        assert answer["cost"] == pytest.approx(least, rel=1e-5, abs=1e-9), (seed, answer, least)
    print(f"{PROBLEMS} problems: {feasible} with the costs of HiGHS, {PROBLEMS - feasible} infeasible for both")
    assert PROBLEMS / 3 < feasible < PROBLEMS
