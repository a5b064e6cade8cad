"""Prompts of the generate suites: some to be continued freely, some under a grammar.

A grammar's `obeys` says in other words, a regular expression of RE2 or a JSON Schema, what the text must be.
"""

import json

FREE_TOKENS = 32
BOUND_TOKENS = 96

# (kind, text); a chat is put into the model's template.
FREE = (
    ("plain", "Once upon a time"),
    ("plain", "The capital of France is"),
    ("plain", "Water boils at"),
    ("plain", "def fibonacci(n):\n"),
    ("plain", "SELECT name FROM users WHERE"),
    ("plain", "1, 2, 3, 4,"),
    ("plain", "Dear Sir or Madam,\n\n"),
    ("plain", "A"),
    ("plain", "Il était une fois"),
    ("plain", "Es war einmal"),
    ("plain", "<html>\n<head>\n"),
    ("plain", "The old captain walked slowly along the harbor and counted the boats. One was missing. " * 6),
    ("chat", "What is the capital of Italy?"),
    ("chat", "Say hi."),
    ("chat", "Is ice cold? Answer yes or no."),
    ("chat", "Write one sentence about the sea."),
    ("chat", "Translate to French: good morning"),
    ("chat", "What is 2 + 2?"),
    ("chat", "Name three colours."),
    ("chat", "Why is the sky blue?"),
    ("chat", "Write a haiku about rain."),
    ("chat", "How do I boil an egg?"),
    ("chat", "What does the word 'bright' mean?"),
    ("chat", "Reply with the single word ok."),
)

ITEM = '{"type": "object", "properties": {"name": {"type": "string", "maxLength": 12}, "count": {"type": "integer"}}, "required": ["name", "count"], "additionalProperties": false}'
WEEKDAYS = '{"enum": ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday"]}'
LIST = '{"type": "array", "items": {"type": "boolean"}, "minItems": 2, "maxItems": 4}'

# (text, grammar, obeys)
BOUND = (
    ("Is the sea salty?", 'root ::= "yes" | "no"', {"regexp": "yes|no"}),
    ("Give me a number of three digits.", "root ::= [1-9] [0-9]{2}", {"regexp": "[1-9][0-9]{2}"}),
    (
        "When does the train leave?",
        'root ::= hour ":" minute\nhour ::= "0" [0-9] | "1" [0-9] | "2" [0-3]\nminute ::= [0-5] [0-9]',
        {"regexp": "([01][0-9]|2[0-3]):[0-5][0-9]"},
    ),
    ("Name a person.", 'root ::= "{\\"name\\":\\"" [a-zA-Z]{1,10} "\\"}"', {"regexp": '\\{"name":"[a-zA-Z]{1,10}"\\}'}),
    ("Name a colour as a hexadecimal number.", 'root ::= "#" [0-9a-f]{6}', {"regexp": "#[0-9a-f]{6}"}),
    ("Write a word in Japanese.", 'root ::= [ぁ-ゟ]{2,4} "。"', {"regexp": "[ぁ-ゟ]{2,4}。"}),
    (
        "Add two numbers.",
        'root ::= term (" + " term){1,2} " = " term\nterm ::= [1-9] [0-9]?',
        {"regexp": "[1-9][0-9]?( \\+ [1-9][0-9]?){1,2} = [1-9][0-9]?"},
    ),
    ("Where does he live?", 'root ::= "in " [A-Z] [a-z]{2,11} "."', {"regexp": "in [A-Z][a-z]{2,11}\\."}),
    ("Describe an item as JSON.", ITEM, {"schema": ITEM}),
    ("On which day is the market?", WEEKDAYS, {"schema": WEEKDAYS}),
    ("Which of the doors are open? Answer as JSON.", LIST, {"schema": LIST}),
)


def prompts(encode):
    """Returns a list of {"id", "text", "ids", "max_tokens", "grammar"?, "obeys"?, "tags"}.

    `encode` turns a text, in which the template's marks stand for their tokens, into ids.
    """
    found = []
    for kind, text in FREE:
        found.append(
            {"text": _chat(text) if kind == "chat" else text, "max_tokens": FREE_TOKENS, "tags": [f"kind:{kind}"]}
        )
    for text, grammar, obeys in BOUND:
        found.append(
            {
                "text": _chat(text),
                "max_tokens": BOUND_TOKENS,
                "grammar": grammar,
                "obeys": _obeys(obeys),
                "tags": ["kind:grammar"],
            }
        )
    return [{"id": f"p{n:02d}", "ids": encode(p["text"])} | p for n, p in enumerate(found)]


def _chat(text):
    return f"<|im_start|>user\n{text}<|im_end|>\n<|im_start|>assistant\n"


def _obeys(obeys):
    return {"schema": json.loads(obeys["schema"])} if "schema" in obeys else obeys
