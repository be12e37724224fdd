"""SentencePiece's model file as a protobuf message, to read and to change its pieces."""

from typing import Any

from sentencepiece import sentencepiece_model_pb2

# Made while it is imported, so that no type is known.
ModelProto: Any = sentencepiece_model_pb2.ModelProto  # type: ignore[attr-defined]
SentencePiece = ModelProto.SentencePiece
