"""Guesses: what each column of a table probably is, by its name and its values, for a first study file.

One look at the first rows tells the shape of a column's values (numbers, dates, e-mail addresses, …), one
statement over the whole table counts them, and rules turn name, shape and counts into a role, in this order:

    values that are addresses of some kind         direct
    a name like "phone", "ssn", "surname"          direct
    dates                                          quasi
    ids                                            person where they repeat, else direct
    ages, years and coordinates                    quasi
    words of health and money                      sensitive
    words of places and demography                 quasi
    nearly unique texts, unique whole numbers      direct
    few different values                           quasi
    other texts                                    quasi, or direct where they are long
    the rest: measurements                         other

Then: hierarchy files beside the data are used, a person column says which value counts where a person's
quasi-identifiers vary, and a column of role other carries how many records it would make unique.

No value of the data is ever part of a guess: reasons hold counts, and the ranges of ages and years.
"""

from veilmark.guess.roles import Guess, guess_columns
from veilmark.guess.text import hints, study_content, study_text

__all__ = ["Guess", "guess_columns", "hints", "study_content", "study_text"]
