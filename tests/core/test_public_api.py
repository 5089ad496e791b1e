"""The public surface is small and only changes on purpose."""

import ccq_core
from ccq_core import errors


def test_exported_names():
    assert sorted(ccq_core.__all__) == [
        "CCQ",
        "CCQError",
        "CodeIndex",
        "Hits",
        "Progress",
        "__version__",
        "mean_average_precision",
    ]


def test_error_tree_is_documented_and_natural():
    classes = [c for c in vars(errors).values() if isinstance(c, type) and issubclass(c, errors.CCQError)]
    assert len(classes) == 11
    for cls in classes:
        assert cls.__name__ in errors.__doc__
        assert cls.__doc__
        if cls is not errors.CCQError:
            assert issubclass(cls, (ValueError, KeyError, RuntimeError))
