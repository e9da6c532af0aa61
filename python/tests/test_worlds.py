"""Shared objects."""

import asyncio
import re
import time
from collections.abc import Iterator

import paceline
import pytest
from conftest import SOON_S, wait_until
from test_examples import blocks

Thin = tuple[paceline.Node, paceline.Node]
Pair = tuple[paceline.World, paceline.World]

CAR = "car/1 motion{position:vector velocity:vector} look{paint:text doors:int open:bool load:float note:bytes}"


@pytest.fixture
def town(thin: Thin) -> Iterator[Pair]:
    with thin[0].world("town", name="owner") as owner, thin[1].world("town", name="observer") as observer:
        yield owner, observer


def paint(world: paceline.World, path: str) -> object:
    view = world.object(path)
    return view and view.fields.get("paint")


def test_objects_are_created_changed_handed_over_and_deleted(town: Pair) -> None:
    owner, observer = town
    car = owner.create("car/1", CAR, {"paint": "red"}, position=(1, 2.5, 3), doors=4, open=True, load=2, note=b"x")
    observer.observe(paceline.Interest.every(0.02))
    wait_until("it arrives", lambda: paint(observer, "car/1") == "red")
    view = observer.objects()[0]
    expected = {"position": (1.0, 2.5, 3.0), "paint": "red", "doors": 4, "open": True, "load": 2.0, "note": b"x"}
    assert {name: view.fields[name] for name in expected} == expected
    assert (view.path, view.owner, view.owner_id, view.owned) == ("car/1", "owner", owner.id, False)
    assert view.schema == CAR and view.position == (1.0, 2.5, 3.0) and view.updates >= 1 and view.age_s >= 0
    car.set(paint="blue")
    wait_until("the change arrives", lambda: paint(observer, "car/1") == "blue")

    with pytest.raises(paceline.WorldError, match="belongs to owner"):
        observer.create("car/1", CAR)
    owner.observe(paceline.Interest.every(0.02))
    car.hand_over(observer.id)
    while (event := observer.event(timeout_s=SOON_S)).kind != "adopted":
        pass
    assert event.path == "car/1" and event.object is not None
    event.object.set(paint="green")
    wait_until("the new owner's change arrives", lambda: paint(owner, "car/1") == "green")
    with pytest.raises(paceline.WorldError, match="deleted or handed over"):
        car.set(paint="grey")
    event.object.delete()
    wait_until("it ends", lambda: owner.object("car/1") is None)

    def is_reported() -> bool:
        others = observer.report()["participants"]
        assert [(other["name"], other["id"]) for other in others] == [("owner", owner.id)]
        # Both parts are known after the first packets of the owner.
        times, interest = others[0]["as_owner"], others[0]["as_observer"]
        return bool(times and interest and times["observer_s"] > 0 and interest["exchanges"]["carried"] >= 1)

    wait_until("the owner is reported", is_reported)


def test_a_contract_is_granted_or_refused_with_an_offer(town: Pair) -> None:
    owner, observer = town
    owner.create("car/1", CAR, position=(1, 0, 0))
    near = paceline.Interest.by_distance([(20, 0.1), (500, 1)], half_angle=0.8, outside=paceline.ExchangeTerms(2))
    answers: list[object] = []

    def has_answer(kind: type) -> bool:
        answers.extend(observer.services())
        return any(isinstance(answer, kind) for answer in answers)

    observer.look((0, 0, 0), direction=(1, 0, 0))
    observer.observe(near.with_contract(max_updates=10, bytes=60, delay_s=0.3, objects=2))
    wait_until("it is granted", lambda: has_answer(paceline.Grant))
    wait_until("the object arrives", lambda: observer.object("car/1"))
    greedy = near.with_contract(max_updates=500, bytes=60, delay_s=0.3, refresh_s=2, objects=20)
    observer.observe(greedy)
    wait_until("it is refused", lambda: has_answer(paceline.ServiceRefused))
    refused = next(answer for answer in answers if isinstance(answer, paceline.ServiceRefused))
    assert refused.refusal.link == "radio" and not refused.together
    assert 1 <= refused.offer["max_updates"] < 500
    answers.clear()
    observer.observe(refused.apply(greedy))
    wait_until("the offer is granted", lambda: has_answer(paceline.Grant))
    dropped = observer.report()["dropped"]
    assert set(dropped) == {"inbox_full", "forged", "events_full"} and dropped["forged"] == 0


def test_modules_and_constraints_of_one_change(town: Pair) -> None:
    owner, observer = town
    car = owner.create("car/1", CAR, paint="red")
    interest = paceline.Interest.every(0.02)
    observer.observe(interest.with_modules(error_control="refreshed", policing="drop", fragment_bytes=600))
    wait_until("the object arrives", lambda: observer.object("car/1"))
    with pytest.raises(ValueError, match="must be shape or drop"):
        interest.with_modules(policing="mark")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="must be from 512 to 65536"):
        interest.with_modules(fragment_bytes=100)
    time.sleep(0.1)
    car.set_with({"paint": "blue"}, fidelity=0.5, within_s=2)
    wait_until("the change arrives", lambda: paint_of(observer) == "blue")
    with pytest.raises(paceline.WorldError, match="must be from 1ms to 1h"):
        car.set_with({"paint": "green"}, within_s=0)


