"""Words and sentences of scripts without spaces between words."""

import pytest

from ragstack_common.answers.quote.quoting import best_quotations
from ragstack_common.text.sentences import sentence_spans
from ragstack_common.text.words import query_terms, runs, terms, words

LEAVE = "พนักงานทุกคนมีวันลาพักร้อนประจำปี 30 วันทำการ โดยต้องแจ้งหัวหน้างานก่อนสิ้นปี"
RIVER = "แม่น้ำเจ้าพระยาเป็นแม่น้ำสายหลักของประเทศไทย มีความยาวประมาณ 372 กิโลเมตร"
PRINTER = "เครื่องพิมพ์ตั้งอยู่ที่ชั้นสองของอาคาร หากหมึกหมดให้ติดต่อฝ่ายเทคโนโลยีสารสนเทศ"
TURBINES = (
    "กังหันไอน้ำส่วนใหญ่ที่ใช้ในโรงไฟฟ้าทำงานที่ความเร็วรอบคงที่ตามความถี่ของระบบไฟฟ้า คือ 3600 รอบต่อนาที (RPM) ในสหรัฐอเมริกา"
    " โดยมีกำลัง 60 เฮิรตซ์ 3000 RPM ในยุโรปและประเทศอื่นๆ ที่ใช้ระบบไฟฟ้า 50 เฮิรตซ์"
)


def test_thai_is_divided_into_words() -> None:
    assert words("ประเทศไทยมีพนักงานกี่คน ๓๐ คน") == ["ประเทศ", "ไทย", "มี", "พนักงาน", "กี่", "คน", "30", "คน"]


@pytest.mark.parametrize(
    ("question", "own", "others"),
    [
        ("พนักงานมีวันลาพักร้อนกี่วัน", LEAVE, [RIVER, PRINTER]),
        ("แม่น้ำเจ้าพระยามีความยาวเท่าไร", RIVER, [LEAVE, PRINTER]),
        ("เครื่องพิมพ์ตั้งอยู่ที่ไหน", PRINTER, [LEAVE, RIVER]),
    ],
)
def test_a_thai_question_is_answered_only_by_its_own_passage(question: str, own: str, others: list[str]) -> None:
    found = best_quotations(question, [*others, own])
    without = best_quotations(question, others)

    assert max(found, key=lambda each: each.evidence.confidence).text in own
    assert max(each.evidence.confidence for each in found) > 0.7
    assert max((each.evidence.confidence for each in without), default=0) < 0.3


@pytest.mark.parametrize(
    ("text", "query", "other"),
    [
        ("ພະນັກງານທຸກຄົນມີວັນພັກປະຈໍາປີ", "ວັນພັກ", "ຫ້ອງການປິດໃນວັນອາທິດ"),
        ("បុគ្គលិកទាំងអស់មានថ្ងៃឈប់សម្រាក", "ថ្ងៃឈប់សម្រាក", "ទន្លេមេគង្គហូរកាត់ប្រទេសកម្ពុជា"),
        ("ဝန်ထမ်းများသည် ခွင့်ရက်ရှိသည်", "ခွင့်ရက်", "မြစ်သည် ပင်လယ်သို့ စီးဆင်းသည်"),
    ],
)
def test_lao_khmer_and_burmese_are_found_by_runs_of_letters_and_not_by_each_letter(
    text: str, query: str, other: str
) -> None:
    asked = query_terms(query).keys()

    assert len(asked & set(terms(text))) >= 0.6 * len(asked)
    assert len(asked & set(terms(other))) <= 0.2 * len(asked)


def test_a_space_within_a_thai_sentence_does_not_end_it() -> None:
    sentences = [TURBINES[start:end] for start, end in sentence_spans(TURBINES)]

    assert sentences == [TURBINES]


def test_a_space_between_thai_clauses_may_end_a_sentence() -> None:
    first = "ไวรัสแพร่กระจายผ่านทางอากาศเมื่อผู้ติดเชื้อไอหรือจามในห้องปิดที่ไม่มีการระบายอากาศอย่างเพียงพอสำหรับทุกคน"
    second = "วัคซีนช่วยลดความรุนแรงของโรค"

    assert [f"{first} {second}"[start:end] for start, end in sentence_spans(f"{first} {second}")] == [first, second]


def test_words_of_vietnamese_do_not_count_as_inflected() -> None:
    [found, *_] = best_quotations("Máy in nằm ở đâu?", ["Máy in nằm ở tầng hai của tòa nhà, và nó được bảo trì."])

    assert found.evidence.inflected == 0


def test_the_runs_that_vectors_depend_on_stay_letters() -> None:
    assert runs("ที่นี่ 6.3") == ["ที่", "นี่", "6", "3"]
