import itertools

import numpy as np
import pytest

from ccq_core.codebooks import code_counts, code_sums, descend_codebooks, initial_codebooks, solve_codebooks
from ccq_core.quantizer import AdditiveQuantizer, Effort, K


def random_quantizer(m, dim, seed=0):
    return AdditiveQuantizer(np.random.default_rng(seed).standard_normal((m, K, dim)).astype(np.float32))


def errors(quantizer, z, codes):
    return np.square(z - quantizer.decode(codes)).sum(axis=1)


def test_decode_is_the_sum_of_codewords():
    q = random_quantizer(3, 4)
    codes = np.random.default_rng(1).integers(0, K, (10, 3), dtype=np.uint8)
    expected = sum(q.codebooks[m][codes[:, m]] for m in range(3))
    assert np.allclose(q.decode(codes), expected)


def test_one_codebook_is_nearest_neighbour():
    q = random_quantizer(1, 4)
    z = np.random.default_rng(1).standard_normal((300, 4)).astype(np.float32)
    nearest = np.square(z[:, None] - q.codebooks[0][None]).sum(axis=2).argmin(axis=1)
    assert (q.encode(z)[:, 0] == nearest).all()


def test_greedy_is_residual_coding():
    q = random_quantizer(3, 5)
    z = np.random.default_rng(1).standard_normal((100, 5)).astype(np.float32)
    residual = z.copy()
    for m in range(3):
        best = np.square(residual[:, None] - q.codebooks[m][None]).sum(axis=2).argmin(axis=1)
        assert (q.encode(z, Effort(sweeps=0))[:, m] == best).all()
        residual -= q.codebooks[m][best]


def test_icm_only_improves_and_ends_in_a_local_optimum():
    q = random_quantizer(3, 6)
    z = 2 * np.random.default_rng(1).standard_normal((200, 6)).astype(np.float32)
    greedy, settled = q.encode(z, Effort(sweeps=0)), q.encode(z, Effort(sweeps=50))
    assert (errors(q, z, settled) <= errors(q, z, greedy) + 1e-4).all()
    assert errors(q, z, settled).sum() < 0.98 * errors(q, z, greedy).sum()
    for m in range(3):
        rest = z - q.decode(settled) + q.codebooks[m][settled[:, m]]
        best = np.square(rest[:, None] - q.codebooks[m][None]).sum(axis=2).min(axis=1)
        assert np.allclose(best, errors(q, z, settled), atol=1e-3)


def test_starting_codes_are_used_and_left_alone():
    q = random_quantizer(2, 4)
    z = np.random.default_rng(1).standard_normal((50, 4)).astype(np.float32)
    start = np.random.default_rng(2).integers(0, K, (50, 2), dtype=np.uint8)
    before = start.copy()
    assert (q.encode(z, Effort(sweeps=0), start=start) == start).all()
    assert (errors(q, z, q.encode(z, Effort(sweeps=1), start=start)) <= errors(q, z, start) + 1e-4).all()
    assert (start == before).all()


@pytest.mark.parametrize("n", [0, 1, 2, 63, 64, 65, 5000])
def test_chunks_do_not_show(n):
    q = random_quantizer(4, 3)
    z = np.random.default_rng(1).standard_normal((n, 3)).astype(np.float32)
    codes = q.encode(z)
    assert codes.shape == (n, 4)
    assert codes.dtype == np.uint8
    if n:
        again = np.concatenate([q.encode(z[i : i + 1]) for i in range(min(n, 40))])
        assert np.allclose(
            errors(q, z[: len(again)], codes[: len(again)]), errors(q, z[: len(again)], again), atol=1e-4
        )


