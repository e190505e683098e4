"""Guesses: what each column of a table probably is, by its name and its values, for a first study file.

One look at the first rows tells the shape of a column's values (numbers, dates, e-mail addresses, …), one
statement over the whole table counts them, and the rules below turn both into a role, in this order:

    values that are addresses of some kind         direct
    a name like "phone", "ssn", "surname"          direct
    dates                                          quasi
    ids                                            person where they repeat, else direct
    ages and years                                 quasi
    words of health and money                      sensitive
    words of places and demography                 quasi
    nearly unique texts, unique whole numbers      direct
    few different values                           quasi
    the rest                                       other

No value of the data is ever part of a guess: reasons hold counts, lengths, and ranges of ages and years.
"""

from __future__ import annotations

import ipaddress
import re
import sys
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, partial
from typing import Any

import pyarrow as pa
import yaml

from veilmark.engines import sql
from veilmark.engines.duckdb import DIALECT, DuckTable

__all__ = ["Guess", "guess_columns", "study_text"]

Hierarchy = dict[str, Any]

SAMPLE_ROWS = 10_000
SHAPE_VALUES = 1_000
"""How many different values of the sample decide on a shape."""

EXACT_ROWS = 1_000_000
SAMPLED_DISTINCT = 1_000
SLICE = 64
"""In tables of more rows, columns of more values in the sample are counted in one of so many slices."""

FITS = 0.9
"""The share of values that must have a shape for the column to have it."""

NEARLY_UNIQUE = 0.95
PERSON_SHARE, PERSON_LEAST = (0.05, 0.95), 0.001
"""Different values a record of an id that may be a person's, and of one whose name says so."""

FEW_VALUES, FEW_RECORDS = 100, 30
"""At most so many values are few; with fewer records than that, values tell nothing."""

PLAIN_VALUES = 20
"""So many whole numbers need no intervals."""

OLDEST, YEARS = 130, (1800, 2100)
LONGEST_POSTAL, LONG_TEXT = 12, 100
EXACT_NUMBERS = 2**53
"""Numbers that hierarchies of intervals take are smaller."""


@dataclass(frozen=True)
class Guess:
    """What a column probably is, and why. A column that is not `usable` cannot stand in a study file."""

    column: str
    role: str
    hierarchy: Hierarchy | None
    reason: str
    warnings: tuple[str, ...] = ()
    usable: bool = True


def guess_columns(table: DuckTable) -> list[Guess]:
    """A guess for each column, in the table's order; at most one has the role `person`."""
    facts = _facts(table)
    person = _choose_person(list(facts.values()))
    return [_guess(column, facts.get(column), person) for column in table.columns]


def _guess(column: str, facts: _Facts | None, person: _Facts | None) -> Guess:
    if facts is None:
        return Guess(column, "other", None, "lists, records or bytes", (_FLATTEN,), usable=False)
    if facts is person:
        return _person(facts)
    return next(guess for rule in _RULES if (guess := rule(facts)))


_FLATTEN = "veilmark compares plain values; flatten the column to give it a role"


# --- words in column names ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Topic:
    """What names with certain words are about; `nominal` says that its numbers, if any, are codes."""

    what: str
    role: str
    words: frozenset[str]
    nominal: bool = True
    note: str | None = None


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _topic(what: str, role: str, words: str, nominal: bool = True, note: str | None = None) -> Topic:
    return Topic(what, role, _words(words), nominal, note)


# Words are in lower case, without accents, and several are written as one: "first name" is firstname.

_EMAIL = _topic("an e-mail address", "direct", "email mail emailaddress courriel correo mejl")
_PHONE = _topic(
    "a telephone number",
    "direct",
    """
    phone telephone tel mobile cellphone fax telefon telefone telefono telefoon handy celular movil rufnummer
    phonenumber handynummer
    """,
)
_IDENTITY = _topic(
    "a personal number",
    "direct",
    """
    ssn socialsecurity socialsecuritynumber nino nhs nhsnumber mrn medicalrecordnumber medicalrecordno passport
    passportnumber driverlicense driverslicense driverslicence drivinglicence licensenumber nationalid taxid
    cpf dni curp bsn personnummer personalausweis pesel codicefiscale aadhaar steuernummer
    sozialversicherungsnummer insurancenumber policynumber healthcard healthplan
    """,
)
_ACCOUNT = _topic(
    "an account or a device",
    "direct",
    """
    iban bic accountnumber accountno bankaccount kontonummer creditcard cardnumber vin licenseplate numberplate
    kennzeichen imei imsi macaddress serialnumber cookie ip ipaddress url website homepage username login
    password twitter facebook instagram photo fingerprint signature
    """,
)
_FULL_NAME = _topic(
    "a person's name",
    "direct",
    """
    firstname lastname surname forename givenname familyname middlename maidenname fullname nickname fname
    lname mname vorname nachname familienname geburtsname prenom apellido apellidos sobrenome cognome voornaam
    achternaam fornamn efternamn imie nazwisko initials
    """,
)
_ANY_NAME = _topic("a person's name", "direct", "name names nom nombre nome naam namn")
_ADDRESS = _topic(
    "a street address",
    "direct",
    """
    address addr street streetname strasse adresse direccion endereco indirizzo calle rue adres straat adress
    housenumber houseno hausnummer
    """,
)
_DIRECT = (_EMAIL, _PHONE, _IDENTITY, _ACCOUNT, _ADDRESS)

