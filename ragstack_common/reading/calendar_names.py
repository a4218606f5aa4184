"""Names of months and of days of the week, for dates that a format writes in words."""

from collections.abc import Mapping
from typing import Final

MONTHS_AND_DAYS: Final[Mapping[int, tuple[str, str]]] = {
    0x04: (
        "一月 二月 三月 四月 五月 六月 七月 八月 九月 十月 十一月 十二月",
        "星期一 星期二 星期三 星期四 星期五 星期六 星期日",
    ),
    0x05: (
        "leden únor březen duben květen červen červenec srpen září říjen listopad prosinec",
        "pondělí úterý středa čtvrtek pátek sobota neděle",
    ),
    0x06: (
        "januar februar marts april maj juni juli august september oktober november december",
        "mandag tirsdag onsdag torsdag fredag lørdag søndag",
    ),
    0x07: (
        "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
        "Montag Dienstag Mittwoch Donnerstag Freitag Samstag Sonntag",
    ),
    0x09: (
        "January February March April May June July August September October November December",
        "Monday Tuesday Wednesday Thursday Friday Saturday Sunday",
    ),
    0x0A: (
        "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
        "lunes martes miércoles jueves viernes sábado domingo",
    ),
    0x0C: (
        "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
        "lundi mardi mercredi jeudi vendredi samedi dimanche",
    ),
    0x10: (
        "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
        "lunedì martedì mercoledì giovedì venerdì sabato domenica",
    ),
    0x11: ("1月 2月 3月 4月 5月 6月 7月 8月 9月 10月 11月 12月", "月曜日 火曜日 水曜日 木曜日 金曜日 土曜日 日曜日"),
    0x13: (
        "januari februari maart april mei juni juli augustus september oktober november december",
        "maandag dinsdag woensdag donderdag vrijdag zaterdag zondag",
    ),
    0x15: (
        "styczeń luty marzec kwiecień maj czerwiec lipiec sierpień wrzesień październik listopad grudzień",
        "poniedziałek wtorek środa czwartek piątek sobota niedziela",
    ),
    0x16: (
        "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
        "segunda-feira terça-feira quarta-feira quinta-feira sexta-feira sábado domingo",
    ),
    0x19: (
        "январь февраль март апрель май июнь июль август сентябрь октябрь ноябрь декабрь",
        "понедельник вторник среда четверг пятница суббота воскресенье",
    ),
    0x1D: (
        "januari februari mars april maj juni juli augusti september oktober november december",
        "måndag tisdag onsdag torsdag fredag lördag söndag",
    ),
    0x1F: (
        "Ocak Şubat Mart Nisan Mayıs Haziran Temmuz Ağustos Eylül Ekim Kasım Aralık",  # noqa: RUF001 - Turkish
        "Pazartesi Salı Çarşamba Perşembe Cuma Cumartesi Pazar",  # noqa: RUF001
    ),
}
"""Months and days by language (the low ten bits of a Windows locale); English for others. Source: Unicode CLDR."""
