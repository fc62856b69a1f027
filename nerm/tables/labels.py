"""Pairs of words of which one is the positive one, in several languages."""

#: "positive negative" pairs, in small letters.
_PAIRS = """
yes no, y n, true false, t f, 1 0, 1 -1, +1 -1, good bad, high low, pass fail, passed failed, positive negative,
pos neg, approved rejected, approved denied, accepted rejected, granted denied, granted refused, admitted rejected,
hired rejected, success failure, won lost, on off, present absent, >50k <=50k,
ja nein, j n, wahr falsch, gut schlecht, hoch niedrig, positiv negativ, bewilligt abgelehnt, angenommen abgelehnt,
bestanden durchgefallen, oui non, o n, vrai faux, bon mauvais, élevé faible, positif négatif, accepté refusé,
accordé refusé, sí no, si no, s n, verdadero falso, bueno malo, alto bajo, positivo negativo, aprobado rechazado,
sim não, sim nao, verdadeiro falso, bom mau, aprovado reprovado, sì no, vero falso, buono cattivo, alto basso,
ja nee, waar onwaar, goed slecht, ja nej, sandt falsk, ja nei, sann usann, kyllä ei, jah ei, tak nie, prawda fałsz,
ano ne, áno nie, da ne, da nu, igen nem, evet hayır, evet hayir, ναι όχι, да нет, так ні, כן לא, نعم لا, हाँ नहीं,
是 否, 有 无, 有 無, はい いいえ, 예 아니오, 예 아니요, có không, ya tidak
"""
POSITIVE = {frozenset(pair.split()): pair.split()[0] for pair in _PAIRS.replace("\n", " ").split(",")}


def positive_of(first: str, second: str) -> str | None:
    """Return which of two values is the positive one, None where neither is known to be.

    >>> positive_of("nein", "Ja"), positive_of("0.0", "1.0"), positive_of("a", "b")
    ('Ja', '1.0', None)
    """
    small = {word.casefold().strip().removesuffix(".").removesuffix(".0"): word for word in (first, second)}
    known = POSITIVE.get(frozenset(small))
    return None if known is None else small[known]