_THINGS = _words("""
product company organisation organization hospital clinic facility school file event brand species column item
department dept plan course project study table variable test site group category team type class unit ward
station field sheet model host domain
""")
"""Words whose "name" is not a person's."""

_AGE = _topic("an age", "quasi", "age ages alter edad idade eta leeftijd alder ageyears agegroup ageband agerange")
_BIRTH_YEAR = _topic(
    "a year of birth",
    "quasi",
    "yob birthyear yearofbirth yearborn birthyr geburtsjahr anneenaissance anonacimiento",
)
_YEAR = _topic("a year", "quasi", "year yr jahr annee anno")
_DATE = _topic(
    "a date",
    "quasi",
    """
    date dt datum fecha datetime timestamp dob dateofbirth birthdate birthday geburtsdatum geburtstag
    naissance nacimiento nascimento geboortedatum
    """,
)
_POSTAL = _topic(
    "a postal code",
    "quasi",
    """
    zip zipcode zcta postal postalcode postcode plz postleitzahl codepostal codigopostal cep eircode pincode
    postnummer postnr
    """,
)
_PLACE = _topic(
    "a place",
    "quasi",
    """
    city town village county state region province country municipality district borough neighborhood
    neighbourhood parish fips birthplace placeofbirth location ort wohnort stadt bundesland kreis gemeinde
    staat ville pays departement commune ciudad provincia pais estado municipio cidade bairro citta comune
    regione paese plaats gemeente stad kommun
    """,
)
_COORDINATE = _topic("a coordinate", "quasi", "lat lon lng latitude longitude gps")

_KNOWN = "others often know it; make it sensitive where it must not be learned"
_DEMOGRAPHY = (
    _topic("a sex or gender", "quasi", "sex gender geschlecht sexe sexo sesso genero geslacht kon plec"),
    _topic(
        "a race or ethnicity",
        "quasi",
        "race ethnicity ethnic ethnicgroup ethnie raza etnia raca hispanic ancestry",
    ),
    _topic(
        "a marital status",
        "quasi",
        """
        marital maritalstatus marry married marriage marstat familienstand etatcivil estadocivil statocivile
        civilstatus civilstand
        """,
    ),
    _topic("a religion", "quasi", "religion religious faith konfession religione", note=_KNOWN),
    _topic(
        "a nationality or language",
        "quasi",
        """
        nationality citizenship citizen nationalitat nationalite nacionalidad nacionalidade nazionalita
        staatsangehorigkeit immigrant language sprache langue idioma lingua mothertongue
        """,
    ),
    _topic(
        "an occupation",
        "quasi",
        """
        occupation job jobtitle profession employer employment workclass industry military veteran beruf
        metier ocupacion profesion profissao professione beroep yrke
        """,
    ),
    _topic(
        "an education",
        "quasi",
        """
        education educ school schooling degree university college bildung schulabschluss abschluss diplome
        educacion escolaridad escolaridade istruzione opleiding utbildning
        """,
        nominal=False,
        note=_KNOWN,
    ),
    _topic(
        "a family or household",
        "quasi",
        """
        children kids dependents siblings household householdsize familysize kinder enfants hijos filhos figli
        """,
        nominal=False,
    ),
    _topic(
        "a political party",
        "quasi",
        "party partyaffiliation politics partei parti partido partito",
        note=_KNOWN,
    ),
)

_HEALTH = _topic(
    "health data",
    "sensitive",
    """
    health diagnosis diagnoses diag dx disease diseases illness disorder condition conditions icd symptom
    symptoms medication medications drug drugs medicine prescription treatment therapy procedure surgery cpt
    snomed atc hiv aids covid cancer tumor tumour diabetes hypertension asthma depression mental psychiatric
    allergy allergies comorbidity complication pregnancy pregnant abortion genetic genotype mutation dna
    biopsy pathology testresult result results outcome prognosis severity disability handicap smoker smoking
    alcohol addiction substance vaccine vaccination causeofdeath death mortality diagnose krankheit medikament
    behandlung befund therapie maladie diagnostic traitement medicament diagnostico enfermedad medicamento
    tratamiento doenca tratamento diagnosi malattia farmaco ziekte sjukdom
    """,
)
_MONEY = _topic(
    "a money matter",
    "sensitive",
    """
    income incomes salary wage wages earnings pay payment poverty debt debts loan mortgage credit balance cost
    costs charge charges amount revenue tax taxes benefit benefits welfare asset assets wealth networth bonus
    rent pension bill billing expense expenses expenditure einkommen gehalt lohn schulden kosten armut revenu
    salaire dette cout ingreso ingresos salario sueldo deuda coste costo renda divida custo reddito stipendio
    debito inkomen salaris schuld inkomst
    """,
)
_CONDUCT = _topic(
    "a private matter",
    "sensitive",
    """
    crime criminal conviction convictions offense offence arrest arrests sexualorientation orientation
    sexuality
    """,
)
_SENSITIVE = (_HEALTH, _MONEY, _CONDUCT)

