import json
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragstack_common.access.policy import AccessPolicy, parse_policy, read_policy
from ragstack_common.core.errors import ConfigurationError

POLICY = {
    "labels": {"public": {"allow": ["everyone"]}, "hr": {"allow": ["group:hr"]}, "board": {"allow": ["group:board"]}},
    "prefixes": {
        "": {"default": "public"},
        "people/": {"default": "hr", "labels": ["public"]},
        "people/board/": {"default": "board", "writers": ["group:board"]},
        "drafts/": {"labels": ["hr"]},
    },
}


def policy(**changes: object) -> AccessPolicy:
    return parse_policy(json.dumps({**POLICY, **changes}).encode(), "access.json")


@pytest.mark.parametrize(
    ("key", "wanted", "label"),
    [
        ("readme.md", None, "public"),
        ("people/leave.md", None, "hr"),
        ("people/leave.md", "public", "public"),
        ("people/leave.md", "board", "hr"),
        ("people/board/minutes.md", None, "board"),
        ("people/board/minutes.md", "public", "board"),
        ("drafts/a.md", None, None),
        ("drafts/a.md", "public", None),
        ("drafts/a.md", "hr", "hr"),
        ("people/leave.md", ["public"], "hr"),
        ("people/leave.md", 1, "hr"),
        ("peoples/leave.md", "hr", "public"),
    ],
)
def test_the_longest_prefix_decides_which_labels_count(key: str, wanted: object, label: str | None) -> None:
    assert policy().label_of(key, wanted) == label


