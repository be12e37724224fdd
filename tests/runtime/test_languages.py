"""The language of a text, told by its script and its function words."""

import pytest

from xsent.languages import is_function_word, language_of


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en", "Hello, where is my parcel? It should have arrived yesterday."),
        ("fr", "Bonjour, je n'ai pas encore reçu ma commande."),
        ("de", "Guten Tag, mein Paket ist noch nicht da."),
        ("es", "Hola, todavía no ha llegado mi paquete."),
        ("it", "Salve, il mio pacco non è ancora arrivato."),
        ("pt", "Olá, a minha encomenda ainda não chegou."),
        ("nl", "Hallo, mijn pakket is nog niet aangekomen."),
        ("ru", "Здравствуйте, моя посылка ещё не пришла."),
        ("ja", "荷物がまだ届いていません。"),
        ("zh", "我的包裹还没到。"),
        ("fr", "OU EST MA COMMANDE ? ELLE DEVAIT ETRE LA"),  # without accents
        ("en", "This 荷物 means a parcel."),
        ("", "Refund 4711"),
        ("", "Anna's T-shirt, 25 °C, DE89370400440532013000"),  # letters of codes and units are not words
        ("fr", "L'été, c'est l'hiver."),
        ("", "Paketti ei saapunut."),
        ("", "de"),  # of four languages
        ("", ""),
    ],
)
def test_languages_are_told_or_left_open(language: str, text: str) -> None:
    assert language_of(text) == language


def test_function_words_of_all_languages_in_any_spelling() -> None:
    words = ["The", "mon", "einen", "YOUR", "für", "fur", "меня", "wij", "não", "così"]
    assert all(map(is_function_word, words))
    assert not any(map(is_function_word, ["invoice", "Rechnung", "facture", "счёт", "請求書", ""]))