_MEASURES = _words("""
score level value values count bp pressure bmi temp temperature weight height pulse rate ratio percent pct
hours minutes seconds duration los length width size distance speed quantity qty population pop total sum mean
median avg average min max std
""")
"""Words of measurements, which have few different values at times and yet tell nobody apart."""

_ID_WORDS = _words(
    "id ids uid uuid guid pid key no nr num number identifier identifiant kennung nummer numero nro seqn"
)
_PERSON_WORDS = _words("""
patient person subject voter member participant customer client user employee student respondent individual
citizen resident donor insured beneficiary enrollee pupil worker kunde mitglied teilnehmer personne paciente
persona sujeto cliente pessoa paziente klant
""")
_NOT_PERSONS = _words("""
household family hospital clinic provider doctor physician nurse visit encounter order invoice transaction event
episode claim admission stay product item store site study room ward department location batch sample specimen
test lab session device row record line page company school class course project
""")
"""Words of things that have ids of their own."""

_GLUED_ID = re.compile(
    rf"({'|'.join(sorted(_PERSON_WORDS))}|.*pers|.*subj|.*pat|cust|emp|stud)(id|no|nr|num|number|key)"
)
_TOKEN = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_A-Za-z]+|\d+")
_LONGEST_PHRASE = 3


def _tokens(name: str) -> tuple[str, ...]:
    """The words of a name: split at signs, digits and capitals, without accents, in lower case."""
    plain = unicodedata.normalize("NFKD", name.replace("ß", "ss"))
    letters = "".join(c for c in plain if not unicodedata.combining(c))
    return tuple(token.lower() for token in _TOKEN.findall(letters))


def _phrases(tokens: Sequence[str]) -> frozenset[str]:
    """Each word, and up to three neighbours written as one."""
    starts = range(len(tokens))
    return frozenset("".join(tokens[i : i + n]) for i in starts for n in range(1, _LONGEST_PHRASE + 1))


# --- shapes of values --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Shape:
    """What values look like.

    `format` is a date's, where it is not ISO; it is `doubtful` where day and month may be the other way round.
    """

    name: str
    format: str | None = None
    doubtful: bool = False

    @property
    def numeric(self) -> bool:
        return self.name in ("integer", "decimal")


_TEXT, _INTEGER, _DECIMAL, _DAY = Shape("text"), Shape("integer"), Shape("decimal"), Shape("date")

_URL = re.compile(r"(https?://|www\.)\S+", re.IGNORECASE)
_MAIL = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s.]{2,}")
_SSN = re.compile(r"\d{3}-\d{2}-\d{4}", re.ASCII)
_DIALLED = re.compile(r"(\+|\(|\d+[ ./-]+\(?\d+\)?[ ./-])[\d ()./-]*\d", re.ASCII)
_THOUSANDS = re.compile(r"\d{1,3}([ .]\d{3})+", re.ASCII)
# With a leading zero it is a code, not a number.
_WHOLE = re.compile(r"-?(0|[1-9]\d*)(\.0*)?", re.ASCII)
_FRACTION = re.compile(r"-?((0|[1-9]\d*)(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_ISO = re.compile(
    r"\d{4}-\d{2}-\d{2}([ T]([01]\d|2[0-3]):[0-5]\d(:([0-5]\d|60)([.,]\d+)?)?(Z|[+-]\d{2}(:?\d{2})?)?)?",
    re.ASCII,
)

_DAYS = ("%Y/%m/%d", "%m/%d/%Y", "%d/%m/%Y", "%d.%m.%Y", "%m-%d-%Y", "%d-%m-%Y", "%d-%b-%Y", "%d %b %Y")
_DATE_FORMATS = tuple(day + time for time in ("", " %H:%M", " %H:%M:%S") for day in _DAYS)
_BARE_DATE = "%Y%m%d"


def _is_ip(value: str) -> bool:
    try:
        ipaddress.ip_address(value)
    except ValueError:
        return False
    return True


def _is_phone(value: str) -> bool:
    """Enough digits, and signs between them as people write telephone numbers."""
    digits = sum(c.isdigit() for c in value)
    return 7 <= digits <= 15 and bool(_DIALLED.fullmatch(value)) and not _THOUSANDS.fullmatch(value)


def _is_date(value: str, form: str | None = None) -> bool:
    if form is None and not _ISO.fullmatch(value):
        return False
    try:
        datetime.strptime(value if form else value[:10], form or "%Y-%m-%d")
    except ValueError:
        return False
    return True


def _is_bare_date(value: str) -> bool:
    return len(value) == 8 and value.isdecimal() and _is_date(value, _BARE_DATE)


_TESTS: dict[str, Callable[[str], object]] = {
    "e-mail addresses": _MAIL.fullmatch,
    "web addresses": _URL.fullmatch,
    "IP addresses": _is_ip,
    "social security numbers": _SSN.fullmatch,
    "date": _is_date,
    "integer": _WHOLE.fullmatch,
    "decimal": _FRACTION.fullmatch,
}
_ADDRESSES = ("e-mail addresses", "web addresses", "IP addresses", "social security numbers")
_PHONES = "telephone numbers"


