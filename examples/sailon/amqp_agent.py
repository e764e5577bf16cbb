"""An agent in a process of its own that speaks RabbitMQ with `jaxsim sailon serve`.

    jaxsim sailon serve examples/sailon/experiment.json --out runs/served
    python examples/sailon/amqp_agent.py --broker amqp://guest:guest@127.0.0.1:5672/%2F

`play` leads any object with the methods of `TA2Logic` through an experiment; all it needs of the
transport is a function that sends a request to a queue and returns the answer.
"""

import argparse
import json
import uuid
from typing import Any

REQUESTS_QUEUE = "experiment.request.v0.8"
ACTIONS = {"x": ("left", "right"), "y": ("backward", "forward")}


class Agent:
    """Pushes the cart to where the pole leans most."""

    def training_instance(self, feature_vector, feature_label):
        """Choose an action; the label is not used."""
        return self.testing_instance(feature_vector)

    def testing_instance(self, feature_vector, novelty_indicator=None):
        """Choose an action by the lean of the pole and its rate."""
        pole = feature_vector["pole"]
        x, y, z, w = (pole[f"{name}_quaternion"] for name in "xyzw")
        lean = {
            "x": 2 * (x * z + w * y) + pole["y_velocity"] / 2,
            "y": 2 * (y * z - w * x) - pole["x_velocity"] / 2,
        }
        axis = max(lean, key=lambda name: abs(lean[name]))
        return {"action": ACTIONS[axis][lean[axis] > 0]}

    def training_episode_end(self, performance, feedback=None):
        """Report no novelty."""
        return 0.0, 1.0, 0, {}

    testing_episode_end = training_episode_end


class Refused(RuntimeError):
    """The server has refused a request."""


def play(agent: Any, call: Any, name: str = "amqp_agent") -> dict[str, int]:
    """Play an experiment.

    Args:
      agent: an object with some of the methods of `TA2Logic`.
      call: sends a message to a queue and returns the answer: `call(queue, message)`.
      name: that the agent gives itself.

    Returns:
      How many states, ticks and episodes there were.
    """
    model = {"obj_type": "model", "model_name": name, "organization": "", "description": ""}
    request = {"obj_type": "request_experiment", "model": json.dumps(model), "novelty": 0}
    welcome = call(REQUESTS_QUEUE, request)
    queue = welcome["server_rpc_queue"]
    known = {
        "model_experiment_id": welcome["model_experiment_id"],
        "secret": welcome["experiment_secret"],
    }
    counts = {"states": 0, "ticks": 0, "episodes": 0}

    def ask(obj_type: str, **fields: Any) -> dict[str, Any]:
        answer = call(queue, {"obj_type": obj_type, **known, **fields})
        if answer.get("status") == "error":
            raise Refused(answer["error_message"])
        return answer

    def tell(method: str, **values: Any) -> None:
        if hasattr(agent, method):
            getattr(agent, method)(**values)

    def episode(mode: str, number: int) -> None:
        tell(f"{mode}_episode_start", episode_number=number)
        while True:
            data = ask(f"request_{mode}_data")
            third = "feature_label" if mode == "training" else "novelty_indicator"
            choose = getattr(agent, f"{mode}_instance")
            action = choose(feature_vector=data["feature_vector"], **{third: data[third]})
            early = f"end_{'training' if mode == 'training' else 'experiment'}_early"
            answer = ask(
                f"{mode}_data_prediction",
                label_prediction=action,
                end_early=getattr(agent, early, False),
            )
            counts["ticks"] += 1
            told = {name: answer[name] for name in ("performance", "feedback")}
            if answer["obj_type"] == f"{mode}_episode_end":
                break
            tell(f"{mode}_performance", **told)
        names = ("novelty_probability", "novelty_threshold", "novelty", "novelty_characterization")
        report = getattr(agent, f"{mode}_episode_end")(**told)
        ask(f"{mode}_episode_novelty", **dict(zip(names, report, strict=True)))
        counts["episodes"] += 1

    while True:
        state = ask("request_state")
        counts["states"] += 1
        kind = state["obj_type"]
        if kind == "benchmark_request":
            ask("benchmark_data", benchmark_data={"num_logical_cpu": 1})
        elif kind.endswith("_episode_start"):
            episode(kind.partition("_")[0], state["episode_number"])
        elif kind == "trial_start":
            told = {name: state[name] for name in ("trial_number", "novelty_description")}
            tell("trial_start", **told)
            tell("reset_model", filename="")
        elif kind == "training_end":
            tell("training_end")
            tell("train_model")
            tell("save_model", filename="")
        elif kind != "training_model_end":
            tell(kind)
        if kind == "experiment_end":
            return counts


class Line:
    """A connection to a broker that sends a request again when the broker was gone.

    Args:
      url: of the broker.
      tries: connections before it gives up.
      patience: s that an answer is waited for.
    """

    def __init__(self, url: str, tries: int = 60, patience: float = 600.0) -> None:
        self.url, self.tries, self.patience = url, tries, patience
        self.answers: dict[str, bytes] = {}
        self.connect()

    def connect(self) -> None:
        """Connect, with an inbox of this connection's own."""
        import pika

        self.connection = pika.BlockingConnection(pika.URLParameters(self.url))
        self.channel = self.connection.channel()
        # A queue that is not there yet, after the broker was gone, is an error and no silence.
        self.channel.confirm_delivery()
        self.inbox = self.channel.queue_declare("", exclusive=True, auto_delete=True).method.queue
        self.channel.basic_consume(self.inbox, self.arrived, auto_ack=True)

    def arrived(self, channel: Any, method: Any, properties: Any, body: bytes) -> None:
        """Keep an answer."""
        self.answers[properties.correlation_id] = body

    def __call__(self, queue: str, message: dict[str, Any]) -> dict[str, Any]:
        """Send a request and return its answer."""
        import time

        import pika

        known_by = str(uuid.uuid4())
        for left in reversed(range(self.tries)):
            try:
                self.channel.basic_publish(
                    "",
                    queue,
                    json.dumps([message]).encode(),
                    pika.BasicProperties(correlation_id=known_by, reply_to=self.inbox),
                    mandatory=True,
                )
                end = time.monotonic() + self.patience
                while known_by not in self.answers and time.monotonic() < end:
                    self.connection.process_data_events(time_limit=1.0)
                (answer,) = json.loads(self.answers.pop(known_by))
                return answer
            except (pika.exceptions.AMQPError, OSError):
                if not left:
                    raise
                time.sleep(1.0)
                try:
                    self.connect()
                except (pika.exceptions.AMQPError, OSError):
                    continue
        raise RuntimeError("the server does not answer")


def main() -> None:
    """Play at a broker."""
    parser = argparse.ArgumentParser(description="Play a novelty experiment over RabbitMQ.")
    parser.add_argument("--broker", default="amqp://guest:guest@127.0.0.1:5672/%2F")
    parser.add_argument("--name", default="amqp_agent")
    arguments = parser.parse_args()
    print(json.dumps(play(Agent(), Line(arguments.broker), arguments.name)))


if __name__ == "__main__":
    main()
