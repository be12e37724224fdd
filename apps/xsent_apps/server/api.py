"""What clients send and get: requests as OpenAI's embeddings have them, ours beside it, and errors in OpenAI's form."""

from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, FailFast, Field, ValidationError
from pydantic_core import ErrorDetails, to_json
from starlette.responses import Response

OnLong = Literal["error", "split"]  # not "warn": nobody would see that a text was cut
DEFAULT = "default"  # a name that every model answers to

Request = TypeVar("Request", bound="_Request")


class ApiError(Exception):
    """A request that is not answered; its text is for whoever sent it."""

    def __init__(self, status: int, message: str, *, param: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.param = param  # the field that is wrong
        self.code = code  # what kind of error, for programs

    def response(self) -> Response:
        """The answer, after which a client knows whether to try again."""
        kind = "server_error" if self.status >= 500 else "invalid_request_error"
        error = {"message": str(self), "type": kind, "param": self.param, "code": self.code}
        headers = {"Retry-After": "1"} if self.status == 503 else {}
        headers |= {"WWW-Authenticate": "Bearer"} if self.status == 401 else {}
        return reply({"error": error}, self.status, headers)


def reply(content: dict[str, Any], status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """JSON."""
    return Response(to_json(content), status, headers, "application/json")


def _texts(value: object) -> object:
    """One text is a list of one; what are no texts is refused in words, a union would list all that it is not."""
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not texts:
        raise ValueError("expected a text, or a list of at least one")
    if all(isinstance(text, int) or (isinstance(text, list) and text[:1] and type(text[0]) is int) for text in texts):
        advice = "send text (in LangChain check_embedding_ctx_length=False)"
        raise ValueError(f"tokens of another model's vocabulary mean nothing to this one; {advice}")
    return texts


def _groups(value: object) -> object:
    """Texts as groups of one; pairs stay as they are."""
    texts = _texts(value)
    return [[text] if isinstance(text, str) else text for text in texts] if isinstance(texts, list) else texts


class _Request(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")  # a misspelt option must not pass for one that worked

    model: str = DEFAULT


class EmbeddingsRequest(_Request):
    """Of `/v1/embeddings`."""

    input: Annotated[list[str], FailFast(), BeforeValidator(_texts)]
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: int | None = None
    user: str | None = None  # OpenAI's; without effect
    on_long: OnLong | None = None  # ours; None is what the server was started with


class ClassifyRequest(_Request):
    """Of `/classify`."""

    input: Annotated[
        list[list[str]], FailFast(), BeforeValidator(_groups)
    ]  # groups of one text, or of two for a head of pairs
    head: str | None = None
    unknown: float | None = Field(None, ge=0, le=1)  # as `LinearClassifier.predict` has it


class SearchRequest(_Request):
    """Of `/search`."""

    query: Annotated[list[str], FailFast(), BeforeValidator(_texts)]
    k: int = Field(10, ge=1)
    index: str | None = None
    exact: bool = False
    words: bool = False


def parse(kind: type[Request], body: bytes | bytearray) -> Request:
    """A request from its body; an ApiError says what is wrong first."""
    try:
        return kind.model_validate_json(body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        param = _place(first)
        raise ApiError(400, f"{f'{param}: ' if param else ''}{_said(first, kind)}", param=param or None) from None


def _place(error: ErrorDetails) -> str:
    """Where it is, as in `input[3]`."""
    names = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in error["loc"])
    return "".join(names).removeprefix(".")[:100]


def _said(error: ErrorDetails, kind: type[BaseModel]) -> str:
    if error["type"] == "extra_forbidden":
        return f"there is no such field; there are {', '.join(kind.model_fields)}"
    return error["msg"].removeprefix("Value error, ")
