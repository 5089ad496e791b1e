import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ccq_core.norms import encode_norms, fit_levels


def test_few_distinct_values_are_kept_exactly():
    values = np.repeat(np.arange(1.0, 201.0), 5)
    levels = fit_levels(values)
    assert (levels[encode_norms(levels, values)] == values).all()


def test_levels_are_better_than_uniform_ones():
    values = np.random.default_rng(0).gamma(2.0, 3.0, 50_000)
    levels = fit_levels(values)
    uniform = np.linspace(values.min(), values.max(), 256).astype(np.float32)

    def error(candidates):
        return np.square(candidates[encode_norms(candidates, values)] - values).mean()

    assert error(levels) < 0.95 * error(uniform)


@given(st.lists(st.floats(0, 1e12), min_size=1, max_size=600), st.lists(st.floats(0, 1e13), min_size=1, max_size=50))
def test_levels_ascend_and_the_nearest_is_chosen(training, values):
    levels = fit_levels(np.array(training))
    assert levels.shape == (256,)
    assert (np.diff(levels) >= 0).all()
    chosen = encode_norms(levels, np.array(values))
    wide = levels.astype(np.float64)
    for value, index in zip(values, chosen, strict=True):
        assert abs(wide[index] - value) <= np.abs(wide - value).min() * (1 + 1e-9) + 1e-12
