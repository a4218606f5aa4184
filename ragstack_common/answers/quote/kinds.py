"""What kind of answer a question asks for, in twelve languages: what such questions contain, and what such answers contain.

The kinds are tried in the order of the tables, so that "how many days" asks for a duration. Sources: the authors' own
lists. docs/RESULTS.md has figures for six of the languages; the others were not measured.
"""

# ruff: noqa: E501, ISC004, RUF001 - tables of words, of several scripts

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Final, Literal

from ragstack_common.text.numeric import NUMBER_WORDS
from ragstack_common.text.spelling import with_ascii_digits
from ragstack_common.text.words import is_stop_word, terms, words

Kind = Literal["frequency", "duration", "money", "number", "moment", "person", "reason"]
Table = Mapping[Kind, tuple[str, str]]

_CODES: Final = r"[$€£¥₹₽₩]|\b(?:eur|usd|gbp|chf|inr|rub|jpy|cny)\b|\d[.,]\d\d\b"
_YEAR: Final = r"\b(?:1\d|20)\d\d\b|\b\d{1,2}[:.]\d\d\b|\b\d{1,2}[./]\d{1,2}[./]\d{2,4}\b"
_NAME: Final = (
    r"(?-i:(?<=[^\W\d_A-ZА-ЯÀ-Þ][ \n\"“«„(])[A-ZА-ЯЁÀ-Þ]\w+|(?<=, )[A-ZА-ЯЁÀ-Þ]\w+|^[A-ZА-ЯЁÀ-Þ]\w+ [A-ZА-ЯЁÀ-Þ]\w+)"
)
"""A capital letter after a word, or two capitalized words at the beginning."""

_DIGITS: Final = (
    r"(?<![A-Za-z\u00c0-\u024f\u0370-\u04ff_/#\d])(?<!\d[.,'\u00a0\u202f])(?<![A-Za-z]-)(?<![^\s(\[][(\[])"
    r"\d[\d.,'\u00a0\u202f]*+(?!\d*(?:st|nd|rd|th)\b)"
)
"""A number that is not part of a name such as HTTP/2, S3 or GPT-4, an ordinal, or the mark of a reference."""


def _duration(number: str, unit: str, others: str) -> str:
    return rf"{number}\W*(?:\w+\W+)?(?:{unit})|\d\s?(?:{unit})|{_YEAR}|\b(?:{unit})\b|{others}"


_EN_NUMBER: Final = (
    rf"(?:{_DIGITS}|\b(?:{'|'.join(NUMBER_WORDS)}"
    r"|hundreds?|thousands?|millions?|billions?|dozens?|half|twice|once|both|none|single|several"
    r"|unlimited|free)\b)"
)
NUMBER: Final = re.compile(_EN_NUMBER, re.IGNORECASE)
"""A digit, or an English word for a number."""

_EN_UNIT: Final = r"(?:(?:milli)?seconds?|minutes?|hours?|days?|nights?|weeks?|months?|quarters?|years?|decades?)"
_EN_PERIOD: Final = rf"{_EN_NUMBER}\W+(?:\w+\W+)?{_EN_UNIT}\b|\b\d{{1,2}}[:.]\d\d\b|\b\d{{1,2}} ?[ap]\.?m\b"
_EN_MONTH: Final = (
    r"(?:january|february|march|april|may|june|july|august|september|october|november|december"
    r"|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)"
)
_EN: Final[Table] = {
    "frequency": (
        r"\bhow often\b",
        rf"{_EN_PERIOD}|\b(?:daily|weekly|monthly|quarterly|yearly|annually|hourly|nightly|always|never|once|twice|times|every|each)\b"
        rf"|\bper {_EN_UNIT}\b",
    ),
    "duration": (
        r"\bhow (?:long|soon|quickly|fast|late|early)\b",
        rf"{_EN_PERIOD}|\b(?:an?|half an?|the same|one|each|several|few|many) (?:\w+\W+)?{_EN_UNIT}\b|\b(?:same|next)[ -]{_EN_UNIT}\b"
        r"|\b(?:immediately|instantly|at once|at any time|indefinitely|permanently|forever)\b"
        rf"|\b\d+-{_EN_UNIT}|\b(?:until|through|to) {_EN_MONTH}\b|{_YEAR}\W+\w+\W+{_YEAR}",
    ),
    "money": (
        r"\b(?:costs?|prices?|fees?|pay)\b|\bhow much\b.{0,200}\b(?:paid|spend|spent|charge)",
        r"[$€£¥₹]|\b(?:eur|usd|gbp|chf|euros?|dollars?|pounds?|cents?|francs?|yen|free|percent|price\w*)\b|\d[.,]\d\d\b",
    ),
    "number": (
        r"\bhow (?:many|much|far|big|large|high|tall|deep|wide|heavy|hot|cold|thick|expensive|old)\b"
        r"|\b(?:what|which) (?:percentage|percent|number|share|proportion)\b"
        r"|\bwhat (?:is|was|are|were) the (?:[\w-]+ ){0,2}(?:total|subtotal|sum|amount|balance|quantity|count)\b",
        _EN_NUMBER,
    ),
    "moment": (
        r"\b(?:when|what time|what date|(?:which|what) (?:year|month|day|date|week|quarter|century))\b",
        rf"{_EN_PERIOD}|{_YEAR}|\b\d{{1,2}}(?:st|nd|rd|th)?(?: of)? {_EN_MONTH}\b|\b{_EN_MONTH}\.? \d"
        rf"|\b(?:in|by|within) {_EN_MONTH}\b|\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b"
        r"|\b(?:today|tomorrow|yesterday|noon|midnight|morning|afternoon|evening|night|spring|summer|autumn|winter|when"
        r"|whenever|if|after|before|once|until|till|during|while|since|upon|immediately|daily|weekly|monthly|quarterly"
        r"|yearly|every|each|first|last|century|centuries|(?:19|20)\d0s)\b",
    ),
    "person": (
        r"\b(?:who|whom|whose)\b",
        rf"{_NAME}|\b(?:\w+(?:er|or|ist|ian|ee)s?|team|lead|department|office|staff|people|everyone|anyone|nobody|company"
        r"|board|group|desk|hotline)\b",
    ),
    "reason": (
        r"\bwhy\b|\breasons?\b",
        r"\b(?:because|since|due to|owing to|so that|therefore|thus|hence|as a result|result\w* (?:in|from)|in order to"
        r"|caus\w+|reasons?|l[ea]+d\w* to|to (?:avoid|prevent|ensure|allow|protect|keep|make))\b",
    ),
}  # fmt: skip

