"""Messages of the generator's transport, version 0.8: JSON lists with one object each.

An agent (TA2) sends a request with a correlation id and the queue that it waits at; the generator's
side (TA1) answers there, with the same id. Every object names its type in `obj_type`.

Source: the wire contract of the WSU novelty generator 0.8; written anew.
"""

import json
from dataclasses import dataclass
from typing import Final, NoReturn

from evaluation.json_types import JsonMapping, JsonObject
from jaxsim.parameters import shown

REQUESTS_QUEUE: Final = "experiment.request.v0.8"
"""Queue of requests for an experiment, shared by all agents and generators."""
SERVER_QUEUE: Final = "rpc.server.v0.8."
"""Prefix of the queue that an agent sends to during its experiment."""
MAX_BYTES: Final = 2**20
"""Largest message that is read."""
MAX_NAME: Final = 200
"""Longest name of an agent, in characters."""

REQUEST_EXPERIMENT: Final = "request_experiment"
REQUEST_TRIALS: Final = "request_experiment_trials"
REQUEST_STATE: Final = "request_state"
BENCHMARK_DATA: Final = "benchmark_data"

Message = JsonObject


class BadMessage(ValueError):
    """Bytes that are not a message; the text is the reason in one line."""


@dataclass(frozen=True)
class Delivery:
    """Bytes from a queue.

    Attributes:
      queue: name of the queue.
      body: the message.
      reply_to: queue that waits for the answer; "" for none.
      correlation_id: identifies the answer; "" for none.
    """

    queue: str
    body: bytes
    reply_to: str = ""
    correlation_id: str = ""


def decode(body: bytes) -> Message:
    """Read a message.

    Raises:
      BadMessage: too large, not JSON, or not a list of one object with a type.
    """
    if len(body) > MAX_BYTES:
        raise BadMessage(f"a message of {len(body)} bytes; at most {MAX_BYTES} are read")
    try:
        value = json.loads(body, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise BadMessage(f"a message that is not JSON: {error}") from error
    if not isinstance(value, list) or len(value) != 1 or not isinstance(value[0], dict):
        raise BadMessage(f"a message must be a list with one object, not {shown(value)}")
    if not isinstance(value[0].get("obj_type"), str):
        raise BadMessage(f"a message without an obj_type: {shown(value[0])}")
    message: Message = value[0]
    return message


def _refuse(token: str) -> NoReturn:
    raise ValueError(f"{token} is not a JSON number")


def encode(message: JsonMapping) -> bytes:
    """Write a message."""
    return json.dumps([message], allow_nan=False).encode()


def refusal(reason: str) -> Message:
    """The answer to a request that is invalid or not allowed now."""
    return {"obj_type": "casas_response", "status": "error", "error_message": reason}


def model_of(request: JsonMapping) -> Message:
    """Decode `model` of a request for an experiment: an object, or its JSON text.

    Raises:
      BadMessage: there is no such object.
    """
    model = request.get("model")
    if isinstance(model, str):
        try:
            model = json.loads(model)
        except (ValueError, RecursionError) as error:
            raise BadMessage(f"model is not JSON: {error}") from error
    if not isinstance(model, dict):
        raise BadMessage(f"model is {shown(model)}; it must be JSON text of an object")
    return model


def name_of(model: JsonMapping) -> str:
    """The agent's name, cut to `MAX_NAME` characters; "agent" for none."""
    name = model.get("model_name")
    return name[:MAX_NAME] if isinstance(name, str) and name.strip() else "agent"
