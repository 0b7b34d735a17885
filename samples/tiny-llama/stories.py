"""Little stories from a grammar: the training text of the sample model.

A story is a list of sentences that share facts: who is in it, what was hidden where, how many
things were counted. Facts return sentences later, so that a model must look back to be right:
pronouns agree with names, a hidden thing is found where it was put, numbers add up, `a` or `an`
and `was` or `were` agree with their nouns.

`story(rng)` returns one story as text. All choices come from `rng`, a random.Random.
"""

import random

WOMEN = ("Anna Clara Dora Ella Freya Greta Hilda Ida Julia Karin Lena Mira Nora Olga Rosa"
         " Sophie Tilda Vera").split()
MEN = ("Adam Boris Carl David Emil Felix Georg Hugo Ivan Jonas Konrad Leo Martin Oscar Paul"
       " Robert Simon Viktor").split()
JOBS = ("baker gardener teacher fisherman doctor painter shepherd miller tailor sailor engineer"
        " astronomer blacksmith carpenter musician librarian").split()
ADJECTIVES = ("red blue green old empty silver wooden tiny heavy orange broken golden white ugly"
              " purple crooked shiny ancient leather unusual").split()
OBJECTS = ("key lamp book cup coin bell ring hat knife map letter umbrella apron clock boot shell"
           " mirror whistle blanket hammer candle bottle picture needle thimble violin").split()
CONTAINERS = ["under the bed", "behind the door", "in the cupboard", "in the basket",
              "on the shelf", "under the stairs", "inside the oven", "in the old chest",
              "beneath the bench", "on the windowsill", "between two barrels",
              "above the fireplace"]
PLACES = ("river market forest harbour mill garden church school bridge lake meadow well village"
          " library station mountain").split()
ANIMALS = "dog cat goat duck crow horse fox owl rabbit donkey squirrel pigeon".split()
FRUITS = "apple pear plum egg carrot onion fish mushroom chestnut pumpkin turnip walnut".split()
PLURALS = {"fish": "fish"}
TIMES = ["One morning", "One evening", "Early in the spring", "Late in the autumn",
         "On a cold day", "On a warm night", "Long ago", "Last winter", "Before breakfast",
         "Yesterday at noon"]
LATER = ["In the evening", "The next day", "A week later", "When the moon was up",
         "After the rain", "At last"]
WEATHER = {"rained": "wet", "snowed": "white", "stormed": "dark"}
NUMBERS = "no one two three four five six seven eight nine ten".split()
MOODS = {"happy": "laughed", "sad": "wept", "angry": "shouted", "tired": "yawned",
         "proud": "smiled", "frightened": "trembled", "curious": "wondered", "hungry": "grumbled"}

# A plot is a list of sentences, a sentence a list of wordings of equal chance; an empty wording
# leaves it out. {a} and {b} are people, {thing} what the story is about, {where} its hiding place.
HIDDEN = [
    ["{time}, {a} the {a_job} found {an_adj} {thing} by the {place}.",
     "{time}, {a} the {a_job} bought {an_adj} {thing} at the {place}.",
     "{time}, {b} the {b_job} gave {a} {an_adj} {thing}."],
    ["{a_He} hid it {where}.", "{a_He} took it home and put it {where}."],
    ["Then {a_he} went to the {place2}.", "Then {a} went to the {place2} with {a_his} {animal}.",
     "It {weather} all day, and the {place2} was {weather_adj}."],
    ["There {b} was looking for {b_his} {animal}.", "{b} saw {a_him} and said hello.", ""],
    ['"Where is the {thing}?" asked {b}.', '"Who has seen my {thing}?" asked {b}.'],
    ['"It is {where}," said {a}.', '"Look {where}," said {a}. "I put it there."'],
    ["{later}, {b} looked {where} and found the {adj} {thing}.",
     "{later}, {b} found the {adj} {thing} {where}, just as {a} had said."],
    ["{a} was {a_mood} and {a_mood_did}.", "{b} was {b_mood} and {b_mood_did}.", ""],
]
COUNTED = [
    ["{time}, {a} and {b} went to the {place}.",
     "{time}, {a} the {a_job} met {b} the {b_job} at the {place}."],
    ["{a} had {n_things} and {b} had {m_things}.",
     "{a} found {n_things} there, and {b} found {m_things}."],
    ["{b_He} put {b_his} {m_word} {where}.", "The {animal} of {b} watched.", ""],
    ["Together they had {sum_things}.", '"Together we have {sum_things}," said {a}.'],
    ["{later}, the {animal} ate one of them.",
     "{later}, {a} gave one of them to {a_his} {animal}."],
    ["Then there {left_were} {left_things}.", "So {left_things} {left_were} left."],
    ["{a} was {a_mood} and {a_mood_did}.", ""],
]
JOURNEY = [
    ["{time}, {a} the {a_job} walked from the {place} to the {place2}.",
     "{time}, {a} the {a_job} left the {place} and rode to the {place2}."],
    ["It {weather}, and the road was {weather_adj}.", "{a_His} {animal} came along.", ""],
    ["On the way {a_he} met {b}, {b_an_job}.", "At the bridge stood {b}, {b_an_job}."],
    ['"Where do you come from?" asked {b}.', "{b} asked {a_him} where {a_he} came from."],
    ['"From the {place}," said {a}.', '"I come from the {place}," {a_he} said.'],
    ['"And where are you going?" "To the {place2}."',
     "{b} had {an_adj} {thing} and gave it to {a_him}."],
    ["{later}, {a} came to the {place2} and thought of {b} the {b_job}.",
     "{later}, {a_he} reached the {place2} and told everyone about {b}, the {b_job}."],
    ["{a_He} was {a_mood} and {a_mood_did}.", ""],
]
PLOTS = [HIDDEN, COUNTED, JOURNEY]


