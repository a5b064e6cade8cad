"""Emoji, numbers, punctuation, whitespace, letter case, repeats and Unicode corner cases.

Characters that do not show or that editors change are written as escapes.
"""

EMOJI = {
    "plain": "🍎🍌🍇🍓",
    "sentence": "We won the match! 🎉🏆 See you at eight 🙂",
    "zwj-family": "👨\u200d👩\u200d👧\u200d👦 👩\u200d🚀 🏳\ufe0f\u200d🌈",
    "skin-tone": "👍👍🏻👍🏽👍🏿",
    "flags": "🇫🇷🇯🇵🇧🇷🇰🇪",
    "keycap": "1\ufe0f\u20e3 2\ufe0f\u20e3 #\ufe0f\u20e3",
    "tag-sequence": "🏴\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f",
    "inside-word": "sun☀shine and snow❄flake",
    "kaomoji": "¯\\_(ツ)_/¯ and (╯°□°)╯︵ ┻━┻",
}

NUMBERS = {
    "integer": "1234567890",
    "grouped": "1,234,567.89 and 1.234.567,89 and 12 34 567",
    "scientific": "6.02214076e23, -1.6e-19, 0x7fff_ffff, 0b1011, 1/3",
    "pi": "3.14159265358979323846264338327950288419716939937510",
    "dates": "2024-02-29, 29/02/2024, Feb. 29th 2024, 20240229T235959Z",
    "money": "$12.50, €9,99, £1m, ¥1000, ₹250, ₿0.5",
    "phone": "+44 20 7946 0958 ext. 12",
    "other-digits": "٠١٢٣٤٥٦٧٨٩ ०१२३४५६७८९ ０１２３４ ⅦⅧ ①② ½ ²³",
}

PUNCTUATION = {
    "full-stop": ".",
    "dots": "...",
    "ascii": "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~",
    "quotes": "“Curly” ‘single’ «guillemets» „low” ‹x›",
    "dashes": "hyphen-minus, en – dash, em — dash, minus − sign, ellipsis…",
    "brackets": "((([[[{{{<<<>>>}}}]]])))",
    "interrobang": "What?! Really‽ ¡Sí! ¿No?",
    "symbols": "© ® ™ § ¶ † ‡ • ° µ Ω ∑ √ ∞ ≠ ≤ → ⇒ ♠ ♪",
}

WHITESPACE = {
    "one-space": " ",
    "only": " \t\n\r\n  \t ",
    "leading-trailing": "   padded on both sides   ",
    "inner-runs": "many     spaces\t\ttabs\n\n\nand\r\nline breaks",
    "no-break": "no\u00a0break\u202fnarrow\u2003em\u3000ideographic",
    "line-separators": "first\u2028second\u2029third\u0085fourth\u000bfifth\u000csixth",
    "zero-width": "zero\u200bwidth\u200cspaces\u2060here\ufeff",
}

CASE = {
    "hello-world": "Hello World",
    "hello-world-lower": "hello world",
    "hello-world-upper": "HELLO WORLD",
    "hello-world-spaced": "  Hello\tWorld \n",
    "shouting": "THE MEETING HAS BEEN MOVED TO THURSDAY AFTERNOON.",
    "calm": "the meeting has been moved to thursday afternoon.",
    "alternating": "tHe MeEtInG hAs BeEn MoVeD",
    "camel": "getHTTPResponseCodeFromXMLDocument",
    "snake": "max_position_embeddings_per_layer",
    "dotted-i": "Iıİi ISTANBUL İSTANBUL ıstanbul istanbul",
    "sharp-s": "Straße STRASSE STRAẞE ﬁre ﬂag ǅ",
}

REPEATS = {
    "letter": "a",
    "letters": "a a a a a a a a a a a a a a a a",
    "run": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "word": " ".join(["buffalo"] * 40),
    "sentence": "It rains. " * 20,
    "alternating": "yes no " * 30,
    "newline": "\n".join(["line"] * 25),
}

UNICODE = {
    "nfc": "caf\u00e9 na\u00efve \u00c5ngstr\u00f6m",
    "nfd": "cafe\u0301 nai\u0308ve A\u030angstro\u0308m",
    "stacked-marks": "Z\u0351\u036b\u0343a\u0362\u0321l\u0334\u0340g\u0322\u0357o\u0335\u031b",
    "fullwidth": "Ｆｕｌｌ ｗｉｄｔｈ ＡＢＣ　１２３",
    "mathematical": "𝒯𝒽ℯ 𝓆𝓊𝒾𝒸𝓀 𝐛𝐫𝐨𝐰𝐧 𝔣𝔬𝔵",
    "bidi": "left \u202eright-to-left override\u202c left \u2067isolate\u2069",
    "soft-hyphen": "in\u00adter\u00adna\u00adtion\u00adal",
    "control": "bell\u0007back\u0008null\u0000escape\u001b[31mred\u001b[0m",
    "private-use": "\ue000\uf8ff\U000f0000",
    "replacement": "broken \ufffd\ufffd bytes",
    "noncharacter": "\ufffe\uffff",
    "last-code-point": "\U0010fffd",
    "old-scripts": "𐎠𐎡 𓀀𓁐 ᚠᚢᚦ 𐌰𐌱",
    "hangul-jamo": "\u1112\u1161\u11ab\u1100\u1173\u11af",
}

UNKNOWN = {
    "word-100": "x" * 100,
    "word-101": "x" * 101,
    "word-1000": "pneumono" * 125,
    "special-tokens": "before [SEP] between [CLS] [MASK] [PAD] [UNK] after",
    "special-lower": "before [sep] between [cls] after",
    "word-pieces": "##ing ##ed ##s un##happy",
    "template": "<s> </s> <|endoftext|> <|im_start|> {{ prompt }} %s %d ${HOME}",
}

GROUPS = {
    "emoji": EMOJI,
    "numbers": NUMBERS,
    "punctuation": PUNCTUATION,
    "whitespace": WHITESPACE,
    "case": CASE,
    "repeats": REPEATS,
    "unicode": UNICODE,
    "unknown": UNKNOWN,
}


def rows():
    """Yields (text, tags), tagged GROUP:NAME."""
    for group, texts in GROUPS.items():
        for name, text in texts.items():
            yield text, [f"{group}:{name}"]