def _shape(values: Sequence[str], dated: bool) -> Shape:
    """The shape of some different values; only where the name is `dated` may bare digits be dates."""
    if not values:
        return _TEXT
    if dated and _fit(values, _is_bare_date):
        return Shape("date", _BARE_DATE)
    name = next((name for name, test in _TESTS.items() if _fit(values, test)), None)
    if name:
        return Shape(name)
    return _formatted_date(values) or (Shape(_PHONES) if _fit(values, _is_phone) else _TEXT)


def _fit(values: Sequence[str], test: Callable[[str], object]) -> int:
    """How many values pass the test, or 0 as soon as too many do not."""
    allowed = int(len(values) * (1 - FITS))
    failed = 0
    for value in values:
        failed += not test(value)
        if failed > allowed:
            return 0
    return len(values) - failed


def _formatted_date(values: Sequence[str]) -> Shape | None:
    """The date format that fits most values."""
    fits = {form: _fit(values, partial(_is_date, form=form)) for form in _DATE_FORMATS}
    best = max(fits.values())
    forms = [form for form, fit in fits.items() if fit == best]
    return Shape("date", forms[0], doubtful=len(forms) > 1) if best else None


# --- facts -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Look:
    """What the first rows show of a column."""

    kind: str
    shape: Shape
    distinct: int

    @property
    def textual(self) -> bool:
        """Whether the engine holds texts, whatever they look like."""
        return self.kind in ("text", "other")


@dataclass(frozen=True)
class _Counts:
    """What the whole table says of a column; `exact` is false where `distinct` is an estimate.

    `low` and `high` are of numbers, `misfits` the values that are not of the column's shape.
    """

    records: int
    present: int
    distinct: int
    exact: bool
    shortest: int | None
    longest: int | None
    low: float | None
    high: float | None
    misfits: int


@dataclass(frozen=True)
class _Facts:
    """All that is known of a column."""

    column: str
    shape: Shape
    counts: _Counts
    tokens: tuple[str, ...]

    @cached_property
    def phrases(self) -> frozenset[str]:
        return _phrases(self.tokens)

    def says(self, *topics: Topic) -> Topic | None:
        """The first of the topics that the name is about."""
        return next((topic for topic in topics if topic.words & self.phrases), None)

    def has_word(self, words: frozenset[str]) -> bool:
        return bool(words & self.phrases)

    @property
    def share(self) -> float:
        """Different values a value."""
        return self.counts.distinct / self.counts.present if self.counts.present else 0.0

    @property
    def unique(self) -> bool:
        return self.counts.distinct == self.counts.present

    @property
    def enough(self) -> bool:
        """Whether there are records enough for the values to tell anything."""
        return self.counts.present >= FEW_RECORDS

    @property
    def nearly_unique(self) -> bool:
        return self.enough and self.share >= NEARLY_UNIQUE

    @property
    def few(self) -> bool:
        """Few values, each of them in several records."""
        return self.counts.distinct <= FEW_VALUES and self.share <= 0.2

    @property
    def flag(self) -> bool:
        """A yes or no rather than what the name says."""
        return self.enough and self.counts.distinct <= 3 and _lengths(self)[1] <= len("false")

    @property
    def textual(self) -> bool:
        return self.shape.name in ("text", _PHONES)

    def __str__(self) -> str:
        """`1,000 values in 30,162 records, 12 missing`."""
        counts, about = self.counts, "" if self.counts.exact else "about "
        missing = counts.records - counts.present
        tail = f", {missing:,} missing" if missing else ""
        return f"{about}{_many(counts.distinct, 'value')} in {_many(counts.records, 'record')}{tail}"


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _facts(table: DuckTable) -> dict[str, _Facts]:
    """The facts of each column that holds plain values."""
    looks = _looks(table)
    counts = _counts(table, looks)
    return {c: _Facts(c, look.shape, counts[c], _tokens(c)) for c, look in looks.items()}


def _looks(table: DuckTable) -> dict[str, _Look]:
    """What the first rows show, column by column."""
    kinds = {c: kind for c, kind in table.columns.items() if kind != "nested"}
    if not kinds:
        return {}
    texts = (f"CAST({_clean(c, kind)} AS VARCHAR) AS v{i}" for i, (c, kind) in enumerate(kinds.items()))
    rows = table._run(f"SELECT {', '.join(texts)} FROM ({sql.head(table.name, SAMPLE_ROWS)})")
    return {c: _look(c, kind, rows[f"v{i}"]) for i, (c, kind) in enumerate(kinds.items())}


def _look(column: str, kind: str, texts: pa.ChunkedArray) -> _Look:
    values = texts.unique().drop_null()
    dated = bool(_DATE.words & _phrases(_tokens(column)))
    shape = _DAY if kind == "date" else _shape(values[:SHAPE_VALUES].to_pylist(), dated)
    if kind in ("number", "float") and shape not in (_INTEGER, Shape("date", _BARE_DATE)):
        shape = _DECIMAL
    return _Look(kind, shape, len(values))


