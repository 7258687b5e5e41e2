from haft.schema.docstring import read_docstring


def test_google_style():
    found = read_docstring("""Copy a file.

    Keeps its mode.

    Args:
        source (str): What to copy,
            which may be long.
        target: Where to.
        **options: The rest.

    Returns:
        Nothing.
    """)
    assert found.description == "Copy a file.\n\nKeeps its mode."
    assert found.parameters == {
        "source": "What to copy, which may be long.",
        "target": "Where to.",
        "options": "The rest.",
    }


def test_numpy_style():
    found = read_docstring("""Copy a file.

    Parameters
    ----------
    source, target : str
        A path.
        Relative.
    mode

    Returns
    -------
    int
        Bytes.
    """)
    assert found.description == "Copy a file."
    assert found.parameters == {"source": "A path. Relative.", "target": "A path. Relative.", "mode": ""}


def test_sphinx_style():
    found = read_docstring("""Copy a file.

    :param source: What to copy,
        in words.
    :type source: str
    :param str target: Where to.
    :returns: nothing
    """)
    assert found.description == "Copy a file."
    assert found.parameters == {"source": "What to copy, in words.", "target": "Where to."}


def test_a_docstring_without_any_style_is_all_description():
    text = "Look: this is it.\n\nExample:\n  indented: yes"
    assert read_docstring(text).description == text
    assert read_docstring(text).parameters == {}
    assert read_docstring(None).description == ""
