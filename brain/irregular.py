"""English forms that no suffix rule leads back to their base: the past of strong verbs and a few plurals.

Plurals that are also the present of a verb are left to the suffix rules: she lives, the train leaves.
"""

from __future__ import annotations

from typing import Final

_FORMS: Final = """
    bear bore borne, begin began begun, bend bent, bite bit bitten, blow blew blown, break broke broken, bring brought,
    build built, burn burnt, buy bought, catch caught, choose chose chosen, come came, deal dealt, dig dug,
    draw drew drawn, dream dreamt, drink drank drunk, drive drove driven, eat ate eaten, fall fell fallen, feed fed,
    feel felt, fight fought, find found, fly flew flown, forget forgot forgotten, forgive forgave forgiven,
    freeze froze frozen, get got gotten, give gave given, go went gone, grow grew grown, hang hung, hear heard,
    hide hid hidden, hold held, keep kept, know knew known, lay laid, lead led, learn learnt, leave left, lend lent,
    light lit, lose lost, make made, mean meant, meet met, mistake mistook mistaken, overcome overcame, pay paid,
    ride rode ridden, ring rang rung, rise rose risen, run ran, say said, see saw seen, seek sought, sell sold,
    send sent, shake shook shaken, shine shone, shoot shot, show shown, sing sang sung, sink sank sunk, sit sat,
    sleep slept, slide slid, speak spoke spoken, spend spent, stand stood, steal stole stolen, stick stuck,
    strike struck, swear swore sworn, swim swam swum, take took taken, teach taught, tear tore torn, tell told,
    think thought, throw threw thrown, understand understood, undertake undertook undertaken, wake woke woken,
    wear wore worn, weave wove woven, win won, withdraw withdrew withdrawn, write wrote written,
    child children, foot feet, goose geese, half halves, knife knives, loaf loaves, man men,
    mouse mice, person people, shelf shelves, thief thieves, tooth teeth, wife wives, wolf wolves, woman women
"""

BASES: Final = {form: words[0] for words in map(str.split, _FORMS.split(",")) for form in words[1:]}
"""Base by irregular form."""
