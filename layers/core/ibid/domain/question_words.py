"""Words that questions are made of: what remains is what they ask about."""

from typing import Final

QUESTION_WORDS: Final = """
    where how what which why when who whose does did do done can could should would will shall
    define defined defines definition declared declare implement implemented implements
    implementation use used uses using find found happen happens happening work works working code
    codebase function functions method methods class classes file files module modules line lines
    show explain describe tell give list project repository repo please need want know mean means
    get make there here it its this that these those they them and or thing things way about
    call called calls between difference
    onde como qual quais que porque quando quem faz fica definido definida definidos implementado
    implementada usado usada funciona código função método classes arquivo módulo mostre explique
    projeto é são está isso isto ele ela
    donde dónde cómo cuál cuáles qué cuándo quién hacer define implementa usa función clase archivo
    muestra explica proyecto está eso esto él ella
"""
"""In English, Portuguese and Spanish, as they are written, parted by white space."""
