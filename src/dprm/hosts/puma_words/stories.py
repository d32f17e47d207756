"""The sentences of word problems: what they say, and what they compute.

A story is an opening, one to three events and a question, all about one quantity v: things, money, people, goods or
miles. Every clause is a text with slots and a small program:

    "then {he} finds {x} more ."            v+x        v ← v + x
    "{he} buys {x} more {boxes} …"          x*y v+p    p ← x·y;  v ← v + p   (p is the step before)
    "{B} is {x} years old ."                           nothing: x is a number that only distracts

A step is `left operator right`; operands are v, the clause's numbers x and y, p, and the constants 2 (half), 7 (a week)
and 12 (a dozen). An opening without a step starts with v = x. What numbers may be is read off the program (`law`).
"""

from __future__ import annotations

import re
from typing import NamedTuple

OPENING, EVENT, ASIDE, QUESTION = range(4)
OPERANDS = ("v", "x", "y", "p", "2", "7", "12")
CONSTANTS = (2, 7, 12)
OPERATORS = "+-*/"


class Clause(NamedTuple):
    """One sentence or two. theme: what v is; role: OPENING … QUESTION; text: words and {slots}; program: its steps."""

    theme: str
    role: int
    text: str
    program: str

    def words(self) -> list[str]:
        """Words and slots, in order; a slot keeps its braces."""
        return self.text.split()

    def steps(self) -> list[tuple[str, str, str]]:
        """(left, operator, right) of every step."""
        return re.findall(r"(v|x|y|p|\d+)([-+*/])(v|x|y|p|\d+)", self.program)

    def law(self, slot: str) -> str:
        """Which numbers the slot x or y takes: a name of `LAWS`, or a bound that depends on another number.

        `below v`, `above v` and `below x` keep differences positive, `divides v` keeps quotients whole.
        """
        if f"{{{slot}}}" not in self.text:
            return "none"
        for left, operator, right in self.steps():
            other = left if right == slot else right
            if slot in (left, right):
                if operator == "*":
                    return "factor" if other == "v" else "count" if slot == "x" else "size"
                if operator == "/":
                    return "divides v"
                if operator == "-" and slot == right:
                    return f"below {left}"
                return "above v" if operator == "-" and other == "v" else "addend" if other == "v" else "start"
        return "start" if self.role == OPENING else "addend"


# Fewest and most, inclusive. All are at least 2, so that nouns stand in the plural.
LAWS = {"start": (6, 150), "addend": (2, 99), "factor": (2, 6), "count": (2, 12), "size": (2, 25)}

# Words of a slot; a problem has one of each, the same in all its clauses. {others} are other things.
_SLOT_WORDS = {
    "{man}": "Tom Ben Max Leo Sam Paul Jack Omar",
    "{woman}": "Ann Mia Eva Lily Zoe Nina Sara Ruth",
    "{things}": "apples pears plums lemons eggs cookies candies marbles stamps shells "
    "stones coins cards books pencils stickers beads buttons balloons flowers",
    "{boxes}": "boxes bags baskets packs jars crates",
    "{friends}": "friends children classmates neighbors cousins",
    "{bus}": "bus train boat ferry",
    "{museum}": "museum zoo park theater farm",
    "{people}": "people children visitors students guests",
    "{shop}": "bakery factory farm shop kitchen",
    "{goods}": "cakes rolls pies candles toys bottles lamps",
    "{drives}": "drives rides travels runs",
    "{bike}": "bike phone guitar tent camera",
    "{monday}": "Monday Tuesday Wednesday Thursday",
    "{sunday}": "Friday Saturday Sunday",
}
SLOTS = {slot: tuple(words.split()) for slot, words in _SLOT_WORDS.items()}
# What depends on whether the hero is a man or a woman. {B} is of the other sex: no pronoun is ever ambiguous.
HERO = {"{A}": ("{man}", "{woman}"), "{B}": ("{woman}", "{man}")}
PRONOUNS = {"{he}": ("he", "she"), "{him}": ("him", "her"), "{his}": ("his", "her")}


def _clauses(theme: str, *lines: tuple[int, str, str]) -> list[Clause]:
    return [Clause(theme, *line) for line in lines]


