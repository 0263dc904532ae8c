"""Words too common to tell one text from another, by language, as they are written."""

from collections.abc import Mapping
from typing import Final

_LISTS: Final[Mapping[str, str]] = {
    "english": """
        a an and are as at be but by for if in into is it no not of on or such that the their then
        there these they this to was will with""",
    "spanish": """
        a al algo ante antes como con contra cual cuando de del desde donde durante e el ella ellas
        ellos en entre era es esa ese eso esta está este esto fue ha hay la las le les lo los más me
        mi muy no nos o para pero por que qué quien se ser si sin sobre son su sus también un una
        uno unos y ya""",
    "portuguese": """
        a ao aos as até com como da das de dela dele depois do dos e é ela elas ele eles em entre
        era essa esse esta está este eu foi há isso isto já lhe mais mas me mesmo na nas nem no nos
        não o os ou para pela pelas pelo pelos por qual quando que quem se sem ser seu seus são só
        sua suas também te tem um uma umas uns""",
    "french": """
        à au aux avec ce ces cette dans de des du elle elles en est et eu il ils je la le les leur
        leurs lui ma mais me même mes moi mon ne nos notre nous on ou où par pas plus pour qu que
        qui sa se ses son sont sur ta te tes ton tu un une vos votre vous y""",
    "german": """
        aber als am an auch auf aus bei bin bis da das dass dem den der des die dies diese dieser
        dieses doch du durch ein eine einem einen einer eines er es für hat hatte ich ihr im in ist
        ja mit nach nicht noch nur oder ohne sein seine sich sie sind so über um und uns unter vom
        von vor war was wenn wie wird wir wurde zu zum zur""",
    "italian": """
        a ai al alla alle allo anche che chi ci come con cui da dagli dai dal dalla dalle degli dei
        del della delle dello di e è ed era gli ha hanno i il in io la le lei lo loro lui ma mi ne
        nei nel nella nelle noi non o per perché più quale quando quella quello questa questo se si
        sono su sua sue sugli sui sul sulla suo suoi tra tu un una uno vi voi""",
}
STOP_WORDS: Final[Mapping[str, frozenset[str]]] = {
    language: frozenset(words.split()) for language, words in _LISTS.items()
}