_DE_NUMBER: Final = (
    rf"(?:{_DIGITS}|\b(?:zwei|drei|vier|fünf|sechs|sieben|acht|neun|elf|zwölf|\w*(?:zehn|zwanzig|dreißig|vierzig|fünfzig|sechzig"
    r"|siebzig|achtzig|neunzig|hundert|tausend)\w*+|million\w*|milliarde\w*|kein\w*|halb\w*|hälfte|doppelt|dutzend\w*|beide\w*)\b)"
)
_FR_NUMBER: Final = (
    rf"(?:{_DIGITS}|\b(?:deux|trois|quatre|cinq|six|sept|huit|neuf|dix|onze|douze|treize|quatorze|quinze|seize|vingts?|trente"
    r"|quarante|cinquante|soixante|cents?|mille|millions?|milliards?|milliers?|aucune?|moitié|double|douzaine|demi\w*)\b)"
)
_ES_NUMBER: Final = (
    rf"(?:{_DIGITS}|\b(?:dos|tres|cuatro|cinco|seis|siete|ocho|nueve|diez|once|doce|trece|catorce|quince|dieci\w+|veint\w+|treinta"
    r"|cuarenta|cincuenta|sesenta|setenta|ochenta|noventa|cien\w*|\w+cient[oa]s|mil|miles|mill[oó]n\w*|ning[uú]n\w*|mitad|doble"
    r"|docena\w*|medi[oa]|amb[oa]s)\b)"
)
_PT_NUMBER: Final = (
    rf"(?:{_DIGITS}|\b(?:dois|duas|três|quatro|cinco|seis|sete|oito|nove|dez|onze|doze|treze|catorze|quatorze|quinze|dez[ea]\w+"
    r"|vinte|trinta|quarenta|cinquenta|sessenta|setenta|oitenta|noventa|cem|centos?|\w+cent[oa]s|mil|milhares|milh(?:ão|ões)"
    r"|bilh\w+|nenhum\w*|metade|dobro|dúzia\w*|mei[oa]|amb[oa]s)\b)"
)
_IT_NUMBER: Final = (
    rf"(?:{_DIGITS}|\b(?:due|tre|quattro|cinque|sei|sette|otto|nove|dieci|undici|dodici|\w+dici|dici\w+|vent\w+|trent\w+|quarant\w+"
    r"|cinquant\w+|sessant\w+|settant\w+|ottant\w+|novant\w+|cento|mille|\w*mila|milion\w+|miliard\w+|nessun\w*|metà|doppio"
    r"|dozzin\w+|mezz[oa]|entramb[ie])\b)"
)
_NL_NUMBER: Final = (
    rf"(?:{_DIGITS}|\b(?:twee|drie|vier|vijf|zes|zeven|acht|negen|tien|elf|twaalf|\w+tien|\w*(?:twintig|dertig|veertig|vijftig|zestig"
    r"|zeventig|tachtig|negentig|honderd|duizend)\w*+|miljoen\w*|miljard\w*|geen|helft|half|halve|dubbel\w*|dozijn\w*|beide)\b)"
)
_RU_NUMBER: Final = (
    rf"(?:{_DIGITS}|\b(?:два|две|двух|двум\w?|двое|три|тр[её]х|трем\w?|тремя|трое|четыре|четыр[её]х|четырьмя|четырем|пять\w?|пяти|шесть\w?|шести|семь\w?|семи|восемь\w?|восьми|девять\w?"
    r"|девяти|десять|десяти|\w+надцат[ьи]|двадцат[ьи]|тридцат[ьи]|сорок\w*|пятьдесят|шестьдесят|семьдесят|восемьдесят"
    r"|девяносто|сто|двести|\w+сот|тысяч\w*|миллион\w*|миллиард\w*|млн|млрд|тыс|оба|обе|полов\w+|один|одна|одного|ни одного|вдвое)\b)"
)
_AR_NUMBER: Final = (
    rf"(?:{_DIGITS}|\b[وبلف]?(?:ال)?(?:واحد\w*|اثن\w+|ثلاث\w*|أربع\w*|اربع\w*|خمس\w*|ست|ستة|ستون|ستين|سبع\w*|ثمان\w*|تسع\w*|عشر\w*"
    r"|مئ[ةات]+\w*|مائ\w+|ألف\w*|آلاف|مليون\w*|ملايين|مليار\w*|نصف|ضعف|كلا)\b)"
)
_HI_NUMBER: Final = (
    rf"(?:{_DIGITS}|(?<!\S)(?:दो|तीन|चार|पांच|पाँच|छह|छः|सात|आठ|नौ|दस|ग्यारह|बारह|तेरह|चौदह|पंद्रह|सोलह|सत्रह|अठारह|उन्नीस|बीस|तीस|चालीस"
    r"|पचास|साठ|सत्तर|अस्सी|नब्बे|सौ|हज़ार|हजार|लाख|करोड़|मिलियन|बिलियन|आधा|आधे|आधी|दोनों|एक|दर्जन\S*)(?!\S))"
)
_HAN_NUMBER: Final = (
    r"[\d二三四五六七八九十百千万萬亿億兆两兩半数數]|一(?=[个個名次位座条家种人つ本年天日百千万點点杯件台])"
)