CLAUSES: list[Clause] = [
    *_clauses(
        "things",
        (OPENING, "{A} has {x} {things} .", ""),
        (OPENING, "{A} has {x} {boxes} with {y} {things} in each .", "x*y"),
        (OPENING, "{A} buys {x} {boxes} of {y} {things} each .", "x*y"),
        (OPENING, "{A} finds {x} {things} on {monday} and {y} on {sunday} .", "x+y"),
        (OPENING, "{A} collects {x} {things} every day for {y} days .", "x*y"),
        (OPENING, "{A} collects {x} {things} a day for a week .", "x*7"),
        (OPENING, "{A} buys {x} dozen {things} .", "x*12"),
        (OPENING, "{B} has {y} {things} and {A} has {x} times as many .", "x*y"),
        (OPENING, "{B} has {x} {things} . {A} has {y} more than {B} .", "x+y"),
        (OPENING, "{B} has {x} {things} . {A} has {y} fewer than {B} .", "x-y"),
        (EVENT, "{he} gives {x} {things} to {B} .", "v-x"),
        (EVENT, "{he} loses {x} of them .", "v-x"),
        (EVENT, "after that {he} sells {x} {things} .", "v-x"),
        (EVENT, "{B} gives {him} {x} more .", "v+x"),
        (EVENT, "then {he} finds {x} more {things} .", "v+x"),
        (EVENT, "{he} buys {x} more {boxes} with {y} {things} in each .", "x*y v+p"),
        (EVENT, "{he} gets {x} more every day for {y} days .", "x*y v+p"),
        (EVENT, "{x} {friends} bring {him} {y} {things} each .", "x*y v+p"),
        (EVENT, "{he} gives {x} {things} to each of {y} {friends} .", "x*y v-p"),
        (EVENT, "{he} fills {x} {boxes} with {y} {things} each and sells them .", "x*y v-p"),
        (EVENT, "{he} gives away {x} a day for a week .", "x*7 v-p"),
        (EVENT, "{he} sells half of {his} {things} .", "v/2"),
        (EVENT, "a month later {he} has {x} times as many .", "v*x"),
        (ASIDE, "{B} is {x} years old .", ""),
        (ASIDE, "{B} has {x} {others} .", ""),
        (ASIDE, "each of them costs {x} cents .", ""),
        (QUESTION, "how many {things} does {A} have now ?", ""),
        (QUESTION, "how many {things} does {he} have at the end ?", ""),
        (QUESTION, "{he} shares them equally among {x} {friends} . how many {things} does each get ?", "v/x"),
        (QUESTION, "{he} puts them into {boxes} of {x} . how many {boxes} does {he} need ?", "v/x"),
        (QUESTION, "now {B} has {x} times as many as {A} . how many {things} do they have together ?", "v*x v+p"),
        (QUESTION, "now {B} has {x} more than {A} . how many {things} do they have together ?", "v+x v+p"),
        (QUESTION, "now {B} has half as many as {A} . how many {things} do they have together ?", "v/2 v+p"),
        (QUESTION, "{he} wants {x} {things} . how many more does {he} need ?", "x-v"),
        (QUESTION, "{he} sells all of them for {x} dollars each . how many dollars does {he} get ?", "v*x"),
    ),
    *_clauses(
        "money",
        (OPENING, "{A} has {x} dollars .", ""),
        (OPENING, "{A} works {x} hours for {y} dollars an hour .", "x*y"),
        (OPENING, "{A} sells {x} {things} for {y} dollars each .", "x*y"),
        (OPENING, "{A} earns {x} dollars a day for a week .", "x*7"),
        (OPENING, "{A} earns {x} dollars on {monday} and {y} dollars on {sunday} .", "x+y"),
        (OPENING, "{A} has {x} dollars and spends {y} dollars on {monday} .", "x-y"),
        (EVENT, "{he} spends {x} dollars on {others} .", "v-x"),
        (EVENT, "a ticket costs {him} {x} dollars .", "v-x"),
        (EVENT, "{he} buys {x} {boxes} of {others} for {y} dollars each .", "x*y v-p"),
        (EVENT, "{he} gives {x} dollars to each of {y} {friends} .", "x*y v-p"),
        (EVENT, "{he} spends {x} dollars a day on food for a week .", "x*7 v-p"),
        (EVENT, "{B} gives {him} {x} dollars .", "v+x"),
        (EVENT, "then {he} works {x} hours for {y} dollars an hour .", "x*y v+p"),
        (EVENT, "{he} sells {x} {goods} for {y} dollars each .", "x*y v+p"),
        (EVENT, "half of {his} money goes to {B} .", "v/2"),
        (EVENT, "a month later {he} has {x} times as much .", "v*x"),
        (ASIDE, "{B} is {x} years old .", ""),
        (ASIDE, "{B} has {x} {goods} .", ""),
        (ASIDE, "the way to the shop takes {x} minutes .", ""),
        (QUESTION, "how many dollars does {A} have now ?", ""),
        (QUESTION, "how many dollars does {he} have at the end ?", ""),
        (QUESTION, "{he} wants a {bike} for {x} dollars . how many more dollars does {he} need ?", "x-v"),
        (QUESTION, "now a book costs {x} dollars . how many books can {he} buy ?", "v/x"),
        (QUESTION, "{he} and {B} share the money equally . how many dollars does each get ?", "v/2"),
        (QUESTION, "now {B} has {x} times as much as {A} . how many dollars do they have together ?", "v*x v+p"),
        (QUESTION, "now {B} has {x} dollars more than {A} . how many dollars do they have together ?", "v+x v+p"),
    ),
    *_clauses(
        "people",
        (OPENING, "there are {x} {people} on a {bus} .", ""),
        (OPENING, "{x} {people} sit and {y} stand on a {bus} .", "x+y"),
        (OPENING, "a {bus} has {x} rows with {y} {people} in each .", "x*y"),
        (OPENING, "{x} groups of {y} {people} come to a {museum} .", "x*y"),
        (OPENING, "{x} dozen {people} come to a {museum} .", "x*12"),
        (OPENING, "{x} {people} wait at a {museum} and {y} of them go away .", "x-y"),
        (EVENT, "then {x} {people} leave .", "v-x"),
        (EVENT, "{x} of them go home .", "v-x"),
        (EVENT, "then {x} more come .", "v+x"),
        (EVENT, "{x} cars bring {y} more {people} each .", "x*y v+p"),
        (EVENT, "{x} groups of {y} {people} join them .", "x*y v+p"),
        (EVENT, "{x} groups of {y} leave .", "x*y v-p"),
        (EVENT, "after lunch half of them go home .", "v/2"),
        (EVENT, "an hour later there are {x} times as many .", "v*x"),
        (ASIDE, "the way takes {x} minutes .", ""),
        (ASIDE, "{A} sees {x} birds .", ""),
        (ASIDE, "the oldest is {x} years old .", ""),
        (QUESTION, "how many {people} are there now ?", ""),
        (QUESTION, "how many {people} are there at the end ?", ""),
        (QUESTION, "{x} tables have the same number of {people} each . how many are at each table ?", "v/x"),
        (QUESTION, "all go home in cars with {x} {people} each . how many cars do they need ?", "v/x"),
        (QUESTION, "there are {x} chairs . how many chairs are free ?", "x-v"),
        (QUESTION, "each pays {x} dollars . how many dollars do they pay together ?", "v*x"),
    ),
    *_clauses(
        "goods",
        (OPENING, "a {shop} has {x} {goods} .", ""),
        (OPENING, "a {shop} makes {x} {goods} an hour for {y} hours .", "x*y"),
        (OPENING, "a {shop} makes {x} {goods} a day for a week .", "x*7"),
        (OPENING, "a {shop} has {x} {boxes} with {y} {goods} in each .", "x*y"),
        (OPENING, "a {shop} makes {x} {goods} on {monday} and {y} on {sunday} .", "x+y"),
        (OPENING, "a {shop} makes {x} {goods} and {y} of them break .", "x-y"),
        (EVENT, "it sells {x} {goods} .", "v-x"),
        (EVENT, "{x} of them are bad .", "v-x"),
        (EVENT, "it makes {x} more .", "v+x"),
        (EVENT, "a truck brings {x} {boxes} with {y} {goods} in each .", "x*y v+p"),
        (EVENT, "then it makes {y} {goods} an hour for {x} hours .", "x*y v+p"),
        (EVENT, "it sells {x} {boxes} of {y} {goods} each .", "x*y v-p"),
        (EVENT, "{x} {people} buy {y} {goods} each .", "x*y v-p"),
        (EVENT, "it sells {x} {goods} a day for a week .", "x*7 v-p"),
        (EVENT, "half of them are sold .", "v/2"),
        (ASIDE, "the {shop} is {x} years old .", ""),
        (ASIDE, "{A} works there {x} hours a week .", ""),
        (ASIDE, "it has {x} windows .", ""),
        (QUESTION, "how many good {goods} are left ?", ""),
        (QUESTION, "how many {goods} does the {shop} have now ?", ""),
        (QUESTION, "the rest goes into {boxes} of {x} . how many {boxes} are there ?", "v/x"),
        (QUESTION, "{x} {people} share the rest equally . how many {goods} does each get ?", "v/x"),
        (QUESTION, "it sells the rest for {x} dollars each . how many dollars does it get ?", "v*x"),
        (QUESTION, "it needs {x} {goods} . how many more does it need ?", "x-v"),
    ),
    *_clauses(
        "miles",
        (OPENING, "{A} {drives} {x} miles away from home .", ""),
        (OPENING, "{A} leaves home and {drives} {y} miles an hour for {x} hours .", "x*y"),
        (OPENING, "{A} leaves home and {drives} {x} miles a day for a week .", "x*7"),
        (OPENING, "{A} leaves home and {drives} {x} miles on {monday} and {y} on {sunday} .", "x+y"),
        (EVENT, "then {he} {drives} {x} more miles .", "v+x"),
        (EVENT, "then {he} {drives} {y} miles an hour for {x} more hours .", "x*y v+p"),
        (EVENT, "after lunch {he} {drives} {x} miles back .", "v-x"),
        (EVENT, "{he} {drives} {x} miles back every day for {y} days .", "x*y v-p"),
        (EVENT, "then {he} {drives} half of the way back .", "v/2"),
        (ASIDE, "{he} is {x} years old .", ""),
        (ASIDE, "{he} stops for {x} minutes .", ""),
        (ASIDE, "{he} sees {x} birds .", ""),
        (QUESTION, "how many miles away from home is {he} now ?", ""),
        (QUESTION, "how many hours does the way home take at {x} miles an hour ?", "v/x"),
        (QUESTION, "{he} wants to be {x} miles away . how many more miles are left ?", "x-v"),
        (QUESTION, "each mile back costs {x} dollars . how many dollars does the way home cost ?", "v*x"),
    ),
]
THEMES = tuple(dict.fromkeys(clause.theme for clause in CLAUSES))