def _clean(column: str, kind: str) -> str:
    return f"CAST({DIALECT.name(column)} AS VARCHAR)" if kind == "other" else DIALECT.clean(column, kind)


def _counts(table: DuckTable, looks: dict[str, _Look]) -> dict[str, _Counts]:
    """Count all columns in one statement over the whole table."""
    if not looks:
        return {}
    large = _exceeds(table, EXACT_ROWS)
    sliced = [large and look.distinct > SAMPLED_DISTINCT for look in looks.values()]
    asked = [_asked(f"v{i}", look, sliced[i]) for i, look in enumerate(looks.values())]
    clean = ", ".join(f"{_clean(c, look.kind)} AS v{i}" for i, (c, look) in enumerate(looks.items()))
    listed = ", ".join(expression for column in asked for expression in column)
    found = table._run(f"SELECT count(*), {listed} FROM (SELECT {clean} FROM {table.name})", "Counting")
    records, *rest = (column[0].as_py() for column in found.columns)
    rows = zip(*[iter(rest)] * len(asked[0]), strict=True)
    return {c: _counted(records, row, part) for c, row, part in zip(looks, rows, sliced, strict=True)}


def _exceeds(table: DuckTable, rows: int) -> bool:
    """Whether the table has more rows, without reading more than those."""
    found = table._run(f"SELECT count(*) AS n FROM ({sql.head(table.name, rows + 1)})")
    return bool(found["n"][0].as_py() > rows)


def _asked(value: str, look: _Look, sliced: bool) -> list[str]:
    """What is counted of a column, in the order that `_counted` takes it."""
    fits = _fits(value, look)
    length = f"length({value})" if look.textual else "NULL"
    number = f"CASE WHEN {fits} THEN TRY_CAST({value} AS DOUBLE) END" if look.shape.numeric else "NULL"
    return [
        f"count({value})",
        *_distinct(value, sliced),
        f"min({length})",
        f"max({length})",
        f"min({number})",
        f"max({number})",
        f"count({value}) FILTER (WHERE NOT coalesce({fits}, false))",
    ]


def _distinct(value: str, sliced: bool) -> list[str]:
    """How many different values there are, and among how many records they were counted.

    A slice holds all the records of a 64th of the values, so that a value that repeats is seen to repeat.
    """
    part = f"CASE WHEN hash({value}) % {SLICE} = 0 THEN {value} END" if sliced else value
    return [f"count(DISTINCT {part})", f"count({part})"]


def _fits(value: str, look: _Look) -> str:
    """Whether a value has the column's shape, as hierarchies demand it."""
    if look.shape.numeric:
        return _fits_number(value, look.textual)
    if look.shape.name != "date" or look.kind == "date":
        return "true"
    if look.shape.format:
        return _fits_format(f"CAST({value} AS VARCHAR)", look.shape.format)
    iso = f"regexp_full_match({value}, {sql.literal(_ISO.pattern)})"
    return f"({iso} AND TRY_CAST({value}[:10] AS DATE) IS NOT NULL)"


def _fits_format(text: str, form: str) -> str:
    """A test for dates of a format; DuckDB's own is content with years of two digits."""
    looks = re.sub("%.", lambda part: _DATE_PARTS.get(part[0], r"\d{1,2}"), form.replace(".", "[.]"))
    date = f"try_strptime({text}, {sql.literal(form)}) IS NOT NULL"
    return f"(regexp_full_match({text}, {sql.literal(looks)}) AND {date})"


_DATE_PARTS = {"%Y": r"\d{4}", "%b": "[A-Za-z]{3}"}


def _fits_number(value: str, textual: bool) -> str:
    """A test for numbers that takes a fraction of the time of a regular expression.

    The cast alone would let pass a leading plus, spaces around and underscores within.
    """
    number = f"abs(TRY_CAST({value} AS DOUBLE)) < {EXACT_NUMBERS}"
    bare = f"trim({value}, {sql.literal(_AROUND)}) = {value} AND NOT contains({value}, '_')"
    return f"({number} AND {bare})" if textual else number


_AROUND = "+ \t\n\r\v\f"


def _counted(records: int, row: Sequence[Any], sliced: bool) -> _Counts:
    present, distinct, among, *rest = row
    if sliced:
        distinct = present if distinct == among else min(present, distinct * SLICE)
    return _Counts(records, present, distinct, not sliced, *rest)


# --- the person --------------------------------------------------------------------------------------------


def _id_rank(facts: _Facts) -> int:
    """How surely a name is of an id of persons: 3 says so, 2 is likely, 1 is any id, 0 none."""
    tokens = [t for t in facts.tokens if not t.isdigit()]
    if not tokens or facts.says(_POSTAL, _PLACE):
        return 0
    if any(_GLUED_ID.fullmatch(t) for t in tokens):
        return 3
    if facts.says(_IDENTITY) or (facts.enough and all(t in _PERSON_WORDS for t in tokens)):
        return 2
    if tokens[-1] not in _ID_WORDS and tokens[0] != "id":
        return 0
    return 3 if _id_noun(tokens) in _PERSON_WORDS else 1


