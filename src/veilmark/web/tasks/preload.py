"""What every job needs, loaded once, in the process that all of them are forked from."""

import veilmark.workbench.anonymize
import veilmark.workbench.init
import veilmark.workbench.measure
import veilmark.workbench.release
import veilmark.workbench.score
import veilmark.workbench.trace  # noqa: F401
