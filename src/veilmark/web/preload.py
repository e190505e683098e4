"""What every job needs, loaded once, in the process that all of them are forked from."""

import veilmark.workbench.anonymizing
import veilmark.workbench.measuring
import veilmark.workbench.releasing
import veilmark.workbench.scoring
import veilmark.workbench.starting
import veilmark.workbench.tracing  # noqa: F401
