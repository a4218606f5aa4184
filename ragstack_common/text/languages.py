"""Languages: their names and tags in requests, their stop words, and the language of a text."""

# ruff: noqa: E501, RUF001, SIM905 - tables of names and words

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

ENGLISH: Final = "en"
MIN_VOTES: Final = 0.25
"""Votes for a language. The languages that share a stop word share its one vote."""

MIN_SHARE: Final = 0.05
"""Votes for a language other than English, as a share of the words: lists and abstracts have few stop words, and
abbreviations such as CI and ED are stop words elsewhere."""

OWN_SHARE: Final = 0.15
"""Votes, as a share of the words, with which a part of a document has a language of its own."""

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

LANGUAGE_NAMES: Final = tuple(sorted(set(_NAMES.values())))

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
_TAG: Final = re.compile(
    r"([A-Za-z]{2})((?:[-_](?:Arab|Armn|Beng|Cyrl|Deva|Ethi|Geor|Grek|Gujr|Guru|Hans|Hant|Hebr|Jpan|Khmr|Knda|Kore|Laoo|Latn"
    r"|Mlym|Mong|Mymr|Orya|Sinh|Taml|Telu|Thaa|Thai|Tibt))?(?:[-_](?:[A-Za-z]{2}|\d{3}))?)"
)
"""A BCP 47 tag with its script and region; unknown scripts, variants and extensions could spell words."""

