"""Topic filters of MQTT: their syntax, and the levels that their wildcards match."""

from __future__ import annotations

from typing import Final

from nilometer.errors import InputError

PLAIN: Final = "="
_LONGEST: Final = 65_535


def check_filter(text: str) -> str:
    """The filter; raises if it is invalid."""
    levels = text.split("/")
    hint = None
    if not text or len(text.encode()) > _LONGEST or "\0" in text:
        hint = "write a topic, such as mqtt://host/plant/hall/temperature"
    elif levels[0] == "$share":
        hint = "a shared subscription gives each message to one of several clients: leave $share"
    elif "#" in levels[:-1] or any(level not in "+#" and _wild(level) for level in levels if level):
        hint = "+ stands for one whole level, # for all levels at the end"
    if hint is not None:
        raise InputError("an MQTT topic that cannot be subscribed", detail=repr(text), hint=hint)
    return text


def shape(topic_filter: str) -> str:
    """Where a filter has wildcards: two filters of one shape are the same, or share no topic.

    >>> shape("plant/hall"), shape("plant/+/t"), shape("plant/#")
    ('=', '=+=', '=#')
    """
    if not _wild(topic_filter):
        return PLAIN
    return "".join(one if one in ("+", "#") else "=" for one in topic_filter.split("/"))


def filter_of(topic: str, wanted: str) -> str | None:
    """The only filter of a shape that a topic can match.

    >>> filter_of("plant/hall/t", "=+="), filter_of("plant", "=#"), filter_of("plant", "=+=")
    ('plant/+/t', 'plant/#', None)
    """
    if wanted == PLAIN:
        return topic
    levels = topic.split("/")
    ends = wanted[-1] == "#"
    fixed = len(wanted) - ends
    if len(levels) < fixed or (len(levels) > fixed and not ends):
        return None
    own = [
        "+" if mark == "+" else level
        for mark, level in zip(wanted[:fixed], levels[:fixed], strict=True)
    ]
    return "/".join([*own, "#"] if ends else own)


def wildcard_levels(topic: str, topic_filter: str) -> list[str]:
    """What each wildcard of a filter matches in a topic.

    >>> wildcard_levels("plant/hall/a/b", "plant/+/#")
    ['hall', 'a/b']
    """
    levels, matches = topic.split("/"), []
    for place, mark in enumerate(topic_filter.split("/")):
        if mark == "+":
            matches.append(levels[place])
        elif mark == "#":
            matches.append("/".join(levels[place:]))
    return matches


def _wild(text: str) -> bool:
    return "+" in text or "#" in text