def test_a_key_without_a_rule_has_no_label_and_no_writers() -> None:
    without = policy(prefixes={"people/": {"default": "hr"}})

    assert without.label_of("other.md", "hr") is None
    assert without.rule_for("other.md")[1].writers == ()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"labels": {"a b": {}}}, "labels.a b: 'a b' must be a letter or digit"),
        ({"labels": {"a": {"allow": ["bob"]}}, "prefixes": {}}, "labels.a.allow.0: 'bob' must be everyone, or a kind"),
        ({"prefixes": {"x/": {"default": "unknown"}}}, "'x/' names the label 'unknown', which labels does not have"),
        ({"rights": {"admin": ["everyone"]}}, "rights.admin: Input should be 'read', 'write' or 'operate'"),
        ({"label": {}}, "label: Extra inputs are not permitted"),
    ],
)
def test_an_invalid_file_is_explained(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        policy(**changes)

    assert str(caught.value).startswith(f"The access file access.json is invalid: {message}") or message in str(
        caught.value
    )


@pytest.mark.parametrize(
    "name", ["corpus", "version", "x-amz-bedrock-kb-source-uri", "x-amz-bedrock-kb-anything", "ragstack_sheet"]
)
def test_labels_are_in_no_attribute_that_has_another_meaning(name: str) -> None:
    with pytest.raises(ConfigurationError, match=f"attribute: '{name}' has a meaning of its own"):
        policy(attribute=name)


def test_the_attribute_of_labels_is_found_in_each_form() -> None:
    name = "zug\u00e4nglich"
    file = policy(attribute=unicodedata.normalize("NFD", name))

    assert file.attribute == name


@pytest.mark.parametrize("body", [b"[" * 100_000, b'{"labels": ' * 5000, b"[" * 300 + b"]" * 300])
def test_a_file_that_is_nested_too_deeply_is_explained(body: bytes) -> None:
    with pytest.raises(ConfigurationError, match=r"The access file access\.json is invalid"):
        parse_policy(body, "access.json")


def test_a_name_given_twice_is_rejected() -> None:
    with pytest.raises(ConfigurationError, match="'hr' is given twice"):
        parse_policy(b'{"labels": {"hr": {"allow": ["group:hr"]}, "hr": {"allow": ["everyone"]}}}', "access.json")


def test_a_missing_file_is_explained(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"access file .* cannot be read: No such file"):
        read_policy(tmp_path / "access.json")


TENANTS = {
    "labels": {name: {} for name in ("public", "acme", "board", "zenith")},
    "prefixes": {
        "": {"default": "public"},
        "t/acme/": {"default": "acme", "labels": ["public"]},
        "t/acme/board/": {"default": "board"},
    },
    "tenants": {"acme": {"prefix": "t/acme/"}, "zenith": {"prefix": "t/zenith/"}},
}


def test_tenants_have_the_documents_under_their_prefixes() -> None:
    found = policy(**TENANTS)

    assert found.tenant_of("t/acme/board/a.md") == "acme"
    assert found.tenant_of("t/zenith/a.md") == "zenith"
    assert found.tenant_of("t/acme") is None
    assert found.tenant_of("t/acmes/a.md") is None
    assert found.labels_of_tenant("acme") == {"acme", "board", "public"}
    assert found.labels_of_tenant("zenith") == {"public"}
    assert found.labels_of_tenant(None) == {"public"}


@pytest.mark.parametrize(
    ("tenants", "message"),
    [
        ({"a": {"prefix": "t/"}, "b": {"prefix": "t/b/"}}, "the prefixes of a and b overlap"),
        ({"a": {"prefix": "t/"}, "b": {"prefix": "t/"}}, "the prefixes of a and b overlap"),
        ({"a": {"prefix": "t"}}, "ends with a slash"),
        ({"a": {"prefix": "/"}}, "ends with a slash"),
        ({"a b": {"prefix": "t/"}}, "a letter or digit"),
        ({"shared": {"prefix": "t/"}}, "what tenants share"),
    ],
)
def test_tenants_that_share_documents_are_rejected(tenants: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        policy(tenants=tenants)


names = st.text(
    st.sampled_from("aAe/.\u0308\u0301\u0323\u00e4\u00e9\u1e69\u212b\u1100\u1161\u11a8\uac00z"), max_size=12
)


def forms_of(name: str) -> list[str]:
    return [name, *(unicodedata.normalize(form, name) for form in ("NFC", "NFD"))]


@given(prefix=names, rest=names, other=names, data=st.data())
def test_every_form_of_a_key_has_the_label_of_its_prefix(
    prefix: str, rest: str, other: str, data: st.DataObject
) -> None:
    prefix += "/"
    written = data.draw(st.sampled_from(forms_of(prefix)))
    policy = AccessPolicy(
        labels={"secret": {}, "open": {}, "chosen": {}},
        prefixes={
            "": {"default": "open"},
            written: {"default": "secret", "labels": ["chosen"], "writers": ["group:g"]},
        },
        tenants={"acme": {"prefix": "tenants/acme/"}},
    )
    # A part of a key can have another form than the rest: a typed folder before the name of a file.
    keys = [f"{folder}{name}" for folder in forms_of(prefix) for name in forms_of(f"x{rest}")]

    assert {policy.label_of(key, None) for key in keys} == {"secret"}
    assert {policy.label_of(key, "chosen") for key in keys} == {"chosen"}
    assert {policy.rule_for(key)[1].writers for key in keys} == {("group:g",)}
    assert len({policy.label_of(key, None) for key in forms_of(other)}) == 1


def test_names_in_an_access_file_compare_composed() -> None:
    written = {
        "rights": {"read": ["group:Fu\u0308hrung"]},
        "labels": {"Vertra\u0308ge": {"allow": ["user:Ju\u0308rgen"]}},
        "prefixes": {"Vertra\u0308ge/": {"default": "Vertr\u00e4ge", "writers": ["group:Fu\u0308hrung"]}},
        "tenants": {"acme": {"prefix": "Ku\u0308he/"}},
    }
    policy = parse_policy(json.dumps(written).encode(), "access.json")

    assert policy == parse_policy(unicodedata.normalize("NFC", json.dumps(written, ensure_ascii=False)).encode(), "x")
    assert policy.principals == {"group:F\u00fchrung", "user:J\u00fcrgen"}
    assert policy.label_of("Vertra\u0308ge/a.md", "Vertra\u0308ge") == "Vertr\u00e4ge"
    assert {policy.tenant_of(key) for key in ("Ku\u0308he/a.md", "K\u00fche/a.md")} == {"acme"}


def test_a_prefix_in_two_forms_is_given_twice() -> None:
    rules: dict[str, dict[str, str]] = {"Vertra\u0308ge/": {}, "Vertr\u00e4ge/": {}}

    with pytest.raises(ConfigurationError, match="'Vertr\u00e4ge/' is given twice"):
        parse_policy(json.dumps({"prefixes": rules}).encode(), "access.json")


def test_the_prefixes_of_tenants_overlap_in_any_form() -> None:
    with pytest.raises(ValueError, match="overlap"):
        AccessPolicy(tenants={"a": {"prefix": "Ku\u0308he/"}, "b": {"prefix": "K\u00fche/b/"}})
