"""`jaxsim view`: episodes of any source as a page that can be turned, or as a video.

film = view.of_level(203, "hard", agent="mpc", seed=7)
films = [view.of_run(Path("runs/x"), lifetime=812, episode=37)]
text = jaxsim.render.viewer.page(films)
"""

from evaluation.view.levels import of_level
from evaluation.view.runs import of_run
from evaluation.view.transcripts import of_transcript, of_trial

__all__ = ["of_level", "of_run", "of_transcript", "of_trial"]