_STOP_WORDS: Final = """
  en= a about above after again against all also am an and any are as at be because been before being below between
  both but by can could did do does doing down during each few for from further had has have having he her here hers
  him his how i if in into is it its itself just me more most my no nor not of off on once only or other our ours out
  over own same she should so some such than that the their theirs them then there these they this those through to
  too under until up very was we were what when where which while who whom why will with would you your yours
  de= aber alle als am an auch auf aus bei bin bis das dass dem den der des dessen die dies diese diesem dieser dieses
  du durch ein eine einem einen einer eines er es für hat hatte ich ihr ihre im in ist ja kann kein keine mit muss
  nach nicht noch nur ob oder sein seine sich sie sind so um und uns unter viel viele vom von vor wann war waren warum
  was welche welchem welchen welcher welches wenn wer werden wie wieder wir wird wo wurde wurden zu zum zur über
  fr= au aucun aussi aux avait avec c ce ces cette combien comme comment d dans de des dont du elle elles en est et eu
  fait il ils j je l la le les leur leurs lui mais n ne nous on ont ou où par pas plus pour pourquoi qu quand que quel
  quelle quelles quels qui quoi s sa sans se ses si son sont sur un une vous y à était été être
  es= a al algo como con cual cuando cuál cuáles cuándo cuánta cuántas cuánto cuántos cómo de del desde donde durante
  dónde e el ella ellos en entre era es esa ese eso esta este esto está fue fueron ha había han hasta hay la las le
  les lo los me mi mientras muy más ni no nos o para pero por porque que quien quién quiénes qué se según ser si sin
  sobre son su sus sí también te tiene un una uno unos y ya yo él
  pt= a ao aos as até com como da das de dela dele do dos e ela elas ele eles em entre era essa esse esta este está eu
  foi foram há isso isto já lhe mais mas me mesmo muito na nas nem no nos nossa não o onde os ou para pela pelas pelo
  pelos por porque quais qual quando quantas quanto quantos que quem se sem ser seu seus sua suas são só também te tem
  tinha um uma você à às é
  it= a ad ai al alla alle anche c che chi ci come con cosa cui da dai dal dalla de dei del della delle dello di dove
  e ed era erano essere fra gli ha hanno i il in io l la le lo loro ma mi nei nel nella non o per perché più qual
  quale quali quando quanta quante quanti quanto questa questo se si sia sono su sua sue sul sulla suo tra un una uno
  è
  nl= aan al als bij dan dat de deze die dit door een en er ge geen had heb hebben heeft het hij hoe hoeveel hun
  ik in is je kan kon maar meer men met mijn na naar niet nog nu of om onder ook op over te tegen toch toen tot uit
  van veel voor waar waarom wanneer waren was wat welk welke werd wie wij worden wordt ze zich zij zijn zo zou
  sv= alla andra att av bara blev bli den denna deras dessa det detta där efter eller en er ett från för ha hade han
  hans har henne hon hur här i ingen inte jag kan med men mig min mot mycket ni nu när något och om oss på sig sin ska
  som så till under ut utan vad var varför vem vi vid vilka vilken än är över
  da= af alle andre at blev bliver da de den denne der deres det dette dig din dog du efter eller en end er et for fra
  ham han hans har havde have hende hun hvad hvem hvilke hvilken hvis hvor hvordan hvorfor hvornår i ikke ind jeg kan
  man mange med meget men mig min mod når og også om op os over på sig skal som sådan til ud under var vi vil være
  været
  no= alle at av bare ble bli blir da de deg den denne der dere det dette du eller en enn er et etter for fra før ha
  hadde han hans har hun hva hvem hver hvilke hvilken hvor hvordan hvorfor i ikke ingen jeg kan kunne man med meg
  mellom men mot mye nå når og også om opp oss over på seg sin skal som så til under ut var ved vi vil være vært
  fi= ei eivät että he hän ja jo joka jos kanssa koska kuin kuinka kuka kun me mikä mitä mukaan mutta myös ne niin nyt
  oli olla on ovat se sekä sen siitä tai tämä vain voi
  pl= a aby ale bez być był była było co czy dla do gdy gdzie i ich ile jak jaka jaki jakie jako jego jej jest już
  kiedy kto która które który lub ma na nie o od oraz po pod przez przy się są ta tak tego tej ten to tylko tym w we z
  za ze że
  ro= a ai al ale am ar are au ca care ce cea cei cel cele cine cu cum când cât câte câți că de din după era este la
  lor lui mai nu o ori pe pentru prin sa sau se sunt să un una unde unei unui în într între și
  tr= ama bir bu böyle da daha de değil diye en gibi göre hangi hangisi her ile ise için kadar kaç ki kim mi mu mü mı
  nasıl ne neden nedir nerede o olan olarak oldu olduğu sonra ve veya ya zaman çok şu
  hu= a az csak de egy ez ezt ha hogy hol hány is kell ki meg mely melyik mert mi mikor milyen minden mint nem sem
  vagy van volt és
  cs= a aby ale bez byl byla bylo být co do jak jako jaká jaké jaký je jeho jejich jsem jsou k kde kdo kdy kolik která
  které který na nebo o od po pro proč při s se si tak to u v ve z za že
  vi= bao bị bởi cho các có cũng của gì hay khi không là lại mà một nhiều những nào này nếu ra rất sẽ thì trong trên
  tại từ và vào vì với đang đã được đến để ở
  th= กว่า กัน กับ การ กี่ ก็ ขณะ ของ ความ คือ ครับ ค่ะ จะ จาก จึง ซึ่ง ณ ด้วย ดัง ดังนี้ ตาม ต่อ ต้อง ถึง ถูก ถ้า ทำไม ทั้ง ทุก ที่ ที่สุด นั้น นี้ บน บาง ผู้ พร้อม
  พวก เพราะ เพื่อ เมื่อ เมื่อไร เมื่อไหร่ แก่ แต่ แบบ แล้ว และ แห่ง โดย ใคร ใด ใน ให้ ได้ ไป ไม่ ไหน ไหม ไว้ มัน มา มาก มี ยัง ระหว่าง รวม ร่วม ราย ลง ว่า ส่วน สิ่ง สำหรับ หนึ่ง หรือ
  หลาย หาก อยู่ อย่าง อย่างไร อะไร อัน อาจ อีก ออก เขา เคย เช่น เท่าใด เท่าไร เท่าไหร่ เธอ เป็น เรา
  id= ada adalah agar akan apa atau bagaimana bagi berapa dalam dan dari dengan di dia harus ini itu juga kapan karena
  ke kepada lebih mana mengapa mereka oleh pada saat sebagai siapa sudah telah tidak untuk yang
  ru= а без более был была были было быть в вам вас весь во вот все всех вы где да для до его ее если есть еще же за
  здесь и из или им их к как какая какие каких какое какой ко когда который кто ли между мне мы на над не него нее нет
  ни них но ну о об однако он она они оно от по под почему при с сколько со так также такой там те тем то того только
  том ты у уже чего чем что чтобы эта эти это этого этой я
  el= ένα ένας έχει ή ήταν αλλά αν από αυτά αυτή αυτό για γιατί δεν είναι η θα και κατά με μια να ο οι ποια ποιο ποιος
  που πού πριν προς πόσα πόσες πόσο πόσοι πότε πώς σε στη στην στις στο στον στους τα τη την της τι τις το τον του
  τους των ως όπου ότι
  ar= آخر أثناء أجل أحد أخرى أكثر ألا أم أما أن أنا أنت أنها أنه أنهم أو أولئك أي أية أيضا أين إحدى إذ إذا إلا إلى إليه إليها إن إنه إنها الآن التي
  الذي الذين اللتي اللذين الى بأن بأي بسبب بعد بعض بل بم بما بماذا بها به بهذا بهذه بواسطة بين بينما تحت تكون تلك تم تمت ثم جدا جميع حتى حسب حول
  حيث خلال دون ذلك سوف ضد ضمن طبقا على عليه عليها عما عن عند عندما عنه عنها غير فإن فقط في فيما فيه فيها قام قامت قبل قد كان كانت كانوا كل كلا كم
  كما كي كيف لا لأن لأي لقد لكن لكي لم لماذا لن لنا له لها لهذا لهم لو ليس ليست ما ماذا متى مثل مع معظم مما ممن من منذ منه منها منهم نحن نحو
  نفس هؤلاء هذا هذه هل هم هما هن هنا هناك هو هي وفقا وقد يتم يكون يمكن
  hi= अगर अधिक अन्य अपना अपनी अपने अब अलावा आदि आप इन इनका इनकी इनके इन्हें इन्होंने इस इसका इसकी इसके इसमें इसलिए इससे इसे उन उनका उनकी उनके उन्हें
  उन्होंने उस उसका उसकी उसके उसने उसे एक ऐसा ऐसी ऐसे और कई कब कभी कर करता करती करते करना करने कहाँ कहां का काफी कि कितना कितनी कितने किन किनके
  किन्हें किया किये किए किस किसका किसकी किसके किसको किसने किससे किसी किसे की कुछ के कैसा कैसी कैसे को कोई कौन कौनसा कौनसी कौनसे क्या क्यों क्योंकि
  गई गए गया गयी गये चाहिए जब जहाँ जहां जा जाता जाती जाते जाना जाने जिन जिनका जिनकी जिनके जिन्हें जिन्होंने जिस जिसका जिसकी जिसके जिसने जिसमें जिससे
  जिसे जैसा जैसी जैसे जो तक तब तरह तो था थी थीं थे दिया दी दिए दौरान द्वारा नहीं ने पर पास बहुत बाद बारे भी मुझे मेरा मेरी मेरे मैं में यदि यह यहाँ
  यहां या ये रहा रही रहे रूप लिए लिये लेकिन वह वहाँ वहां वाला वाली वाले वे सकता सकती सकते सबसे सभी सहित सा साथ सी से हम हमारा हमारी हमारे हर हालांकि ही
  हुआ हुई हुए हूँ हूं है हैं हो होता होती होते होना होने
"""
STOP_WORDS: Final = {
    tag: frozenset(words.split()) for tag, words in re.findall(r"(\w\w)=([^=]*)(?=\b\w\w=|\Z)", _STOP_WORDS)
}
_HAMZAS: Final = str.maketrans("أإآ", "ااا")
STOP_WORDS["ar"] |= {word.translate(_HAMZAS) for word in STOP_WORDS["ar"]}
STOP_WORDS["ar"] |= {f"{conjunction}{word}" for conjunction in "وف" for word in STOP_WORDS["ar"]}
"""Words that say nothing about a subject, by the tag of their language."""

