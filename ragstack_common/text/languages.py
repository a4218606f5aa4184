"""Names and tags of languages, so that a request cannot put other words in their place."""

# ruff: noqa: E501, SIM905 - a table of names

import re
from typing import Final

_NAMES: Final = dict(
    entry.split("=")
    for entry in (
        "af=Afrikaans am=Amharic ar=Arabic as=Assamese az=Azerbaijani be=Belarusian bg=Bulgarian bn=Bengali bo=Tibetan bs=Bosnian"
        " ca=Catalan cs=Czech cy=Welsh da=Danish de=German dv=Divehi el=Greek en=English eo=Esperanto es=Spanish et=Estonian"
        " eu=Basque fa=Persian fi=Finnish fo=Faroese fr=French fy=Frisian ga=Irish gd=Gaelic gl=Galician gu=Gujarati ha=Hausa"
        " he=Hebrew hi=Hindi hr=Croatian ht=Haitian hu=Hungarian hy=Armenian id=Indonesian ig=Igbo is=Icelandic it=Italian"
        " ja=Japanese jv=Javanese ka=Georgian kk=Kazakh km=Khmer kn=Kannada ko=Korean ku=Kurdish ky=Kyrgyz la=Latin"
        " lb=Luxembourgish lo=Lao lt=Lithuanian lv=Latvian mg=Malagasy mi=Maori mk=Macedonian ml=Malayalam mn=Mongolian mr=Marathi"
        " ms=Malay mt=Maltese my=Burmese nb=Norwegian ne=Nepali nl=Dutch nn=Nynorsk no=Norwegian ny=Chichewa oc=Occitan or=Odia"
        " pa=Punjabi pl=Polish ps=Pashto pt=Portuguese qu=Quechua rm=Romansh ro=Romanian ru=Russian rw=Kinyarwanda sa=Sanskrit"
        " sd=Sindhi si=Sinhala sk=Slovak sl=Slovenian sm=Samoan sn=Shona so=Somali sq=Albanian sr=Serbian st=Sesotho su=Sundanese"
        " sv=Swedish sw=Swahili ta=Tamil te=Telugu tg=Tajik th=Thai ti=Tigrinya tk=Turkmen tl=Tagalog tn=Tswana to=Tongan tr=Turkish"
        " tt=Tatar ug=Uyghur uk=Ukrainian ur=Urdu uz=Uzbek vi=Vietnamese wo=Wolof xh=Xhosa yi=Yiddish yo=Yoruba zh=Chinese zu=Zulu"
    ).split()
)
"""English names by their tags. Source: ISO 639-1."""

_OWN_NAMES: Final = dict(
    entry.split("=")
    for entry in (
        "deutsch=de español=es français=fr italiano=it português=pt nederlands=nl polski=pl čeština=cs slovenčina=sk"
        " svenska=sv dansk=da norsk=no suomi=fi magyar=hu română=ro hrvatski=hr türkçe=tr русский=ru українська=uk"
        " български=bg ελληνικά=el العربية=ar עברית=he فارسی=fa हिन्दी=hi বাংলা=bn ไทย=th 中文=zh 日本語=ja 한국어=ko"
        " mandarin=zh flemish=nl castilian=es farsi=fa filipino=tl"
    ).split()
)
"""Other names."""

_TAGS: Final = {name.casefold(): tag for tag, name in _NAMES.items()} | _OWN_NAMES
_TAG: Final = re.compile(r"([A-Za-z]{2})((?:[-_][A-Za-z]{4})?(?:[-_](?:[A-Za-z]{2}|\d{3}))?)")
"""A BCP 47 tag with its script and region; variants and extensions could spell words."""


def language_name(text: str) -> str:
    """Return the English name of a language, with its tag if that says more.

    Args:
        text: A name such as German or Deutsch, or a BCP 47 tag such as de or pt-BR.

    Raises:
        ValueError: It is neither.
    """
    wanted = text.strip()
    if tag := _TAGS.get(wanted.casefold()):
        return _NAMES[tag]
    found = _TAG.fullmatch(wanted)
    name = found and _NAMES.get(found[1].lower())
    if found is None or name is None:
        raise ValueError("not a known language: write a name in English, such as German, or a tag, such as de or pt-BR")
    return f"{name} ({wanted.replace('_', '-')})" if found[2] else name