def _id_noun(tokens: Sequence[str]) -> str:
    """Whose id it is: `subject` of study_subject_id, `visit` of patient_visit_id, `paciente` of id_paciente."""
    if tokens[-1] not in _ID_WORDS:
        return tokens[1] if len(tokens) > 1 else ""
    return next((t for t in reversed(tokens) if t not in _ID_WORDS), "")


def _choose_person(facts: Sequence[_Facts]) -> _Facts | None:
    """The column that most likely tells persons apart where they have several records."""
    candidates = [f for f in facts if _repeats_like_persons(f)]
    return max(candidates, key=_id_rank, default=None)


def _repeats_like_persons(facts: _Facts) -> bool:
    rank, counts = _id_rank(facts), facts.counts
    if not rank or facts.says(_EMAIL, _PHONE, _ACCOUNT, _ADDRESS) or facts.shape.name in ("date", "decimal"):
        return False
    if facts.unique or counts.distinct < 2 or counts.present < FITS * counts.records:
        return False
    if rank == 3:
        return facts.share >= PERSON_LEAST
    if facts.flag or facts.has_word(_NOT_PERSONS):
        return False
    return PERSON_SHARE[0] <= facts.share <= PERSON_SHARE[1]


def _person(facts: _Facts) -> Guess:
    counts = facts.counts
    missing = counts.records - counts.present
    each = f"about {counts.present / counts.distinct:.1f} records a person"
    warnings = [f"empty in {_many(missing, 'record')}, and `measure` must know whose each is"]
    return _made(facts, "person", f"an id that repeats: {facts}, {each}", None, *warnings[: bool(missing)])


# --- rules -------------------------------------------------------------------------------------------------


def _made(facts: _Facts, role: str, reason: str, hierarchy: Hierarchy | None = None, *warnings: str) -> Guess:
    return Guess(facts.column, role, hierarchy, reason, warnings)


def _named(facts: _Facts, topic: Topic, hierarchy: Hierarchy | None = None, *warnings: str) -> Guess:
    notes = (topic.note,) if topic.note else ()
    return _made(facts, topic.role, f"named like {topic.what}: {facts}", hierarchy, *notes, *warnings)


def _empty(facts: _Facts) -> Guess | None:
    """No value at all: only a name that tells of direct identifiers counts."""
    if facts.counts.present:
        return None
    guess = _direct_by_name(facts)
    return guess or _made(facts, "other", f"no values: {_many(facts.counts.records, 'record')}, all missing")


def _direct_by_content(facts: _Facts) -> Guess | None:
    """E-mail, web and IP addresses, social security and telephone numbers."""
    name = facts.shape.name
    if name in _ADDRESSES or (name == _PHONES and not facts.few):
        return _made(facts, "direct", f"values that look like {name}: {facts}")
    return None


def _direct_by_name(facts: _Facts) -> Guess | None:
    """Names, addresses, numbers of persons; not the city of an address, nor whether there is a telephone."""
    if facts.says(_POSTAL, _PLACE) or facts.shape.name in ("date", "decimal"):
        return None
    name = facts.says(_FULL_NAME) or (None if _names_things(facts) else facts.says(_ANY_NAME))
    topic = name or (None if facts.flag else facts.says(*_DIRECT))
    return _named(facts, topic) if topic else None


def _names_things(facts: _Facts) -> bool:
    if facts.has_word(_PERSON_WORDS):
        return False
    return facts.has_word(_THINGS) or facts.says(*_SENSITIVE, *_DEMOGRAPHY) is not None


def _date(facts: _Facts) -> Guess | None:
    """Dates of birth and of events alike: others may know both."""
    if facts.shape.name != "date":
        return None
    form = {"format": facts.shape.format} if facts.shape.format else {}
    hierarchy, warnings = _tolerant(facts, {"dates": ["month", "year", "decade"], **form})
    if facts.shape.doubtful:
        warnings += ("day and month may be the other way round; see to the format",)
    return _made(facts, "quasi", f"dates: {facts}", hierarchy, *warnings)


def _tolerant(facts: _Facts, hierarchy: Hierarchy) -> tuple[Hierarchy, tuple[str, ...]]:
    """The hierarchy, in which values that are not of the column's shape become `*`, and a word about them."""
    if not facts.counts.misfits:
        return hierarchy, ()
    odd = f"{_many(facts.counts.misfits, 'record')} with another kind of value, which becomes * at once"
    return hierarchy | {"others": "*"}, (odd,)


def _id(facts: _Facts) -> Guess | None:
    """Ids that are not the person: of the record where unique, else keys to other tables."""
    if not _id_rank(facts) or facts.shape == _DECIMAL:
        return None
    if facts.unique:
        return _made(facts, "direct", f"an id that is unique: {facts}, one record a person")
    if facts.few or not facts.enough:
        return None
    return _made(facts, "direct", f"an id that repeats: {facts}; a key to another table or to persons")


