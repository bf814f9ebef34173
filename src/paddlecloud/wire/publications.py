"""How long a link to a file may work: the command line refuses what the server would."""

from __future__ import annotations

SHORTEST_LINK_S = 60
LONGEST_LINK_S = 365 * 86400  # none is for ever: the forgotten ones are those that leak
