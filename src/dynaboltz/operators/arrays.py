"""What the operators need to know about an array of any library, asked in one place.

NumPy, torch, JAX and every other array-API library go through ``array_api_compat``; nothing here imports torch or JAX.
"""

from __future__ import annotations

import contextlib
from typing import Any

import array_api_compat as compat
import numpy as np

from dynaboltz.errors import UserError
from dynaboltz.scalars import as_float

Values = Any
"""An array of any library: NumPy's ndarray, torch's Tensor, JAX's Array."""


def as_values(q: Any, axis: int) -> tuple[Any, Values]:
    """Return the namespace of ``q`` and ``q`` itself (a list becomes a NumPy array), with its action axis checked."""
    if isinstance(q, (list, tuple, np.generic)):
        try:
            q = np.asarray(q)
        except (TypeError, ValueError) as error:
            raise UserError(
                f"action values must be numbers in rows of one length: {error}\n"
                "  pad the shorter rows with -inf, which marks an illegal action"
            ) from None
    if not compat.is_array_api_obj(q):
        raise UserError(
            f"action values must be an array (NumPy, torch, JAX) or a list of floats, got {type(q).__name__}"
        )
    xp = compat.array_namespace(q)
    if not xp.isdtype(q.dtype, "real floating"):
        raise UserError(
            f"action values must be real floating-point numbers, got {q.dtype}; "
            "convert them first, for instance with q.astype(float) or q.to(torch.float32)"
        )
    if q.ndim == 0:
        raise UserError("action values need an action axis, got a single number; wrap it in a list of one value")
    if isinstance(axis, bool) or not isinstance(axis, int) or not -q.ndim <= axis < q.ndim:
        raise UserError(
            f"axis must be an integer from {-q.ndim} to {q.ndim - 1} for shape {tuple(q.shape)}, got {axis!r}"
        )
    if q.shape[axis] == 0:
        raise UserError(f"the action axis is empty: shape {tuple(q.shape)}, axis {axis}; an operator needs an action")
    return xp, q


def as_beta(xp: Any, q: Values, beta: Any, *, rows: tuple[int, ...]) -> Any:
    """Return ``beta`` as a float, or as an array of q's type with a last axis of length 1, checked and finite.

    An infinite β becomes the largest finite number of the type: the same weights, and no ∞·0.
    """
    largest = float(xp.finfo(q.dtype).max)
    value = as_float(beta)
    if value is not None:
        if not value >= 0.0:
            raise UserError(f"beta must be at least 0 (0 is the mean, inf the maximum), got {value}")
        return min(value, largest)
    if not compat.is_array_api_obj(beta) or not _real(beta):
        raise UserError(f"beta must be a number of at least 0 or an array of them, got {beta!r}")
    if compat.is_numpy_array(beta) and not compat.is_numpy_array(q):
        beta = xp.asarray(beta)
    if beta.ndim and (beta.ndim > len(rows) or not _broadcasts(tuple(beta.shape), rows)):
        raise UserError(f"beta of shape {tuple(beta.shape)} must broadcast to one number a row, shape {rows}")
    with quiet():
        beta = xp.astype(beta, q.dtype)
    if readable(beta) and not truth(xp.all(beta >= 0)):
        raise UserError(f"beta must be at least 0 (0 is the mean, inf the maximum), got {to_numpy(beta)}")
    beta = xp.minimum(beta, xp.asarray(largest, dtype=q.dtype))
    return beta[..., None] if beta.ndim else beta


def as_mask(xp: Any, q: Values, mask: Any) -> Values:
    """``mask`` as a boolean array of q's library, checked; True marks a legal action."""
    mask = mask if compat.is_array_api_obj(mask) and type(mask) is type(q) else xp.asarray(mask)
    if not xp.isdtype(mask.dtype, "bool"):
        raise UserError(f"mask must be boolean (True is a legal action), got {mask.dtype}")
    if not _broadcasts(tuple(mask.shape), tuple(q.shape)):
        raise UserError(f"mask of shape {tuple(mask.shape)} must broadcast to the action values' {tuple(q.shape)}")
    return mask


def _real(x: Values) -> bool:
    return bool(compat.array_namespace(x).isdtype(x.dtype, ("integral", "real floating")))


def _broadcasts(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    return len(shape) <= len(to) and all(a in (1, b) for a, b in zip(shape[::-1], to[::-1], strict=False))


def readable(x: Values) -> bool:
    """Whether looking at the numbers costs nothing: they are in host memory and not being traced."""
    if compat.is_numpy_array(x):
        return True
    if compat.is_torch_array(x):
        import torch

        return x.device.type == "cpu" and not torch.compiler.is_compiling()
    try:
        return compat.is_jax_array(x) and all(device.platform == "cpu" for device in x.devices())
    except (TypeError, AttributeError):  # a tracer has no device
        return False


def truth(flag: Any) -> bool:
    """``bool(flag)``; True where a tracer (jit, vmap) has no answer yet."""
    try:
        return bool(flag)
    except (TypeError, RuntimeError):
        return True


def to_numpy(x: Values) -> Any:
    """The numbers as a NumPy array, without a copy where memory can be shared."""
    if compat.is_torch_array(x):
        return x.detach().numpy()
    return np.asarray(x)


def host_view(q: Values) -> Any:
    """``q`` as a NumPy array if a compiled kernel may read it: float64 or float32, in memory, no gradient wanted."""
    if compat.is_numpy_array(q):
        return q if type(q) is np.ndarray and q.dtype in (np.float64, np.float32) and q.dtype.isnative else None
    if compat.is_torch_array(q):
        import torch

        if type(q) is not torch.Tensor or not readable(q) or q.dtype not in (torch.float64, torch.float32):
            return None
        if q.requires_grad and torch.is_grad_enabled():
            return None
        if torch.autograd.forward_ad.unpack_dual(q).tangent is not None:  # type: ignore[no-untyped-call]
            return None
        try:
            return q.detach().numpy()
        except RuntimeError:  # inside vmap or another transform the tensor has no memory of its own
            return None
    return None


def rounding_reaches_minimum(m: int, eps: float) -> bool:
    """Whether a sum over m values may lose as much as one of them is worth, so that a mean could leave their range.

    The sum loses up to m·eps/2 of itself, and the largest of m values, with weight 1/m, lifts the mean by no less.
    """
    return m * m * eps >= 1


def quiet() -> contextlib.AbstractContextManager[Any]:
    """Silence NumPy where overflow and underflow are the right answer: e^{β·d} is 0 far below the maximum."""
    return np.errstate(over="ignore", under="ignore")
