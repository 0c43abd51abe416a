"""CREATE ALERT and DROP ALERT, with the delivery that belongs to an alert."""

from __future__ import annotations

from nilometer.database.home import Home
from nilometer.database.limits import is_temporary
from nilometer.errors import InputError
from nilometer.sensors.catalog.outcome import Action, Change, Outcome, placed
from nilometer.sql.ddl.nodes import CreateAlert, CreateDelivery, DeliverTo, Drop, ObjectKind


def create_alert(statement: CreateAlert, home: Home) -> Outcome:
    """Create an alert and, if it is to be delivered, its delivery: both or neither."""
    with placed(statement.source_place):
        query = home.catalog.query(statement.source)
        if query is not None and is_temporary(query):
            raise InputError(
                f"query {query.name} is temporary: its results are not kept",
                hint="store it under a name: CREATE QUERY q AS …",
            )
    outcome = home.alerts.create(statement)
    if statement.deliver is None or outcome.change is None:
        return outcome
    try:
        delivered = home.deliveries.create(_delivery(statement, statement.deliver))
        home.alerts.note_delivery(statement.name, delivery_name(statement.name))
    except BaseException:
        home.alerts.drop(statement.name)
        raise
    return Outcome(f"{outcome.message}; {delivered.message}", change=outcome.change)


def drop_alert(statement: Drop, home: Home) -> Outcome:
    """Drop an alert and the delivery that was created with it."""
    with placed(statement.place):
        if statement.if_exists and home.catalog.find(statement.name) is None:
            return Outcome(f"there is no alert {statement.name}")
        name = home.catalog.require(statement.name, ObjectKind.ALERT).name
        alert = home.catalog.alert(name)
        own = None if alert is None else alert.delivery
        others = [one for one in home.deliveries.of_query(name) if one != own]
        if others:
            raise InputError(
                f"delivery {others[0]} delivers the events of {name}",
                hint=f"first DROP DELIVERY {others[0]}",
            )
        if own is not None and home.catalog.delivery(own) is not None:
            home.deliveries.drop(own)
        home.alerts.drop(name)
    return Outcome(f"alert {name} dropped", change=Change(ObjectKind.ALERT, name, Action.DROPPED))


def delivery_name(alert: str) -> str:
    """The name of the delivery that is created with an alert."""
    return f"{alert}_delivery"


def _delivery(statement: CreateAlert, to: DeliverTo) -> CreateDelivery:
    name, place = statement.name, statement.place
    return CreateDelivery(
        delivery_name(name), name, to.unit, to.options, False, place, place, to.place
    )
