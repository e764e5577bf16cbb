"""A naive agent for the Science Birds protocol, written as published agents are.

    jaxsim sciencebirds generate examples/sciencebirds/unordered_sets.xml -o runs/config.xml
    jaxsim sciencebirds serve --config runs/config.xml
    PYTHONPATH=$(jaxsim shims) python examples/sciencebirds/naive_agent_groundtruth.py

It pushes the cart under the falling pole, by the ground truth alone, and says the same of novelty
whenever it is asked.
"""

import argparse

from client.agent_client import AgentClient, GameState

PUSH = 100
"""Length of the vector of a shot; its direction is what counts."""
NOVELTY = (0.9, 0.1, [1, -2, -398879789], 0, "")
"""Likelihoods of novelty and of none, ids of objects, novelty level, description."""
ANNOUNCEMENTS = (
    GameState.NEWTRIAL,
    GameState.NEWTRAININGSET,
    GameState.NEWTESTSET,
    GameState.RESUMETRAINING,
)


class NaiveAgent:
    """Plays an evaluation to its end.

    Args:
      host: address of the server.
      port: of the server.
      agent_id: a number of its own.
    """

    def __init__(self, host: str, port: int, agent_id: int) -> None:
        self.client = AgentClient(host, port)
        self.agent_id = agent_id
        self.levels = self.shots = 0

    def run(self) -> None:
        """Do in each state what it asks for."""
        self.client.connect_to_server()
        self.client.configure(self.agent_id)
        while (state := self.client.get_game_state()) != GameState.EVALUATION_TERMINATED:
            if state == GameState.PLAYING:
                self.client.shoot(*self.aim(self.client.get_ground_truth_without_screenshot()))
                self.shots += 1
            elif state == GameState.REQUESTNOVELTYLIKELIHOOD:
                self.client.report_novelty_likelihood(*NOVELTY)
            elif state in ANNOUNCEMENTS:
                self.client.ready_for_new_set()
            else:
                self.levels += self.client.load_next_available_level() > 0
                self.client.get_novelty_info()
        self.client.disconnect_from_server()

    @staticmethod
    def aim(truth: dict) -> tuple[int, int]:
        """Shoot to the side to which the pole leans and turns most."""
        pole = truth["pole"]
        x, y, z, w = (pole[f"{name}_quaternion"] for name in "xyzw")
        lean = 2 * (x * z + w * y) + pole["y_velocity"] / 2
        roll = 2 * (y * z - w * x) - pole["x_velocity"] / 2
        if abs(lean) >= abs(roll):
            return (PUSH if lean > 0 else -PUSH), 0
        return 0, (PUSH if roll > 0 else -PUSH)


def main() -> None:
    """Play what a server offers."""
    parser = argparse.ArgumentParser(description="Play an evaluation with a naive agent.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=2004)
    parser.add_argument("--agent-id", type=int, default=2888)
    arguments = parser.parse_args()
    agent = NaiveAgent(arguments.host, arguments.port, arguments.agent_id)
    agent.run()
    print(f"{agent.levels} levels, {agent.shots} shots")


if __name__ == "__main__":
    main()