_LANGUAGES: Final[Mapping[str, Table]] = {
    "en": _EN,
    "de": {
        "duration": (
            r"\bwie (?:lange|oft|schnell|früh|spät|häufig)\b|\bin welche[mn] (?:abst[aä]nde?n?|intervall\w*|turnus|rhythmus)\b|\bwie ?viele (?:sekunden|minuten|stunden|tage|wochen|monate|jahre)\b",
            _duration(
                _DE_NUMBER,
                r"sekunden?|minuten?|stunden?|tage?n?|wochen?|monate?n?|jahre?n?|jahrzehnte?n?|quartale?",
                r"\b(?:täglich|wöchentlich|monatlich|jährlich|stündlich|sofort|\w{0,10}mals?|jede[nrs]?|nie|immer|regelmäßig|dauerhaft|unbefristet)\b",
            ),
        ),
        "money": (r"\b(?:kosten|kostet\w*|preis\w*|gebühr\w*|bezahl\w*|verdien\w*)\b", rf"{_CODES}|\b(?:\w*euro|dollar|pfund|cent|franken|prozent|kostenlos|kostenfrei|gratis|umsonst)\b"),
        "number": (r"\bwie ?viele?[nr]?\b|\bwie (?:hoch|groß|weit|tief|breit|schwer|teuer|stark|lang|alt)\b|\bwelche[rn]? (?:anzahl|anteil|prozentsatz)\b", _DE_NUMBER),
        "moment": (
            r"\bwann\b|\bwelche[smn]? (?:jahr\w*|datum|tag|monat|uhrzeit|woche)\b|\bwie ?viel uhr\b",
            rf"{_YEAR}|\b(?:januar|jänner|februar|märz|april|mai|juni|juli|august|september|oktober|november|dezember|montags?|dienstags?"
            r"|mittwochs?|donnerstags?|freitags?|samstags?|sonntags?|uhr|jahrhundert\w*|jahre\w*|heute|morgen|gestern|mittags?|mitternacht|morgens"
            r"|abends?|frühling|frühjahr|sommer|herbst|winter|wenn|sobald|als|nachdem|nach|bevor|vor|während|bis|seit|sofort|täglich|jede[nrs]?)\b",
        ),
        "reason": (r"\b(?:warum|wieso|weshalb|weswegen)\b|\b(?:grund|gründe)\b", r"\b(?:weil|da|denn|damit|wegen|aufgrund|deshalb|daher|deswegen|sodass|grund|gründe\w*|um|infolge|ursache\w*|führt\w*|verursacht\w*)\b"),
    },
    "fr": {
        "duration": (
            r"\bcombien de (?:temps|secondes|minutes|heures|jours|semaines|mois|ans|années|fois)\b|\bquelle (?:est (?:la |sa )?)?(?:fréquence|durée)\b|\bdepuis combien\b",
            _duration(_FR_NUMBER, r"secondes?|minutes?|heures?|jours?|semaines?|mois|ans?|années?|décennies?|trimestres?", r"\b(?:quotidien\w*|hebdomadaire\w*|mensuel\w*|annuel\w*|trimestriel\w*|immédiatement|fois|chaque|jamais|toujours)\b"),
        ),
        "money": (r"\b(?:coût\w*|prix|tarifs?|frais|payer|paie|gagne)\b", rf"{_CODES}|\b(?:euros?|dollars?|livres?|centimes?|francs?|pour ?cent|gratuit\w*)\b"),
        "number": (r"\bcombien(?:(?: (?:y )?\S{1,20}-(?:ils?|elles?|on|nous|vous|je|tu))? d(?:es?\b|['’]))?|\bquel âge\b|\bquel(?:le)? (?:est (?:le|la) )?(?:nombre|pourcentage|proportion|taille|hauteur|distance|longueur)\b", _FR_NUMBER),
        "moment": (
            r"\bquand\b|\bquel(?:le)? (?:année|date|heure|jour|mois|siècle)\b",
            rf"{_YEAR}|\b\d{{1,2}} ?h\b|\b(?:janvier|février|mars|avril|mai|juin|juillet|août|septembre|octobre|novembre|décembre|lundis?|mardis?|mercredis?"
            r"|jeudis?|vendredis?|samedis?|dimanches?|siècle|années?|aujourd|demain|hier|midi|minuit|matin|soir|printemps|été|automne|hiver|lorsqu\w*|quand"
            r"|après|avant|dès|pendant|durant|jusqu\w*|depuis|immédiatement|chaque)\b",
        ),
        "person": (r"(?:^|[,;] )\W*(?:(?:à|de|par|pour|avec|chez) )?qui\b", _NAME + r"|\b(?:équipe|service|direction|responsable|personne|conseil)\b"),
        "reason": (r"\bpourquoi\b|\braisons?\b", r"\b(?:parce|car|puisque|afin|pour|raisons?|cause|dû|due|grâce|donc|ainsi|conduit|entraîn\w+|provoqu\w+)\b"),
    },
    "es": {
        "duration": (
            r"\bcuánto (?:tiempo|dura|tarda)\b|\bqué frecuencia\b|\bcada cuánto\b|\b(?:qué|cuál es la) duración\b|\bcuánt[oa]s (?:segundos|minutos|horas|días|semanas|meses|años|veces)\b",
            _duration(_ES_NUMBER, r"segundos?|minutos?|horas?|días?|semanas?|mes(?:es)?|años?|décadas?|trimestres?", r"\b(?:diari\w+|semanal\w*|mensual\w*|anual\w*|inmediat\w+|vez|veces|cada|nunca|siempre)\b"),
        ),
        "money": (r"\b(?:cuesta\w*|costó|precio\w*|coste|costo|tarifas?|pagar|paga)\b", rf"{_CODES}|\b(?:euros?|dólares|libras?|céntimos?|pesos?|por ?ciento|gratis|gratuit\w+)\b"),
        "number": (r"\bcuánt[oa]s?\b|\bqué edad\b|\b(?:qué|cuál (?:es|era|fue) (?:el|la)) (?:número|porcentaje|cantidad|altura|distancia|longitud|proporción)\b", _ES_NUMBER),
        "moment": (
            r"\bcuándo\b|\bqué (?:año|fecha|día|mes|siglo|hora|época)\b",
            rf"{_YEAR}|\b(?:enero|febrero|marzo|abril|mayo|junio|julio|agosto|septiembre|octubre|noviembre|diciembre|lunes|martes|miércoles|jueves|viernes"
            r"|sábados?|domingos?|siglos?|años?|hoy|mañana|ayer|mediodía|medianoche|tarde|noche|primavera|verano|otoño|invierno|cuando|después|antes|tras"
            r"|durante|hasta|desde|inmediat\w+|cada)\b",
        ),
        "person": (r"\bqui[ée]n(?:es)?\b", _NAME + r"|\b(?:equipo|departamento|dirección|responsable|personas?|consejo)\b"),
        "reason": (r"\bpor ?qué\b|\b(?:razón|motivo|razones|motivos)\b", r"\b(?:porque|ya que|pues|puesto|debido|para|causa\w*|razón|razones|motivos?|gracias|así|provoc\w+|llev\w+)\b"),
    },
    "pt": {
        "duration": (
            r"\bquanto tempo\b|\bquanto dura\b|\bque frequência\b|\bqual é a duração\b|\bquant[oa]s (?:segundos|minutos|horas|dias|semanas|meses|anos|vezes)\b",
            _duration(_PT_NUMBER, r"segundos?|minutos?|horas?|dias?|semanas?|mês|meses|anos?|décadas?|trimestres?", r"\b(?:diári\w+|seman\w+|mens\w+|anual\w*|imediat\w+|vez|vezes|cada|nunca|sempre)\b"),
        ),
        "money": (r"\b(?:custa\w*|custou|preços?|custos?|tarifas?|pagar|paga)\b", rf"{_CODES}|r\$|\b(?:euros?|dólares|libras?|cêntimos?|centavos?|reais|por ?cento|grátis|gratuit\w+)\b"),
        "number": (r"\bquant[oa]s?\b|\bque idade\b|\b(?:que|qual (?:é|era|foi) [oa]) (?:número|percentagem|porcentagem|quantidade|altura|distância|proporção)\b", _PT_NUMBER),
        "moment": (
            r"\bquando\b|\b(?:que|qual) (?:ano|data|dia|mês|século|hora|época)\b",
            rf"{_YEAR}|\b\d{{1,2}} ?h\b|\b(?:janeiro|fevereiro|março|abril|maio|junho|julho|agosto|setembro|outubro|novembro|dezembro|segunda|terça|quarta"
            r"|quinta|sexta|sábados?|domingos?|séculos?|anos?|hoje|amanhã|ontem|meio-dia|meia-noite|manhã|tarde|noite|primavera|verão|outono|inverno"
            r"|quando|depois|após|antes|durante|até|desde|imediat\w+|cada)\b",
        ),
        "person": (r"\bquem\b", _NAME + r"|\b(?:equipe|equipa|departamento|direção|responsável|pessoas?|conselho)\b"),
        "reason": (r"\bpor ?qu[eê]\b|\b(?:razão|motivo|razões|motivos)\b", r"\b(?:porque|pois|já que|devido|para|causa\w*|razão|razões|motivos?|graças|assim|provoc\w+|lev\w+)\b"),
    },
    "it": {
        "duration": (
            r"\bquanto (?:tempo|dura|ci vuole)\b|\bogni quanto\b|\b(?:che|quale) frequenza\b|\b(?:che durata|qual è la durata)\b|\bquant[ie] (?:secondi|minuti|ore|giorni|settimane|mesi|anni|volte)\b",
            _duration(_IT_NUMBER, r"second[oi]|minut[oi]|or[ae]|giorn[oi]|settiman[ae]|mes[ei]|ann[oi]|decenni\w*|trimestr[ei]", r"\b(?:quotidian\w+|settimanal\w+|mensil\w+|annual\w+|subito|volt[ae]|ogni|mai|sempre)\b"),
        ),
        "money": (r"\b(?:cost[aiò]|costano|prezz[oi]|cost[oi]|tariff[ae]|pagare|paga)\b", rf"{_CODES}|\b(?:euro|dollar[oi]|sterlin[ae]|centesim[oi]|franch[oi]|per ?cento|gratis|gratuit\w+)\b"),
        "number": (r"\bquant[oaie]\b|\bche età\b|\b(?:che|quale|qual (?:è|era)) (?:il |la |l.)?(?:percentuale|numero|quantità|altezza|distanza|lunghezza)\b", _IT_NUMBER),
        "moment": (
            r"\bquando\b|\b(?:che|quale) (?:anno|data|giorno|mese|secolo|ora|epoca)\b",
            rf"{_YEAR}|\b(?:gennaio|febbraio|marzo|aprile|maggio|giugno|luglio|agosto|settembre|ottobre|novembre|dicembre|lunedì|martedì|mercoledì|giovedì"
            r"|venerdì|sabat[oi]|domenic\w+|secol[oi]|ann[oi]|oggi|domani|ieri|mezzogiorno|mezzanotte|mattin\w|sera|notte|primavera|estate|autunno|inverno"
            r"|quando|dopo|prima|durante|fino|dal|subito|ogni)\b",
        ),
        "person": (r"\bchi\b", _NAME + r"|\b(?:squadra|ufficio|dipartimento|direzione|responsabile|persone|consiglio)\b"),
        "reason": (r"\bperch[éè]\b|\b(?:motiv[oi]|ragion[ei])\b", r"\b(?:perch[éè]|poiché|siccome|affinché|per|caus\w+|ragion[ei]|motiv[oi]|grazie|quindi|dovut\w+|port\w+)\b"),
    },
    "nl": {
        "duration": (
            r"\b(?:hoelang|hoe (?:lang|vaak|dikwijls|snel|laat|vroeg))\b|\bhoeveel (?:seconden|minuten|uur|uren|dagen|weken|maanden|jaar|jaren|keer)\b",
            _duration(_NL_NUMBER, r"seconden?|minuten?|minuut|uur|uren|dag(?:en)?|we[e]?k(?:en)?|maand(?:en)?|ja(?:ar|ren)|decennia|kwarta\w+", r"\b(?:dagelijks|wekelijks|maandelijks|jaarlijks|meteen|direct|keer|\w{0,10}maal|elke?|ieder\w*|nooit|altijd)\b"),
        ),
        "money": (r"\b(?:kost(?:en|te)?|prij[sz]\w*|tarie\w+|betal\w+|betaalt)\b", rf"{_CODES}|\b(?:euro'?s?|dollars?|pond|cent|procent|gratis)\b"),
        "number": (r"\bhoeveel\b|\bhoe (?:hoog|groot|ver|diep|breed|zwaar|duur|oud)\b|\bwelk (?:percentage|aantal|deel)\b", _NL_NUMBER),
        "moment": (
            r"\bwanneer\b|\bwelke? (?:jaar|datum|dag|maand|eeuw|tijd)\b",
            rf"{_YEAR}|\b(?:januari|februari|maart|april|mei|juni|juli|augustus|september|oktober|november|december|maandag|dinsdag|woensdag|donderdag|vrijdag"
            r"|zaterdag|zondag|eeuw|ja(?:ar|ren)|uur|vandaag|morgen|gisteren|middag|middernacht|ochtend|avond|lente|voorjaar|zomer|herfst|winter|wanneer|als|toen"
            r"|nadat|na|voordat|voor|tijdens|tot|sinds|meteen|elke?)\b",
        ),
        "person": (r"\b(?:wie|wiens)\b", _NAME + r"|\b(?:team|afdeling|directie|leidinggevende|mensen|raad)\b"),
        "reason": (r"\bwaarom\b|\breden(?:en)?\b", r"\b(?:omdat|want|doordat|zodat|wegens|vanwege|daarom|dus|reden\w*|oorza\w+|om|dankzij|leid\w+)\b"),
    },
    "ru": {
        "duration": (
            r"\bкак (?:долго|часто|скоро|быстро)\b|\bс какой (?:периодичностью|частотой)\b|\bсколько (?:длит\w+|длил\w+|продлит\w+|времени|дней|часов|месяцев|минут|недель|секунд|раз)\b",
            _duration(_RU_NUMBER, r"секунд\w*|минут\w*|час\w{0,3}|дн\w{1,3}|день|недел\w+|месяц\w*|год\w{0,3}|лет|летн\w+|десятилет\w+|квартал\w*|возраст\w*", r"\b(?:ежедневно|еженедельно|ежемесячно|ежегодно|сразу|раз\w?|дважды|однажды|кажд\w{2,3}|никогда|всегда)\b"),
        ),
        "money": (r"\b(?:стоит|стоят|стоил\w*|стоимость|цен[аыу]|плат\w+)\b", rf"{_CODES}|\b(?:рубл\w+|руб|доллар\w*|евро|фунт\w*|цент\w*|процент\w*|бесплатно)\b"),
        "number": (r"\bсколько\b|\bкаком возрасте\b|\bкак(?:ое|ова|ой|ая|ов) (?:был[ао]? )?(?:количество|число|процент|высота|длина|доля|расстояние)\b|\bнасколько\b", _RU_NUMBER),
        "moment": (
            r"\bкогда\b|\bс каких пор\b|\bкакого времени\b|\bкак(?:ом|ой|ого|ое|ую) (?:году?|веке?|месяце?|день|числа|время|дату|период)\b",
            rf"{_YEAR}|\b(?:январ\w+|феврал\w+|март\w*|апрел\w+|ма[йяе]|июн\w+|июл\w+|август\w*|сентябр\w+|октябр\w+|ноябр\w+|декабр\w+|понедельник\w*|вторник\w*"
            r"|сред[ауы]|четверг\w*|пятниц\w+|суббот\w+|воскресень\w+|век\w{0,3}|год\w{0,3}|сегодня|завтра|вчера|полдень|полночь|утр\w+|вечер\w*|ноч\w+|весн\w+"
            r"|лет[оа]|летом|осен\w+|зим\w+|когда|после|перед|до|во время|пока|сразу|каждый)\b",
        ),
        "person": (r"\b(?:кто|кого|кому|кем|ком|чей|чья|чь[ёе]|чьи)\b", _NAME + r"|\b(?:команд\w+|отдел\w*|сотрудник\w*|люд\w+|руковод\w+|совет\w*)\b"),
        "reason": (r"\b(?:почему|зачем|отчего)\b|\bпричин\w+\b", r"\b(?:потому|так как|из-за|поскольку|чтобы|связи|благодаря|причин\w*|вследствие|поэтому|ради|прив[ео]\w+)\b"),
    },
    "ar": {
        "duration": (r"كم (?:من الوقت|مدة|المدة|سنة|عام|يوم|ساعة|شهر|أسبوع|دقيقة|ثانية|مرة|استغرق\w*|يستغرق|تستغرق)|\bما (?:هي )?(?:مدة|المدة)\b", _duration(_AR_NUMBER, r"(?:ال)?(?:ثوان\w*|ثانية|دقائق|دقيقة|ساع\w+|يوم\w*|أيام|أسبوع\w*|أسابيع|شهر\w*|أشهر|شهور|سن\w{1,4}|عام\w*|أعوام|عقد\w*|عقود)", r"\b(?:يومي\w+|أسبوعي\w+|شهري\w+|سنوي\w+|فور\w+|مر\w+|كل)\b")),
        "money": (r"\b(?:تكلف\w*|يكلف|كلف\w*|سعر|ثمن|رسوم|يدفع)\b", rf"{_CODES}|\b(?:دولار\w*|يورو|جنيه\w*|ريال\w*|درهم|دينار\w*|سنت\w*|بالمئة|بالمائة|مجان\w+)\b|٪"),
        "number": (r"\bكم(?: عدد)?\b|\bما (?:هو |هي )?(?:عدد|نسبة|النسبة|المسافة|مساحة|ارتفاع|طول)\b", _AR_NUMBER),
        "moment": (r"\bمتى\b|\bأي (?:عام|سنة|يوم|تاريخ|شهر|قرن|وقت|فترة)\b|\bما (?:هو )?(?:العام|التاريخ|تاريخ)\b", rf"{_YEAR}|\b[وبلف]?(?:ال)?(?:يناير|فبراير|مارس|أبريل|ابريل|مايو|يونيو|يوليو|أغسطس|سبتمبر|أكتوبر|نوفمبر|ديسمبر|كانون|شباط|آذار|نيسان|أيار|حزيران|تموز|آب|أيلول|تشرين|أحد|اثنين|ثلاثاء|أربعاء|خميس|جمعة|سبت|قرن\w*|عام\w*|سنة|سنوات|يوم|غد\w*|أمس|ظهر\w*|صباح\w*|مساء|ليل\w*|ربيع|صيف|خريف|شتاء|عندما|بعد|قبل|خلال|أثناء|حتى|منذ|فور\w*|كل)\b"),
        "reason": (r"\bلماذا\b|\bسبب\b|\bأسباب\b", r"\b(?:لأن\w*|بسبب|نتيجة|أجل|لكي|كي|حتى|أد[تىي]\w*|سبب\w*|أسباب|لذلك|نظر\w+)\b"),
    },
    "hi": {
        "duration": (r"कितने (?:समय|दिन|दिनों|साल|सालों|वर्ष|वर्षों|घंटे|घंटों|महीने|महीनों|मिनट|सप्ताह|सेकंड)(?! के थे)|कितनी (?:देर|बार)|कब तक", _duration(_HI_NUMBER, r"सेकंड|मिनट|घंटे|घंटों|घंटा|दिन|दिनों|सप्ताह|हफ्ते|महीने|महीनों|माह|साल|सालों|वर्ष|वर्षों|वर्षीय|दशक|दशकों|उम्र|आयु", r"रोज़|रोज|प्रति|तुरंत|बार|हर")),
        "money": (r"कीमत|लागत|खर्च|शुल्क|दाम|भुगतान", rf"{_CODES}|रुपये|रुपए|रुपयों|डॉलर|यूरो|पाउंड|प्रतिशत|मुफ्त|मुफ़्त"),
        "number": (r"कितन[ेाी]|संख्या क्या|प्रतिशत|कितनों", _HI_NUMBER),
        "moment": (r"(?<!\S)कब(?!\S)|किस (?:वर्ष|साल|दिन|तारीख|महीने|सदी|समय|शताब्दी)|कौन ?-?स[ेा] (?:वर्ष|साल|दिन|महीने|समय)", rf"{_YEAR}|जनवरी|फरवरी|फ़रवरी|मार्च|अप्रैल|मई|जून|जुलाई|अगस्त|सितंबर|सितम्बर|अक्टूबर|अक्तूबर|नवंबर|नवम्बर|दिसंबर|दिसम्बर|सोमवार|मंगलवार|बुधवार|गुरुवार|शुक्रवार|शनिवार|रविवार|शताब्दी|सदी|वर्ष|साल|आज|कल|दोपहर|सुबह|शाम|रात|वसंत|गर्मी|सर्दी|जब|बाद|पहले|दौरान|तक|तुरंत|हर"),
        "reason": (r"क्यों|कारण|वजह", r"क्योंकि|कारण|इसलिए|ताकि|वजह|चूंकि|के लिए|परिणाम|नतीजा"),
    },
    "zh": {
        "duration": (r"多久|多[长長][时時][间間]|多少(?:天|年|小时|小時|[个個]?月|分[钟鐘]|周|次)|[几幾](?:天|年|小时|小時|[个個]月|分[钟鐘]|周|次)", rf"{_HAN_NUMBER}\s*[个個多]?\s*(?:秒|分[钟鐘]|小?[时時]|天|日|周|星期|月|年|[岁歲]|世[纪紀])|每|永久|立即|次"),
        "money": (r"多少[钱錢]|[费費]用|价格|價格|价钱|成本|工资|多少(?:美元|欧元|元)", rf"{_CODES}|元|[欧歐]|美金|英[镑鎊]|日[元圆圓]|法郎|百分|%|免[费費]"),
        "number": (r"多少|[几幾][岁歲]|[几幾][个個名次位座条條家种種支分]|多(?:高|大|[远遠]|深|[宽寬]|重|快)|百分之[几幾]|[几幾]分", _HAN_NUMBER),
        "moment": (r"什[么麼][时時][候间間]|何[时時]|哪一?[年天日]|[几幾]月|[几幾][点點]|哪[个個](?:月|世[纪紀]|[时時]|年)|什[么麼]日期|哪[个個]?日期", r"\d+\s*(?:年|月|日|[时時]|[点點])|\b(?:1\d|20)\d\d\b|世[纪紀]|星期|[周週][一二三四五六日]|今天|昨天|明天|早上|上午|下午|晚上|中午|期[间間]|之前|之[后後]|以[后後]|以前|[时時]候?|年代|[当當]|春|夏|秋|冬|[二三四五六七八九十〇零一]+年|每"),
        "reason": (r"(?<![称名述稱更])[为為]什[么麼](?!\W*$)|[为為]何|原因|怎[么麼][会會]|理由", r"因|由[于於]|[为為]了|所以|[导導]致|以便|原因|故|[结結]果|使得|[让讓]"),
    },
    "ja": {
        "duration": (r"どのくらい|どれくらい|どれぐらい|何(?:日|時|年|ヶ月|か月|カ月|週|分|秒)間|何回|何日(?!に)|期間", rf"{_HAN_NUMBER}\s*(?:秒|分|時間?|日|週|[かカヶケ]?月|年|歳|世紀|回)|毎|すぐ"),
        "money": (r"いくら|料金|費用|価格|値段|給料", rf"{_CODES}|円|ユーロ|ドル|ポンド|フラン|パーセント|%|％|無料"),
        "number": (r"いくつ|何(?:人|個|回|本|台|件|名|枚|%|％|パーセント|メートル|点|ヤード|つ|社|種類|冊|キロ|度|倍|歳)|どれだけ|割合|人数", _HAN_NUMBER),
        "moment": (r"いつ|何年|何月|何日|何時|何曜日|何世紀|どの年|どの時期", r"\d+\s*(?:年|月|日|時)|\b(?:1\d|20)\d\d\b|世紀|曜日|今日|昨日|明日|朝|午前|午後|夜|正午|昼|間|前|後|時|年代|頃|ころ|とき|春|夏|秋|冬|毎"),
        "reason": (r"なぜ|どうして|何故|理由|原因", r"から|ため|ので|理由|原因|よって|ように|結果|せい|おかげ|より"),
    },
}  # fmt: skip