_UNSPACED_SCRIPTS: Final = (
    ("\u0e00", "\u0e7f", "th"),
    ("\u0e80", "\u0eff", "lo"),
    ("\u1000", "\u109f", "my"),
    ("\u1780", "\u17ff", "km"),
    ("\u3040", "\u30ff", "ja"),
    ("\u3400", "\u9fff", "zh"),
    ("\uac00", "\ud7a3", "ko"),
)
_SPACED_SCRIPTS: Final = (
    ("\u0370", "\u03ff", "el"),
    ("\u0400", "\u052f", "ru"),
    ("\u0600", "\u06ff", "ar"),
    ("\u0900", "\u097f", "hi"),
)
"""The most frequent language of each script. Source: Unicode, blocks."""

UNSPACED: Final = frozenset(tag for _, _, tag in _UNSPACED_SCRIPTS)
"""Languages in which a word is a character."""

UNINFLECTED: Final = UNSPACED | {"vi"}
"""Languages whose words have one form."""

_ENGLISH_TOO: Final = frozenset(
    "ad ai al algo az bare bin ca care ci co com come comment de dog ed ei en end er era es et eu hat il io ma man men met mi"
    " min na ne non os par per plus pro ra sa se ten va var ve vi war za".split()
)
"""Words and abbreviations of English texts that are stop words of another language: half of their vote is for English.

Source: those that 5.1 million words of English abstracts, guides, filings and articles have most often."""


