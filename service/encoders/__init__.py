"""Encoders: what makes features of texts and images on the server. All optional; see docs/encoders.md."""

from service.encoders.interface import Encoder, EncoderKind, Surroundings, Takes, ValueRefusedError

__all__ = ["Encoder", "EncoderKind", "Surroundings", "Takes", "ValueRefusedError"]
