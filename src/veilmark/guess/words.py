"""What words in column names tell, in English, German, French and Spanish.

Words are in lower case, without accents, and several are written as one: "first name" is firstname.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Topic:
    """What names with certain words are about, and what to say of it.

    Its numbers go into intervals of the given `widths`, or where it is `ordered` into ones that fit their range.
    """

    what: str
    role: str
    words: frozenset[str]
    widths: tuple[float, ...] = ()
    ordered: bool = False
    note: str | None = None


def words_of(text: str) -> frozenset[str]:
    return frozenset(text.split())


# --- direct identifiers ------------------------------------------------------------------------------------

EMAIL = Topic("an e-mail address", "direct", words_of("email mail emailaddress courriel correo"))
PHONE = Topic(
    "a telephone number",
    "direct",
    words_of("""
        phone telephone tel mobile cellphone fax phonenumber telefon handy rufnummer handynummer telefono celular movil
    """),
)
IDENTITY = Topic(
    "a personal number",
    "direct",
    words_of("""
        ssn socialsecurity socialsecuritynumber nino nhs nhsnumber mrn medicalrecordnumber medicalrecordno passport
        passportnumber driverlicense driverslicense driverslicence drivinglicence licensenumber nationalid taxid
        insurancenumber policynumber healthcard healthplan personalausweis steuernummer sozialversicherungsnummer
        dni curp
    """),
)
ACCOUNT = Topic(
    "an account or a device",
    "direct",
    words_of("""
        iban bic accountnumber accountno bankaccount creditcard cardnumber vin licenseplate numberplate imei imsi
        macaddress serialnumber cookie ip ipaddress url website homepage username login password twitter facebook
        instagram photo fingerprint signature kontonummer kennzeichen
    """),
)
ADDRESS = Topic(
    "a street address",
    "direct",
    words_of("address addr street streetname housenumber houseno strasse hausnummer adresse rue direccion calle"),
)
FULL_NAME = Topic(
    "a person's name",
    "direct",
    words_of("""
        firstname lastname surname forename givenname familyname middlename maidenname fullname nickname fname lname
        mname initials vorname nachname familienname geburtsname prenom apellido apellidos
    """),
)
ANY_NAME = Topic("a person's name", "direct", words_of("name names nom nombre"))
REACH = (EMAIL, PHONE, ACCOUNT, ADDRESS)

# --- quasi-identifiers -------------------------------------------------------------------------------------

AGE = Topic("an age", "quasi", words_of("age ages ageyears agegroup ageband agerange alter edad"), (5, 10, 20))
BIRTH_YEAR = Topic(
    "a year of birth",
    "quasi",
    words_of("yob birthyear yearofbirth yearborn birthyr geburtsjahr anneenaissance anonacimiento"),
    (5, 10, 20),
)
YEAR = Topic("a year", "quasi", words_of("year yr jahr annee anno"), ordered=True)
DATE = Topic(
    "a date",
    "quasi",
    words_of("""
        date dt datetime timestamp dob dateofbirth birthdate birthday datum geburtsdatum geburtstag naissance fecha
        nacimiento
    """),
    note="the date format was not recognized, so the dates can only be kept or replaced by *. Write them in one "
    "format, such as 2024-03-05, and run init again, or add a hierarchy with their format",
)
COORDINATE = Topic(
    "a coordinate",
    "quasi",
    words_of("lat lon lng latitude longitude gps"),
    (0.01, 0.1, 1),
    note="exact coordinates can identify a home",
)
POSTAL = Topic(
    "a postal code",
    "quasi",
    words_of("zip zipcode zcta postal postalcode postcode plz postleitzahl codepostal codigopostal"),
)
PLACE = Topic(
    "a place",
    "quasi",
    words_of("""
        city town village county state region province country municipality district borough neighborhood
        neighbourhood parish fips birthplace placeofbirth location ort wohnort stadt bundesland kreis gemeinde staat
        ville pays departement commune ciudad provincia pais municipio
    """),
)

_KNOWN = "others often know it; make it sensitive if nobody must learn it"
DEMOGRAPHY = (
    Topic("a sex or gender", "quasi", words_of("sex gender geschlecht sexe sexo genero")),
    Topic(
        "a race or ethnicity",
        "quasi",
        words_of("race ethnicity ethnic ethnicgroup hispanic ancestry ethnie raza etnia"),
    ),
    Topic(
        "a marital status",
        "quasi",
        words_of("""
            marital maritalstatus marry married marriage marstat civilstatus familienstand etatcivil estadocivil
        """),
    ),
    Topic("a religion", "quasi", words_of("religion religious faith konfession"), note=_KNOWN),
    Topic(
        "a nationality or language",
        "quasi",
        words_of("""
            nationality citizenship citizen immigrant language mothertongue nationalitat staatsangehorigkeit sprache
            nationalite langue nacionalidad idioma
        """),
    ),
    Topic(
        "an occupation",
        "quasi",
        words_of("""
            occupation job jobtitle profession employer employment workclass industry military veteran beruf metier
            ocupacion profesion
        """),
    ),
    Topic(
        "an education",
        "quasi",
        words_of("""
            education educ school schooling degree university college bildung schulabschluss abschluss diplome
            educacion escolaridad
        """),
        ordered=True,
        note=_KNOWN,
    ),
    Topic(
        "a family or household",
        "quasi",
        words_of("children kids dependents siblings household householdsize familysize kinder enfants hijos"),
        ordered=True,
    ),
    Topic("a political party", "quasi", words_of("party partyaffiliation politics partei parti partido"), note=_KNOWN),
)

# --- sensitive attributes ----------------------------------------------------------------------------------

SENSITIVE = (
    Topic(
        "health data",
        "sensitive",
        words_of("""
            health diagnosis diagnoses diag dx disease diseases illness disorder condition conditions icd symptom
            symptoms medication medications drug drugs medicine prescription treatment therapy procedure surgery cpt
            snomed atc hiv aids covid cancer tumor tumour diabetes hypertension asthma depression mental psychiatric
            allergy allergies comorbidity complication pregnancy pregnant abortion genetic genotype mutation dna
            biopsy pathology testresult result results outcome prognosis severity disability handicap smoker smoking
            alcohol addiction substance vaccine vaccination causeofdeath death mortality diagnose krankheit
            medikament behandlung befund therapie maladie diagnostic traitement medicament diagnostico enfermedad
            medicamento tratamiento
        """),
    ),
    Topic(
        "a money matter",
        "sensitive",
        words_of("""
            income incomes salary wage wages earnings pay payment poverty debt debts loan mortgage credit balance
            cost costs charge charges amount revenue tax taxes benefit benefits welfare asset assets wealth networth
            bonus rent pension bill billing expense expenses expenditure einkommen gehalt lohn schulden kosten armut
            revenu salaire dette cout ingreso ingresos salario sueldo deuda coste costo
        """),
    ),
    Topic(
        "a private matter",
        "sensitive",
        words_of("""
            crime criminal conviction convictions offense offence arrest arrests sexualorientation orientation
            sexuality
        """),
    ),
)

TOPICS = (AGE, BIRTH_YEAR, YEAR, DATE, COORDINATE, *SENSITIVE, POSTAL, *DEMOGRAPHY, PLACE)
"""What names are about if no direct identifier; the first counts."""

# --- words that change what others mean --------------------------------------------------------------------

THINGS = words_of("""
    product company organisation organization hospital clinic facility school file event brand species column item
    department dept plan course project study table variable test site group category team type class unit ward
    station field sheet model host domain