_COUNTING: Final = re.compile(
    r"how many|wie ?viele[nr]?|combien.* d(?:es?|['’])|cuánt[oa]s|quant[oa]s|quant[ie]|hoeveel|сколько|كم.*|कितन[ेाी]|多少|[几幾].?|何.*",
    re.IGNORECASE,
)
"""Question words for the number of the things that the next words name."""

_WHEN: Final = re.compile("when|quand|quando|wanneer|когда", re.IGNORECASE)
"""Question words for a moment that are also conjunctions."""

_OTHERWISE: Final[Mapping[str, re.Pattern[str]]] = {
    language: re.compile(rf"\b(?:{asking})\b", re.IGNORECASE)
    for language, asking in {
        "en": "what|which|where|how",
        "fr": "que|quoi|où|comment|quel(?:le)?s?|combien|qu['’]est",
        "pt": "que|onde|como|qual|quais",
        "it": "che|cosa|dove|come|qual[ei]?",
        "nl": "wat|waar|hoe|welke?",
        "ru": "что|где|как|какой|какая|какое|какие|куда",
    }.items()
}
"""Question words for something that no table has, such as what happens when a contract ends."""

_NO_AMOUNT: Final = re.compile(
    r"\b(?:where|how (?:do|does|did|can|could|should|is|are|to)|wer|wem|wen|wessen|wo|wie(?! ?viel| hoch| teuer)|où|comment"
    r"|dónde|cómo|onde|dove|waar|hoe(?! hoog| duur)|где|как)\b",
    re.IGNORECASE,
)
"""Question words for what no amount answers, such as how to pay; who pays is known by the order of the words."""

