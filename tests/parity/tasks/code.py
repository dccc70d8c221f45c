"""What the tasks of the parity tests bring along."""


def whole_questions(doc):
    return [f"{doc['question']} It is {choice}," for choice in doc["choices"]]


def first_words(resps, docs):
    return [resp[0].split(" ")[0] for resp in resps]


class Last:
    """A filter: what comes after the last marker."""

    def __init__(self, marker):
        self.marker = marker

    def apply(self, resps, docs):
        return [[one.split(self.marker)[-1] for one in resp] for resp in resps]


def short_ones(dataset):
    def doubled(doc):
        return {"asked_for": doc["question"].upper()}

    return dataset.filter(lambda doc: len(doc["question"]) < 60).map(doubled)


def asked(doc):
    return f"{doc['asked_for']} ->"


def wanted(doc):
    return doc["choices"][doc["gold"]]


def shots():
    return [
        {"question": f"WHAT COMES AFTER {n}?", "choices": [str(n + 1), "x"], "gold": 0}
        for n in range(4)
    ]


def judged(doc, results):
    text = results[0]
    found = {
        "length": len(text),
        "hit": float(wanted(doc).lower() in text.lower()),
        "sometimes": float("nan") if doc["gold"] == 0 else float(len(text) % 2),
        "pairs": (wanted(doc), text),
    }
    if doc["gold"] > 1:
        found["of_some"] = float(len(text))
    return found


def share(items):
    return sum(len(gold) < len(text) for gold, text in items) / len(items)


def several(references, predictions, depth):
    text = predictions[0].strip()
    return {f"begins@{n + 1}": float(text[: n + 1] == references[0][: n + 1]) for n in range(depth)}
