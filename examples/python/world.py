"""Shares objects: a driver owns cars, and a pilot has replicas of the near ones: python world.py"""

import time

import paceline

SCHEMA = "car/1 motion{position:vector velocity:vector} look{paint:text}"
CARS = {"car/near": 10.0, "car/far": 2_000.0}


def main() -> None:
    with (
        paceline.Node(isolated=True) as node,
        node.world("town", name="driver") as driver,
        node.world("town", name="pilot") as pilot,
    ):
        cars = {name: driver.create(name, SCHEMA, position=(east, 0, 0), paint="red") for name, east in CARS.items()}

        # Objects up to 50 units away at most every 50 ms, and those up to 500 at most every second.
        pilot.look((0, 0, 0))
        pilot.observe(paceline.Interest.by_distance([(50, 0.05), (500, 1)]))

        began = time.monotonic()
        while time.monotonic() < began + 2:
            for name, car in cars.items():
                car.set(position=(CARS[name], time.monotonic() - began, 0))
            time.sleep(0.02)
        for view in pilot.objects():
            print(f"{view.path} of {view.owner}: {view.fields['position']}, {view.updates} updates")


if __name__ == "__main__":
    main()