_WEAK: Final = re.compile(
    r"one|single|both|none|several|unlimited|free|half|once|twice|один|одна|одного|оба|обе|एक|दोनों|واحد\w*|كلا|一.?"
    r"|(?:1\d|20)\d\d\W*",
    re.IGNORECASE,
)
"""Numbers that texts without a count have, too; and years."""

_VAGUE: Final = re.compile("single|both|none|several|unlimited|free", re.IGNORECASE)
"""Numbers that count nothing, even before what the question counts."""

COUNTED_WITHIN: Final = 4
"""Words after a number that may name what it counts."""

LOOSE: Final = 0.5
"""Misfit of an answer with a number that counts something else."""

_WORD: Final = re.compile(r"\w+")


@dataclass(frozen=True)
class Expected:
    """What the answer to a question must contain.

    Attributes:
        kind: The kind of answer.
        asking: The normalized words that ask for it, such as "cost".
        counted: The stems of what the question counts: of "how many route tables", those of route and table.
        language: The tag of the language of the answers.
        asked: The normalized words of the question.
    """

    kind: Kind
    asking: frozenset[str]
    counted: frozenset[str]
    language: str
    asked: frozenset[str]
    _pattern: re.Pattern[str]

    def misfit(self, answer: str, label: str = "") -> float:
        """Return 0 if an answer has what the question asks for, 1 if not, and LOOSE if it may count something else.

        Words of the question don't count.

        Args:
            answer: The answer.
            label: The key of a value, or the names of its columns.
        """
        answer = with_ascii_digits(answer)
        found = [
            match
            for match in self._pattern.finditer(answer)
            if not (part := words(_whole(answer, *match.span()))) or not self.asked.issuperset(part)
        ]
        if not found or not self.counted:
            return float(not found)
        for match in found:
            following = words(answer[match.end() : match.end() + 80])[:COUNTED_WITHIN]
            if not _VAGUE.fullmatch(match[0]) and self._names(" ".join(following)):
                return 0.0
        strong = [match for match in found if not _WEAK.fullmatch(match[0])]
        return (0.0 if strong and self._names(label) else LOOSE) if strong else 1.0

    def counts_in(self, answer: str) -> list[tuple[int, int]]:
        """Return where numbers are in an answer, each with its unit or with what it counts, outside the question's words."""
        found = []
        for match in self._pattern.finditer(answer):
            end = match.end()
            if self.counted and (unit := self._unit_after(answer, end)):
                end = unit
            elif self.kind != "duration" or not words(match[0])[1:]:
                continue
            if not self.asked.issuperset(words(answer[match.start() : end])[:1]):
                found.append((match.start(), end))
        return found

    def _unit_after(self, answer: str, start: int) -> int | None:
        """Return the end of the next word that names what a number counts; None if there is none."""
        for word in islice(_WORD.finditer(answer, start), COUNTED_WITHIN):
            if self._names(word[0]):
                return word.end()
        return None

    def _names(self, text: str) -> bool:
        return not self.counted.isdisjoint(terms(text, self.language))