""")
"""Words whose "name" is not a person's."""

MEASURES = words_of("""
    score level value values count bp pressure bmi temp temperature weight height pulse rate ratio percent pct
    hours minutes seconds duration los length width size distance speed quantity qty population pop total sum mean
    median avg average min max std
""")
"""Words of measurements, which have few different values at times and yet tell nobody apart."""

ID_WORDS = words_of(
    "id ids uid uuid guid pid key no nr num number identifier seqn kennung nummer identifiant numero nro"
)
PERSON_WORDS = words_of("""
    patient person subject voter member participant customer client user employee student respondent individual
    citizen resident donor insured beneficiary enrollee pupil worker kunde mitglied teilnehmer personne paciente
    persona sujeto cliente
""")
NOT_PERSONS = words_of("""
    household family hospital clinic provider doctor physician nurse visit encounter order invoice transaction event
    episode claim admission stay product item store site study room ward department location batch sample specimen
    test lab session device row record line page company school class course project
""")
"""Words of things that have ids of their own."""

GLUED_ID = re.compile(rf"({'|'.join(sorted(PERSON_WORDS))}|.*pers|.*subj|.*pat|cust|emp|stud)(id|no|nr|num|number|key)")

# --- names -------------------------------------------------------------------------------------------------

_TOKEN = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_A-Za-z]+|\d+")
_LONGEST_PHRASE = 3


def tokens_of(name: str) -> tuple[str, ...]:
    """The words of a name: split at signs, digits and capitals, without accents, in lower case."""
    plain = unicodedata.normalize("NFKD", name.replace("ß", "ss"))
    letters = "".join(c for c in plain if not unicodedata.combining(c))
    return tuple(token.lower() for token in _TOKEN.findall(letters))


def phrases_of(tokens: Sequence[str]) -> frozenset[str]:
    """Each word, and up to three neighbours written as one."""
    starts = range(len(tokens))
    return frozenset("".join(tokens[i : i + n]) for i in starts for n in range(1, _LONGEST_PHRASE + 1))
