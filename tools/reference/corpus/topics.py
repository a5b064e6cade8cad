"""English passages in topical groups, with paraphrases and queries.

A rank gate needs neighbours that are near for a reason. Every topic holds six passages, two paraphrases (each of
the passage at the same position) and two queries that the passages answer.
"""

TOPICS = {
    "cooking": {
        "passages": [
            "Simmer the lentils gently for twenty minutes, then stir in the fried onions and a squeeze of lemon.",
            "A heavy iron pan holds its heat, so the steak browns instead of stewing in its own juice.",
            "Bread dough that has rested overnight in the fridge tastes deeper and is easier to shape.",
            "Whisk the egg yolks with sugar until pale before pouring in the warm milk, or the custard will curdle.",
            "Fresh basil turns black when it is cut with a blunt knife; tear the leaves by hand.",
            "Salt the water well before the pasta goes in, and keep a cup of it to loosen the sauce.",
        ],
        "paraphrases": [
            "Cook the lentils on a low flame for about twenty minutes and finish them with browned onions and lemon juice.",
            "Because cast iron stays hot, meat sears in it rather than boiling in the liquid it gives off.",
        ],
        "queries": ["how long should lentils cook", "why does custard curdle"],
    },
    "astronomy": {
        "passages": [
            "The rings of Saturn are mostly water ice, in pieces from the size of dust to the size of a house.",
            "A neutron star packs more mass than the Sun into a ball no wider than a city.",
            "Light from the nearest star beyond the Sun takes a little over four years to reach us.",
            "During a lunar eclipse the Moon turns copper red because sunlight is bent through our atmosphere.",
            "Comets grow their tails only when they come close enough to the Sun for the ice to boil away.",
            "The telescope mirror was polished so finely that its largest error is a fraction of a wavelength.",
        ],
        "paraphrases": [
            "Saturn's rings consist mainly of frozen water, ranging from grains to boulders as big as a building.",
            "In a neutron star, more than a solar mass is squeezed into a sphere the width of a town.",
        ],
        "queries": ["what are the rings of Saturn made of", "why is the Moon red in an eclipse"],
    },
    "medicine": {
        "passages": [
            "The nurse checked the patient's blood pressure twice because the first reading was far too high.",
            "Antibiotics do nothing against a virus, and taking them needlessly breeds resistant bacteria.",
            "A broken wrist usually heals in six weeks if the bones are set straight and kept still.",
            "Insulin must be stored cold, since heat slowly destroys the protein.",
            "The vaccine teaches the immune system to recognise the germ before it ever meets it.",
            "Chest pain that spreads to the left arm is a reason to call an ambulance at once.",
        ],
        "paraphrases": [
            "Since the first blood pressure value was alarmingly high, the nurse measured it again.",
            "Viral infections are not cured by antibiotics, whose overuse leads to bacteria that resist them.",
        ],
        "queries": ["do antibiotics cure a virus", "how does a vaccine work"],
    },
    "gardening": {
        "passages": [
            "Tomatoes planted deep, up to the first leaves, grow extra roots along the buried stem.",
            "Slugs come out at night after rain; a ring of sharp grit keeps some of them off the lettuce.",
            "Prune the apple tree in late winter while it sleeps, and cut back to an outward-facing bud.",
            "Compost needs both dry brown matter and wet green matter, turned now and then to let air in.",
            "Tulip bulbs go into the ground in autumn because they need a cold spell before they flower.",
            "Water the seedlings from below so that the stems stay dry and do not rot.",
        ],
        "paraphrases": [
            "If tomato plants are set deep in the soil, roots also form on the part of the stem that is covered.",
            "After a wet evening slugs appear, and a band of coarse grit around the salad holds many of them back.",
        ],
        "queries": ["when should I prune an apple tree", "protect lettuce from slugs"],
    },
    "software": {
        "passages": [
            "The service leaked memory because every request registered a callback that nobody removed.",
            "A deadlock appeared only under load, when two workers took the same pair of locks in opposite order.",
            "Pinning each dependency by its digest means a build today and a build next year use the same bytes.",
            "The parser read the length field before checking it and allocated four gigabytes for an empty message.",
            "Unit tests ran in a second, but the integration suite waited on a database for ten minutes.",
            "Rolling back the release took longer than the outage, since the schema had already been migrated.",
        ],
        "paraphrases": [
            "Each request added a callback that was never taken away again, so the process kept growing in memory.",
            "Two threads acquired the same two locks in different orders and froze, but only when traffic was heavy.",
        ],
        "queries": ["what causes a deadlock between two locks", "why pin dependencies by hash"],
    },
    "finance": {
        "passages": [
            "When the central bank raises its rate, loans cost more and people put off buying houses.",
            "The company paid its shareholders a dividend of forty cents for every share they held in March.",
            "A bond loses value on the market when newer bonds are issued at a higher interest rate.",
            "Keeping three months of wages in a savings account softens the blow of losing a job.",
            "The auditors found invoices that had been entered twice, which made the profit look larger.",
            "Exchange rates moved so fast that the importer lost money before the goods had left the port.",
        ],
        "paraphrases": [
            "Higher interest rates set by the central bank make borrowing dearer, so fewer homes are bought.",
            "Owners of the company's stock in March received forty cents a share.",
        ],
        "queries": ["what happens to bonds when interest rates rise", "how large should emergency savings be"],
    },
    "cycling": {
        "passages": [
            "She changed to a lower gear before the hill so that her legs could keep turning quickly.",
            "A worn chain stretches and grinds the teeth of the sprockets until the gears begin to slip.",
            "The peloton let the small group escape, knowing that the wind would tire them on the plain.",
            "Tyres at a lower pressure roll more smoothly over cobbles and grip better in the wet.",
            "He punctured twice in one stage and finished eleven minutes behind the leader.",
            "Brake before the bend, not in it, and look at the road where you want to go.",
        ],
        "paraphrases": [
            "Ahead of the climb she shifted down, which allowed her to go on pedalling fast.",
            "Once the chain has lengthened with wear it damages the cogs, and shifting becomes unreliable.",
        ],
        "queries": ["why do bicycle gears slip", "what tyre pressure for cobbles"],
    },
    "music": {
        "passages": [
            "The violinist retuned one string during the applause and began the slow movement without a word.",
            "A minor chord differs from a major one by a single note, lowered by half a step.",
            "Old piano strings lose their brightness long before they break.",
            "The choir sang from the gallery, so the sound seemed to fall from the ceiling.",
            "Drummers who practise with a metronome learn to hear where they rush.",
            "The composer wrote the second theme for horns because the hall swallowed the flutes.",
        ],
        "paraphrases": [
            "While the audience clapped, the violin player adjusted a string and then silently started the adagio.",
            "Lower one note of a major chord by a semitone and it becomes minor.",
        ],
        "queries": ["difference between major and minor chord", "how to stop rushing on drums"],
    },
    "law": {
        "passages": [
            "The tenant may leave after giving two months' notice in writing, unless the lease says otherwise.",
            "A witness who cannot remember should say so instead of guessing in front of the judge.",
            "The court ruled that the contract was void because one of the parties was a minor.",
            "Copyright arises when a work is written down; no registration is needed in most countries.",
            "The appeal failed, since the lawyers had missed the deadline by a day.",
            "Evidence found without a warrant was kept out of the trial.",
        ],
        "paraphrases": [
            "Unless the rental agreement differs, the renter can move out with written notice of two months.",
            "Rather than guess, a witness whose memory fails ought to tell the judge that it does.",
        ],
        "queries": ["how much notice must a tenant give", "is a contract with a minor valid"],
    },
    "weather": {
        "passages": [
            "Warm air rising over the lake built towers of cloud that broke into hail by evening.",
            "Fog lay in the valley all morning while the peaks stood in full sun.",
            "The barometer fell steadily through the night, and by dawn the gale had reached the coast.",
            "Snow that falls on frozen ground stays, but on wet soil it is gone within the hour.",
            "After nine weeks without rain the reservoir stood at a third of its usual level.",
            "A rainbow is always seen opposite the sun, and a low sun makes it taller.",
        ],
        "paraphrases": [
            "By evening the clouds that heated air had piled up above the lake were dropping hailstones.",
            "All morning the valley was filled with mist, though the mountain tops were sunny.",
        ],
        "queries": ["what does a falling barometer mean", "where in the sky does a rainbow appear"],
    },
    "trains": {
        "passages": [
            "The night train stops at the border for forty minutes while the engines are exchanged.",
            "A frozen switch north of the station delayed every departure until noon.",
            "Seats by the window on the left have the better view of the gorge.",
            "Freight wagons with worn brake shoes make most of the noise that keeps the village awake.",
            "The conductor stamped the ticket without looking and told us to change at the next junction.",
            "High-speed lines need wide curves, so the tunnel runs straight through the mountain.",
        ],
        "paraphrases": [
            "At the frontier the sleeper waits for two thirds of an hour so that another locomotive can be coupled on.",
            "Because a set of points had iced up to the north, no train left on time before midday.",
        ],
        "queries": ["why were the trains delayed this morning", "which side has the best view on the train"],
    },
    "geology": {
        "passages": [
            "Granite cools so slowly underground that its crystals grow large enough to see.",
            "The river has cut its gorge a finger's width deeper every hundred years.",
            "Limestone dissolves in rain that has taken up acid from the soil, and caves are what is left.",
            "Two plates lock against each other for decades and then slip within seconds.",
            "Ash from the eruption lay so thick that roofs gave way under its weight.",
            "Fossil shells on the summit show that the rock was once the floor of a sea.",
        ],
        "paraphrases": [
            "Since granite solidifies slowly at depth, it forms crystals visible to the naked eye.",
            "Over each century the stream wears its canyon down by about the breadth of a finger.",
        ],
        "queries": ["how do limestone caves form", "what happens in an earthquake"],
    },
}


def rows():
    """Yields (text, tags); the tags of a retrieval row name its topic and its part in the retrieval set."""
    for topic, group in TOPICS.items():
        for n, text in enumerate(group["passages"]):
            yield text, [f"topic:{topic}", "role:passage", f"passage:{topic}-{n}"]
        for n, text in enumerate(group["paraphrases"]):
            yield text, [f"topic:{topic}", "role:paraphrase", f"paraphrase-of:{topic}-{n}"]
        for text in group["queries"]:
            yield text, [f"topic:{topic}", "role:query"]
        yield " ".join(group["passages"]), [f"topic:{topic}", "role:document"]