def with_article(words: str) -> str:
    return ("an " if words[0] in "aeiou" else "a ") + words


def counted(number: int, noun: str) -> str:
    """"one egg", "two eggs"."""
    plural = noun if number == 1 else PLURALS.get(noun, noun + "s")
    return f"{NUMBERS[number]} {plural}"


def person(slot: str, name: str, rng: random.Random) -> dict[str, str]:
    woman = name in WOMEN
    mood, job = rng.choice(list(MOODS)), rng.choice(JOBS)
    he, him, his = ("she", "her", "her") if woman else ("he", "him", "his")
    return {slot: name, f"{slot}_job": job, f"{slot}_an_job": with_article(job),
            f"{slot}_he": he, f"{slot}_He": he.capitalize(), f"{slot}_him": him,
            f"{slot}_his": his, f"{slot}_His": his.capitalize(),
            f"{slot}_mood": mood, f"{slot}_mood_did": MOODS[mood]}


def draw_facts(rng: random.Random) -> dict[str, str]:
    a, b = rng.sample(WOMEN + MEN, 2)
    place, place2 = rng.sample(PLACES, 2)
    adjective, weather = rng.choice(ADJECTIVES), rng.choice(list(WEATHER))
    n, m, fruit = rng.randint(1, 5), rng.randint(1, 5), rng.choice(FRUITS)
    left = n + m - 1
    return {**person("a", a, rng), **person("b", b, rng),
            "time": rng.choice(TIMES), "later": rng.choice(LATER),
            "place": place, "place2": place2, "where": rng.choice(CONTAINERS),
            "adj": adjective, "an_adj": with_article(adjective), "thing": rng.choice(OBJECTS),
            "animal": rng.choice(ANIMALS), "weather": weather, "weather_adj": WEATHER[weather],
            "n_things": counted(n, fruit), "m_things": counted(m, fruit), "m_word": NUMBERS[m],
            "sum_things": counted(n + m, fruit), "left_things": counted(left, fruit),
            "left_were": "was" if left == 1 else "were"}


def story(rng: random.Random) -> str:
    facts = draw_facts(rng)
    sentences = [rng.choice(wordings).format_map(facts) for wordings in rng.choice(PLOTS)]
    return " ".join(sentence for sentence in sentences if sentence)


def distinct_stories(count: int, seed: int, exclude: frozenset[str] = frozenset()) -> list[str]:
    """`count` stories, no two the same and none of them in `exclude`."""
    rng = random.Random(seed)
    stories: dict[str, None] = {}
    while len(stories) < count:
        text = story(rng)
        if text not in exclude:
            stories[text] = None
    return list(stories)


if __name__ == "__main__":
    print("\n\n".join(distinct_stories(8, seed=0)))
