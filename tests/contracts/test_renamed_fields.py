"""Documents of earlier versions are read under the names of this one."""

from haft.contracts.renamed_fields import with_current_names


def test_an_old_name_is_read_as_the_current_one():
    assert with_current_names({"walls": 1, "error": {"code": "walled"}}) == {
        "sandbox": 1,
        "error": {"code": "sandbox-denied"},
    }


def test_the_current_name_counts_where_a_document_has_both():
    assert with_current_names({"sandbox": "new", "walls": "old"}) == {"sandbox": "new"}


def test_a_code_of_another_type_is_left_alone():
    assert with_current_names({"error": {"code": ["walled"]}}) == {"error": {"code": ["walled"]}}
