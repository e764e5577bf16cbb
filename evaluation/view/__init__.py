"""`jaxsim view`: episodes of any source as an interactive 3D page, or as a video.

film = view.of_level(203, "hard", agent="mpc", seed=7)
films = [view.of_run(Path("runs/x"), lifetime=812, episode=37)]
text = jaxsim.render.viewer.page(films)
"""

from typing import TYPE_CHECKING

from evaluation.lazy import exports

if TYPE_CHECKING:
    from evaluation.view.levels import of_level as of_level
    from evaluation.view.runs import of_run as of_run
    from evaluation.view.transcripts import of_transcript as of_transcript
    from evaluation.view.transcripts import of_trial as of_trial

__getattr__, __dir__ = exports(__name__)