def _age(facts: _Facts) -> Guess | None:
    if not facts.says(_AGE):
        return None
    if not facts.shape.numeric:
        return _named(facts, _AGE, None, *_unnested(facts))
    low, high = _range(facts)
    hierarchy, warnings = _tolerant(facts, {"intervals": [5, 10, 20]})
    if low < 0 or high > OLDEST:
        warnings += ("not all are ages in years: codes for missing ones, or another unit",)
    reason = f"named like an age: {facts}, from {low:g} to {high:g}"
    return _made(facts, "quasi", reason, hierarchy, *warnings)


def _range(facts: _Facts) -> tuple[float, float]:
    return facts.counts.low or 0.0, facts.counts.high or 0.0


def _year(facts: _Facts) -> Guess | None:
    topic, (low, high) = facts.says(_BIRTH_YEAR, _YEAR), _range(facts)
    if topic is None or facts.shape != _INTEGER or low < YEARS[0] or high > YEARS[1]:
        return None
    hierarchy, warnings = _intervals(facts) if topic is _BIRTH_YEAR else _number_levels(facts)
    reason = f"named like {topic.what}: {facts}, from {low:.0f} to {high:.0f}"
    return _made(facts, "quasi", reason, hierarchy, *warnings)


def _intervals(facts: _Facts) -> tuple[Hierarchy | None, tuple[str, ...]]:
    """Nested intervals for the range of the numbers, none where it is very short."""
    low, high = _range(facts)
    widths = _nested_widths(high - low)
    return _tolerant(facts, {"intervals": widths}) if widths else (None, ())


_STEPS = {2: (5, 2), 5: (2, 2), 10: (5, 2)}
"""By the first width: how many times each next one is the one before, so that all are 1, 2 or 5 times 10ⁿ."""


def _nested_widths(span: float) -> list[int]:
    """Up to three nested widths, the first the largest of which 15 go into the span."""
    firsts = [(digit * 10**power, steps) for power in range(15) for digit, steps in _STEPS.items()]
    width, (more, still_more) = max((f for f in firsts if f[0] * 15 <= span), default=firsts[0])
    return [w for w in (width, width * more, width * more * still_more) if w < span]


def _number_levels(facts: _Facts) -> tuple[Hierarchy | None, tuple[str, ...]]:
    """Intervals for whole numbers of more than a few values."""
    many = facts.shape == _INTEGER and facts.counts.distinct > PLAIN_VALUES
    return _intervals(facts) if many else (None, ())


def _date_by_name(facts: _Facts) -> Guess | None:
    """A date in a form that was not recognized."""
    if not facts.says(_DATE) or facts.flag:
        return None
    return _named(facts, _DATE, None, "the form of the dates was not recognized; add a hierarchy with its format")


def _sensitive(facts: _Facts) -> Guess | None:
    topic = facts.says(*_SENSITIVE)
    return _named(facts, topic) if topic else None


def _postal(facts: _Facts) -> Guess | None:
    if not facts.says(_POSTAL):
        return None
    shortest, longest = _lengths(facts)
    if not 0 < longest <= LONGEST_POSTAL:
        return _named(facts, _POSTAL, None, *_unnested(facts), *_singles_out(facts))
    odd = ("the lengths differ: leading zeros may be lost",) if facts.shape.numeric and shortest < longest else ()
    return _named(facts, _POSTAL, {"mask": longest}, *odd, *_singles_out(facts))


def _lengths(facts: _Facts) -> tuple[int, int]:
    """The lengths of the shortest and the longest value; of whole numbers, as they are printed."""
    counts = facts.counts
    if counts.longest is None and facts.shape == _INTEGER:
        sizes = [len(f"{number:.0f}") for number in _range(facts)]
        return min(sizes), max(sizes)
    return counts.shortest or 0, counts.longest or 0


def _coordinate(facts: _Facts) -> Guess | None:
    if not facts.says(_COORDINATE) or not facts.shape.numeric:
        return None
    hierarchy, warnings = _tolerant(facts, {"intervals": [0.01, 0.1, 1]})
    return _named(facts, _COORDINATE, hierarchy, *warnings, "exact coordinates lead to a home")


def _quasi_by_name(facts: _Facts) -> Guess | None:
    topic = facts.says(*_DEMOGRAPHY, _PLACE)
    if topic is None or facts.shape == _DECIMAL:
        return None
    if topic is _PLACE and facts.textual and facts.nearly_unique:
        return None
    hierarchy, warnings = (None, ()) if topic.nominal else _number_levels(facts)
    unnested = () if hierarchy else _unnested(facts)
    return _named(facts, topic, hierarchy, *warnings, *unnested, *_singles_out(facts))


def _unnested(facts: _Facts) -> tuple[str, ...]:
    if facts.counts.distinct <= FEW_VALUES:
        return ()
    return ("no hierarchy is known for so many values; write one, or they can only be kept or hidden",)


def _singles_out(facts: _Facts) -> tuple[str, ...]:
    if facts.nearly_unique:
        return ("nearly unique: it looks like a direct identifier",)
    return ("many of its values are unique",) if facts.enough and facts.share >= 0.5 else ()


def _unique_text(facts: _Facts) -> Guess | None:
    if facts.textual and facts.nearly_unique:
        return _made(facts, "direct", f"nearly unique text: {facts}")
    return None