def is_number_word(word: str, language: str) -> bool:
    """Whether a word is a number, in digits or letters, in a language with a table."""
    table = _table(language)
    return "number" in table and table["number"][1].fullmatch(word) is not None


def _whole(text: str, start: int, end: int) -> str:
    """Return a part of a text with the digits on either side of it."""
    while start > 0 and text[start - 1].isdigit():
        start -= 1
    while end < len(text) and text[end].isdigit():
        end += 1
    return text[start:end]


def expected(question: str, language: str, answered: str | None = None) -> Expected | None:
    """Return what the answer to a question must contain; None if that is not known, or in other languages.

    Args:
        question: The question.
        language: The tag of its language.
        answered: The tag of the language of the passages; by default, that of the question. It is also tried for the
            question, because the language of a short one is often taken for a similar one.
    """
    question, answered = with_ascii_digits(question), answered or language
    for asked in dict.fromkeys((language, answered)):
        if (found := _asked_for(question, asked)) is not None:
            kind, asking = found
            break
    else:
        return None
    answers = _table(answered).get(kind) or (_table(answered).get("duration") if kind == "frequency" else None)
    may_be_frequency = kind == "duration" and asked != answered and "frequency" in _table(answered)
    if answers is None or may_be_frequency:  # only English has a table of its own for "how often"
        return None
    counts = asked == answered and _COUNTING.fullmatch(asking[0])
    counted = _counted(question[asking.end() :], asked) if counts else frozenset()
    return Expected(kind, frozenset(words(asking[0])), counted, answered, frozenset(words(question)), answers[1])


