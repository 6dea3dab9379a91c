"""How the tests of the openai backend make one and ask it."""

from __future__ import annotations

from standin import StandIn

from simengine.llm.backends.openai import OpenAI
from simengine.llm.request import Completion, Message, Request, Sampling
from simengine.llm.settings import LLMSettings

KEY = "sk-test-123"


def ask(text: str = "hello", sampling: Sampling = Sampling(temperature=0.0)) -> Request:  # noqa: B008 - a frozen value
    return Request(
        task="choose", model="m", messages=(Message("system", "play"), Message("user", text)), sampling=sampling
    )


def backend(server: StandIn, **options: object) -> OpenAI:
    said = {"backend": "openai", "model": "m", "base_url": server.url, "api_key": "${MY_KEY}", **options}
    return OpenAI(LLMSettings.model_validate(said), {"MY_KEY": KEY})


async def complete(server: StandIn, request: Request | None = None, **options: object) -> Completion:
    model = backend(server, **options)
    try:
        return await model.complete(request or ask())
    finally:
        await model.aclose()