def _unique_number(facts: _Facts) -> Guess | None:
    whole = facts.shape == _INTEGER and facts.counts.present == facts.counts.records
    if whole and facts.unique and facts.enough:
        reason = f"a different whole number in every record: {facts}"
        return _made(facts, "direct", reason, None, "if it is a measurement, its role is other or sensitive")
    return None


def _few(facts: _Facts) -> Guess | None:
    """Few different values that are no measurement: people may know them of each other."""
    if not facts.few or facts.counts.distinct == 1 or facts.shape == _DECIMAL or facts.has_word(_MEASURES):
        return None
    hierarchy, warnings = _number_levels(facts)
    return _made(facts, "quasi", f"few different values: {facts}", hierarchy, *warnings)


def _other(facts: _Facts) -> Guess:
    if facts.counts.distinct == 1 and facts.counts.present > 1:
        return _made(facts, "other", f"the same in all records: {facts}")
    measure = facts.shape == _DECIMAL or (facts.shape.numeric and facts.has_word(_MEASURES))
    reason = "a measurement" if measure else "nothing known by its name or values"
    return _made(facts, "other", f"{reason}: {facts}", None, *_other_warnings(facts))


def _other_warnings(facts: _Facts) -> tuple[str, ...]:
    if not facts.enough:
        return ("too few records to judge by the values",)
    if facts.textual and (facts.counts.longest or 0) >= LONG_TEXT:
        return ("long texts may name persons",)
    return _singles_out(facts) if facts.textual else ()


_RULES: tuple[Callable[[_Facts], Guess | None], ...] = (
    _empty,
    _direct_by_content,
    _direct_by_name,
    _date,
    _id,
    _age,
    _year,
    _date_by_name,
    _coordinate,
    _sensitive,
    _postal,
    _quasi_by_name,
    _unique_text,
    _unique_number,
    _few,
    _other,
)


# --- the study file ----------------------------------------------------------------------------------------

_HEADER = """\
# Made by `veilmark init`. Every role below is a guess from a column's name and values; the comment says why.
# Read each line and mend what is wrong. Then go on with: veilmark measure study.yaml
#
#   direct     names a person; left out of what is published
#   quasi      others may know it of a person; made coarser, level by level of its hierarchy
#   sensitive  what nobody should learn of a person
#   other      published as it is
"""
_HINTS = {
    "quasi": "# No quasi-identifier was recognized. Give the role quasi to what others may know of a person.\n",
    "sensitive": "# No sensitive column was recognized; without one, only k is measured. Is there really none?\n",
}

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*")
_RESERVED = _words("y n yes no on off true false null")
_LONGEST_KEY = 1_000
"""YAML takes no longer key on a line of its own."""

_ALIGNED = 24


def study_text(source: str, guesses: Sequence[Guess]) -> str:
    """A study file with each guess on a line of its own and its reason beside it."""
    person = next((g for g in guesses if g.role == "person"), None)
    listed = [g for g in guesses if g is not person]
    lines = ["version: 1", f"source: {_scalar(source)}"]
    if person:
        lines.append(f"person: {_scalar(person.column)}{_comment(person)}")
    lines.append("attributes:" if any(g.usable for g in listed) else "attributes: {}")
    return _header(guesses) + "\n".join([*lines, *_attributes(listed)]) + "\n"


def _header(guesses: Sequence[Guess]) -> str:
    roles = {g.role for g in guesses}
    return _HEADER + "".join(hint for role, hint in _HINTS.items() if role not in roles) + "\n"


def _attributes(guesses: Sequence[Guess]) -> list[str]:
    width = min(_ALIGNED, max((len(_scalar(g.column)) for g in guesses), default=0)) + 1
    return [_attribute(guess, width) for guess in guesses]


def _attribute(guess: Guess, width: int) -> str:
    """`  age: {role: quasi, hierarchy: {intervals: [5, 10, 20]}}  # reason`; a comment where not usable."""
    key = _scalar(guess.column)
    content = {"role": guess.role} | ({"hierarchy": guess.hierarchy} if guess.hierarchy else {})
    value = _dump(content, default_flow_style=True, sort_keys=False) + _comment(guess)
    if not guess.usable:
        return f"  # {key}: {value}"
    if len(key) > _LONGEST_KEY:
        return f"  ? {key}\n  : {value}"
    return f"  {key + ':':<{width}} {value}"


def _comment(guess: Guess) -> str:
    """The reason and the warnings, at the end of a line."""
    warnings = "; ".join(guess.warnings)
    text = guess.reason + (f". Check: {warnings}" if warnings else "")
    return "  # " + "".join(c for c in " ".join(text.split()) if c.isprintable())


def _scalar(text: str) -> str:
    """A text as YAML on one line, in quotes unless it is plain."""
    if _PLAIN.fullmatch(text) and text.lower() not in _RESERVED:
        return text
    return _dump(text, default_style='"')


def _dump(content: Any, **style: Any) -> str:
    return str(yaml.safe_dump(content, allow_unicode=True, width=sys.maxsize, **style)).strip("\n")