def _asked_for(question: str, language: str) -> tuple[Kind, re.Match[str]] | None:
    """Return the first kind of the table that a question asks for, unless it asks for another one before.

    "When do I pay?" asks for a moment, but "When I leave, how many days are paid?" for a number. What happens when
    something else does is no moment.
    """
    found: tuple[Kind, re.Match[str]] | None = None
    for kind, (asks, _) in _table(language).items():
        asking = asks.search(question)
        if asking is None or _asks_otherwise(kind, question, asking, language):
            continue
        if found is None:
            found = kind, asking
        elif asking.start() < found[1].start() and (found[0], kind) != ("money", "number"):
            found = found if "," in question[asking.end() : found[1].start()] else (kind, asking)
    return found


def _asks_otherwise(kind: Kind, question: str, asking: re.Match[str], language: str) -> bool:
    """Whether another question word comes before "when" or before the word for a price."""
    other = _NO_AMOUNT if kind == "money" else _OTHERWISE.get(language) if _WHEN.fullmatch(asking[0]) else None
    return other is not None and other.search(question, 0, asking.start()) is not None


def _counted(rest: str, language: str) -> frozenset[str]:
    """Return the stems of the first two words that name a subject, such as those of "route tables"."""
    found = [word for word in words(rest) if not is_stop_word(word, language)]
    return frozenset(terms(found[:2], language)) if found else frozenset()


@cache
def _table(language: str) -> Mapping[Kind, tuple[re.Pattern[str], re.Pattern[str]]]:
    table = _LANGUAGES.get(language, {})
    return {
        kind: (re.compile(asks, re.IGNORECASE), re.compile(answers, re.IGNORECASE))
        for kind, (asks, answers) in table.items()
    }
