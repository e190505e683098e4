"""What every job needs, loaded once, in the process that all of them are forked from."""

import veilmark.workbench.measuring
import veilmark.workbench.scoring
import veilmark.workbench.starting  # noqa: F401
