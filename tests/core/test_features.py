import warnings

import numpy as np
import pytest

from ccq_core.errors import FeatureError, InvalidInputError, UnknownModalityError
from ccq_core.features import check_array, check_features


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int8, np.uint16, np.int64])
def test_numeric_dtypes_are_cast(dtype):
    array, present = check_array("image", np.arange(12, dtype=dtype).reshape(3, 4))
    assert array.dtype == np.float32
    assert present.all()
    assert array.tolist() == np.arange(12).reshape(3, 4).tolist()


def test_nan_row_marks_absent_object():
    x = np.ones((3, 2))
    x[1] = np.nan
    array, present = check_array("image", x)
    assert present.tolist() == [True, False, True]
    assert array[1].tolist() == [0, 0]


@pytest.mark.parametrize(
    ("values", "row", "words"),
    [
        (np.array([[1.0, 2.0], [np.nan, 1.0]]), 1, "number 0: NaN"),
        (np.array([[1.0, np.inf], [1.0, 1.0]]), 0, "number 1: inf"),
        (np.array([[1.0, 2.0], [1.0, -1e300]]), 1, "-1e+300"),
        (np.array([[np.float16(1), np.float16(np.inf)]], dtype=np.float16), 0, "inf"),
        (np.ones(3), None, "features[None, :]"),
        (np.ones((2, 3, 1)), None, "(2, 3, 1)"),
        (np.ones((2, 0)), None, "at least one dimension"),
        (np.array([["a", "b"]]), None, "expected numbers"),
        (np.array([[True, False]]), None, "expected numbers"),
        (np.array([[1j, 0]]), None, "expected numbers"),
        (np.ones((2, 3)), None, "expected 2 numbers, got 3"),
        (np.array([[0, np.iinfo(np.int64).min]]), 0, "beyond 1e15"),
        ([[1.0, 2.0], [1.0]], None, "expected an array"),
        ([[10**400, 1]], None, "expected numbers"),
        (np.ma.masked_equal([[1.0, 2.0]], 2.0), None, "masked"),
        (np.zeros(2, dtype=[(f"field{i}", "f4") for i in range(100)]), None, "..."),
        (np.array(1.0), None, "()"),
        (None, None, "expected numbers"),
    ],
)
def test_bad_arrays_name_the_place(values, row, words):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(FeatureError) as caught:
            check_array("image", values, 2)
    assert caught.value.row == row
    assert caught.value.modality == "image"
    assert words in str(caught.value)
    assert "image" in str(caught.value)


def test_mapping_errors():
    with pytest.raises(InvalidInputError, match="mapping"):
        check_features([[1.0]])
    with pytest.raises(InvalidInputError, match="at least one modality"):
        check_features({})
    with pytest.raises(UnknownModalityError, match=r"'sound'.*'image'"):
        check_features({"sound": np.ones((1, 2))}, {"image": 2})
    with pytest.raises(KeyError):
        check_features({"sound": np.ones((1, 2))}, {"image": 2})
    with pytest.raises(InvalidInputError, match="same number of rows"):
        check_features({"a": np.ones((1, 2)), "b": np.ones((2, 2))})
    with pytest.raises(InvalidInputError, match="object 1 has no modality"):
        check_features({"a": np.array([[1.0], [np.nan]]), "b": np.array([[1.0], [np.nan]])})


def test_input_is_never_changed():
    x = np.array([[1.0, 2.0], [np.nan, np.nan]], dtype=np.float32)
    before = x.copy()
    check_array("image", x)
    assert np.array_equal(x, before, equal_nan=True)