def test_code_sums_equal_the_explicit_one_hot_products():
    rng = np.random.default_rng(0)
    n, m, dim = 300, 3, 4
    codes = rng.integers(0, K, (n, m), dtype=np.uint8)
    weights = rng.uniform(0.5, 6.0, n)
    z = rng.standard_normal((n, dim)).astype(np.float32)
    b = np.zeros((n, m * K))
    for i, j in itertools.product(range(n), range(m)):
        b[i, j * K + int(codes[i, j])] = 1
    assert np.allclose(code_counts(codes, weights), b.T @ (weights[:, None] * b))
    assert np.allclose(code_sums(codes, z), b.T @ z, atol=1e-5)


def test_solved_codebooks_minimise_the_weighted_error():
    rng = np.random.default_rng(0)
    n, m, dim = 2000, 2, 3
    codes = rng.integers(0, K, (n, m), dtype=np.uint8)
    weights = rng.uniform(0.5, 6.0, n)
    z = rng.standard_normal((n, dim)).astype(np.float32)
    right = code_sums(codes, (weights[:, None] * z).astype(np.float32))
    books = solve_codebooks(code_counts(codes, weights), right, ridge=1e-9)

    def loss(c):
        return weights @ np.square(z - AdditiveQuantizer(c).decode(codes)).sum(axis=1)

    best = loss(books)
    for _ in range(20):
        assert loss(books + 0.02 * rng.standard_normal(books.shape).astype(np.float32)) > best


@pytest.mark.parametrize("m", [1, 2, pytest.param(8, marks=pytest.mark.long_when_emulated)])
def test_conjugate_gradients_find_what_cholesky_finds(m):
    rng = np.random.default_rng(0)
    n, dim = 9000, 3
    codes = rng.integers(0, K - 1, (n, m), dtype=np.uint8)  # the last codeword is not used
    weights = rng.uniform(0.5, 6.0, n).astype(np.float32)
    z = rng.standard_normal((n, dim)).astype(np.float32)
    right = code_sums(codes, weights[:, None] * z)
    books = solve_codebooks(code_counts(codes, weights.astype(np.float64)), right, ridge=1e-3)
    start = rng.standard_normal(books.shape).astype(np.float32)
    found = descend_codebooks(codes, weights, right, 1e-3, start, tolerance=1e-9)
    assert np.allclose(found, books, atol=1e-4)
    hasty = descend_codebooks(codes, weights, right, 1e-3, start, steps=1)
    assert np.allclose(hasty, books, atol=1e-4) == (m == 1)  # a diagonal system takes one step
    zero = descend_codebooks(codes, weights, np.zeros_like(right), 1e-3, np.zeros_like(start))
    assert (zero == 0).all()


def test_unused_codewords_become_zero_and_stay_finite():
    codes = np.zeros((50, 2), dtype=np.uint8)
    z = np.ones((50, 3), dtype=np.float32)
    books = solve_codebooks(code_counts(codes, np.ones(50)), code_sums(codes, z), ridge=1e-4)
    assert np.isfinite(books).all()
    assert (books[:, 1:] == 0).all()
    assert np.allclose(books[:, 0].sum(axis=0), 1, atol=0.05)


def test_initial_codebooks_serve_fewer_points_than_codewords():
    z = np.random.default_rng(0).standard_normal((5, 3)).astype(np.float32)
    books = initial_codebooks(z, 2, np.random.default_rng(0))
    assert books.shape == (2, K, 3)
    assert np.isfinite(books).all()
    quantizer = AdditiveQuantizer(books)
    assert errors(quantizer, z, quantizer.encode(z)).max() < 1e-6


@pytest.mark.long_when_emulated
def test_initial_codebooks_are_means_of_what_is_left():
    rng = np.random.default_rng(0)
    z = rng.standard_normal((4000, 8)).astype(np.float32)
    books = initial_codebooks(z, 2, np.random.default_rng(0))
    left = z
    for book in books:
        nearest = np.square(left[:, None] - book).sum(axis=2).argmin(axis=1)
        sampled = left[rng.choice(len(left), K, replace=False)]
        chance = np.square(left[:, None] - sampled).sum(axis=2).min(axis=1).mean()
        assert np.square(left - book[nearest]).sum(axis=1).mean() < 0.8 * chance
        left = left - book[nearest]