def voters(tags: Iterable[str], english_too: AbstractSet[str]) -> dict[str, list[str]]:
    """Return the languages of each stop word, except single letters, which are initials and units in all of them.

    Stop words of other languages that are *english_too* count for both.
    """
    tables = {tag: STOP_WORDS[tag] for tag in tags}
    known = frozenset[str]().union(*tables.values())
    found: dict[str, list[str]] = {}
    for tag, words in tables.items():
        for word in words | (known & english_too) if tag == ENGLISH else words:
            if len(word) > 1:
                found.setdefault(word, []).append(tag)
    return found


_VOTERS: Final = voters(STOP_WORDS, _ENGLISH_TOO)
TAGS: Final = tuple(dict.fromkeys([*STOP_WORDS, *(tag for _, _, tag in (*_UNSPACED_SCRIPTS, *_SPACED_SCRIPTS))]))
"""The languages that are detected."""


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


def detect(
    words: Sequence[str],
    default: str = ENGLISH,
    min_share: float = MIN_SHARE,
    voters: Mapping[str, Sequence[str]] = _VOTERS,
) -> str:
    """Return the tag of the language that has the most stop words among normalized words.

    For equal numbers, the first language of the table is returned. A script without spaces decides if most words are
    in it, another script if no stop word decides.

    Args:
        words: The words.
        default: The result without evidence.
        min_share: Votes that a language other than English needs, as a share of the words.
        voters: The languages of each stop word.
    """
    others = [word for word in words if word >= "\u0370"]
    if others and 2 * (scripts := _scripts(_UNSPACED_SCRIPTS, others)).total() > len(words):
        # Japanese texts have Chinese characters too, but more than a tenth as many kana.
        return "ja" if scripts["ja"] * 10 > scripts["zh"] else max(scripts, key=lambda tag: scripts[tag])
    if stop_words := [word for word in words if word in voters]:
        votes = dict.fromkeys(STOP_WORDS, 0.0)
        for word, count in Counter(stop_words).items():
            for tag in voters[word]:
                votes[tag] += count / len(voters[word])
        best: str = max(votes, key=votes.__getitem__)
        share = min_share if best != ENGLISH or default != ENGLISH else 0.0
        if votes[best] >= max(MIN_VOTES, share * len(words)):
            return best
    if not others:
        return default
    scripts = _scripts(_SPACED_SCRIPTS, others)
    return max(scripts, key=lambda tag: scripts[tag]) if 2 * scripts.total() > len(words) else default


def _scripts(scripts: Sequence[tuple[str, str, str]], words: Sequence[str]) -> Counter[str]:
    return Counter(tag for word in words for first, last, tag in scripts if first <= word[0] <= last)