def paint_of(world: paceline.World) -> object:
    view = world.object("car/1")
    return view.fields.get("paint") if view else None


def test_a_declared_rule_selects_objects(town: Pair) -> None:
    owner, observer = town
    owner.create("car/red", CAR, paint="red")
    owner.create("car/blue", CAR, paint="blue")
    rule = "object.paint == 'red'"
    observer.observe(paceline.Interest.declared(paceline.ExchangeTerms(1), whom=rule, every="0.02", weight="2.0"))
    wait_until("the red one arrives", lambda: observer.object("car/red"))
    time.sleep(0.3)
    assert observer.object("car/blue") is None


def test_a_function_decides_and_an_exception_disables_it(town: Pair) -> None:
    owner, observer = town
    owner.create("car/red", CAR, paint="red")
    owner.create("car/blue", CAR, paint="blue")
    seen: list[paceline.PairView] = []

    def only_red(pair: paceline.PairView) -> paceline.ExchangeTerms | None:
        seen.append(pair)
        return paceline.ExchangeTerms(0.02) if pair.fields["paint"] == "red" else None

    owner.decide(only_red, workers=2, order="rm")
    observer.observe(paceline.Interest.every(0.02))
    wait_until("the red one arrives", lambda: observer.object("car/red"))
    time.sleep(0.3)
    assert observer.object("car/blue") is None
    assert {pair.path for pair in seen} == {"car/red", "car/blue"} and seen[0].peer == observer.id

    def wrong(pair: paceline.PairView) -> paceline.ExchangeTerms | None:
        raise KeyError(f"no such thing: {pair.path}")

    observer.observe(None)
    wait_until("the object ends", lambda: observer.object("car/red") is None)
    owner.decide(wrong)
    observer.observe(paceline.Interest.every(0.02))
    while (event := owner.event(timeout_s=SOON_S)).kind != "disabled":
        pass
    assert event.peer == observer.id and event.text is not None and "no such thing" in event.text
    wait_until("by the fallback rule", lambda: observer.object("car/blue"))
    owner.decide(None)


def test_events_end_with_the_world(town: Pair) -> None:
    owner, observer = town
    observer.observe(paceline.Interest.every(0.02))
    owner.create("car/1", CAR)

    async def created() -> str | None:
        async with asyncio.timeout(SOON_S):
            async for event in observer:
                if event.kind == "created":
                    return event.path
        return None

    assert asyncio.run(created()) == "car/1"
    owner.close()
    assert owner.closed
    with pytest.raises(paceline.ClosedError):
        owner.objects()
    for event in observer:
        if event.kind == "lost":
            break
    assert event.path == "car/1"
    while observer.try_event():
        pass
    with pytest.raises(paceline.Timeout):
        observer.event(timeout_s=0)
    observer.close()
    assert list(observer) == []


def test_wrong_values_are_named(node: paceline.Node) -> None:
    for name in ["", "a/*"]:
        with pytest.raises(paceline.WorldError, match="1 to 100 bytes"):
            node.world(name)
    with pytest.raises(paceline.WorldError, match="fragment_bytes 1: must be from 512"):
        node.world("town", fragment_bytes=1)
    with node.world("town") as town:
        cases: list[tuple[tuple[str, str], dict[str, object], str]] = [
            (("car 1", CAR), {}, "path"),
            (("car/1", "car"), {}, "NAME/VERSION"),
            (("car/1", CAR), {"wheels": 4}, "field 'wheels' is not in the schema"),
            (("car/1", CAR), {"doors": "four"}, "doors='four': it must be of type int"),
            (("car/1", CAR), {"position": (1, 2)}, "three finite numbers"),
        ]
        for arguments, fields, text in cases:
            with pytest.raises((paceline.WorldError, ValueError, TypeError), match=re.escape(text)):
                town.create(*arguments, **fields)
        with pytest.raises(paceline.WorldError, match="is not in this world"):
            town.create("car/1", CAR).hand_over("00")
        with pytest.raises(TypeError, match="must be callable"):
            town.decide(7)  # type: ignore[arg-type]
        for workers in [0, 65, 300]:
            with pytest.raises(ValueError, match=f"workers {workers}: must be from 1 to 64"):
                town.decide(lambda _: None, workers=workers)
        with pytest.raises(ValueError, match='order="fifo"'):
            town.decide(lambda _: None, order="fifo")
    for make in [
        lambda: paceline.Interest.every(0),
        lambda: paceline.Interest.every(1, range=-1),
        lambda: paceline.Interest.by_distance([]),
        lambda: paceline.Interest.by_distance([(5, 1)], half_angle=9),
        lambda: paceline.Interest.declared(paceline.ExchangeTerms(1), whom="distance <"),
        lambda: paceline.Interest.every(1).with_contract(max_updates=0, bytes=1, delay_s=1),
        lambda: paceline.ExchangeTerms(1, weight=float("nan")),
        lambda: paceline.ExchangeTerms(1, fidelity=2),
    ]:
        with pytest.raises(ValueError):
            make()


def test_the_programs_of_the_guide_run(node: paceline.Node) -> None:
    names: dict[str, object] = {"node": node}
    programs = blocks("docs/guides/objects.md")
    for program in programs:
        exec(compile(program, "docs/guides/objects.md", "exec"), names)
    assert len(programs) == 6
