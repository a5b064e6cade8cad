"""Sentences in many languages and scripts.

The models are English ones: what counts is not that they understand a script but that its ids, unknown tokens and
long runs of single characters go through an engine unharmed. Every language says the same two things.
"""

SENTENCES = {
    ("latin", "french"): ("L’eau bout à cent degrés.", "La bibliothèque ouvre à neuf heures du matin."),
    ("latin", "german"): (
        "Wasser siedet bei hundert Grad.",
        "Die Bücherei öffnet um neun Uhr früh, außer an Feiertagen.",
    ),
    ("latin", "spanish"): ("El agua hierve a cien grados.", "¿A qué hora abre la biblioteca mañana?"),
    ("latin", "portuguese"): ("A água ferve a cem graus.", "A biblioteca não abre antes das nove da manhã."),
    ("latin", "italian"): ("L'acqua bolle a cento gradi.", "La biblioteca apre alle nove perché è lunedì."),
    ("latin", "polish"): (
        "Woda wrze w stu stopniach.",
        "Biblioteka jest otwarta od dziewiątej; wstęp wolny, łąka obok też.",
    ),
    ("latin", "czech"): ("Voda vře při sto stupních.", "Knihovna se otevírá v devět hodin, příliš žluťoučký kůň čeká."),
    ("latin", "hungarian"): ("A víz száz fokon forr.", "A könyvtár reggel kilenckor nyit, hűvös őszi időben is."),
    ("latin", "turkish"): ("Su yüz derecede kaynar.", "Kütüphane sabah dokuzda açılır; İstanbul’da ışıklar sönük."),
    ("latin", "vietnamese"): ("Nước sôi ở một trăm độ.", "Thư viện mở cửa lúc chín giờ sáng."),
    ("latin", "icelandic"): ("Vatn sýður við hundrað gráður.", "Bókasafnið opnar klukkan níu, það er þægilegt."),
    ("latin", "finnish"): (
        "Vesi kiehuu sadassa asteessa.",
        "Kirjasto avataan aamulla yhdeksältä, myös lentokonesuihkuturbiinimoottoriapumekaanikolle.",
    ),
    ("latin", "welsh"): ("Mae dŵr yn berwi ar gant gradd.", "Mae'r llyfrgell yn agor am naw o'r gloch y bore."),
    ("latin", "swahili"): ("Maji huchemka kwa nyuzi mia moja.", "Maktaba hufunguliwa saa tatu asubuhi."),
    ("latin", "yoruba"): ("Omi ń hó ní ọgọ́rùn-ún.", "Ilé ìkàwé ń ṣí ní agogo mẹ́sàn-án àárọ̀."),
    ("greek", "greek"): ("Το νερό βράζει στους εκατό βαθμούς.", "Η βιβλιοθήκη ανοίγει στις εννέα το πρωί."),
    ("cyrillic", "russian"): ("Вода кипит при ста градусах.", "Библиотека открывается в девять часов утра."),
    ("cyrillic", "ukrainian"): (
        "Вода кипить за ста градусів.",
        "Бібліотека відчиняється о дев’ятій ранку, їжте вдома.",
    ),
    ("cyrillic", "serbian"): ("Вода кључа на сто степени.", "Библиотека се отвара у девет ујутру."),
    ("arabic", "arabic"): ("يغلي الماء عند مئة درجة.", "تفتح المكتبة أبوابها في الساعة التاسعة صباحًا."),
    ("arabic", "persian"): ("آب در صد درجه می‌جوشد.", "کتابخانه ساعت نه صبح باز می‌شود."),
    ("arabic", "urdu"): ("پانی سو ڈگری پر ابلتا ہے۔", "کتب خانہ صبح نو بجے کھلتا ہے۔"),
    ("hebrew", "hebrew"): ("המים רותחים במאה מעלות.", "הספרייה נפתחת בשעה תשע בבוקר."),
    ("devanagari", "hindi"): ("पानी सौ डिग्री पर उबलता है।", "पुस्तकालय सुबह नौ बजे खुलता है।"),
    ("devanagari", "marathi"): ("पाणी शंभर अंशांवर उकळते.", "ग्रंथालय सकाळी नऊ वाजता उघडते."),
    ("bengali", "bengali"): ("জল একশো ডিগ্রিতে ফোটে।", "গ্রন্থাগার সকাল নয়টায় খোলে।"),
    ("gurmukhi", "punjabi"): ("ਪਾਣੀ ਸੌ ਡਿਗਰੀ ਤੇ ਉਬਲਦਾ ਹੈ।", "ਲਾਇਬ੍ਰੇਰੀ ਸਵੇਰੇ ਨੌਂ ਵਜੇ ਖੁੱਲ੍ਹਦੀ ਹੈ।"),
    ("gujarati", "gujarati"): ("પાણી સો ડિગ્રીએ ઉકળે છે.", "પુસ્તકાલય સવારે નવ વાગ્યે ખૂલે છે."),
    ("tamil", "tamil"): ("தண்ணீர் நூறு டிகிரியில் கொதிக்கும்.", "நூலகம் காலை ஒன்பது மணிக்குத் திறக்கும்."),
    ("telugu", "telugu"): ("నీరు వంద డిగ్రీల వద్ద మరుగుతుంది.", "గ్రంథాలయం ఉదయం తొమ్మిది గంటలకు తెరుచుకుంటుంది."),
    ("thai", "thai"): ("น้ำเดือดที่หนึ่งร้อยองศา", "ห้องสมุดเปิดเวลาเก้าโมงเช้า"),
    ("khmer", "khmer"): ("ទឹកពុះនៅមួយរយអង្សា។", "បណ្ណាល័យបើកនៅម៉ោងប្រាំបួនព្រឹក។"),
    ("han", "chinese-simplified"): ("水在一百度沸腾。", "图书馆早上九点开门，星期一除外。"),
    ("han", "chinese-traditional"): ("水在一百度沸騰。", "圖書館早上九點開門，星期一除外。"),
    ("kana", "japanese"): ("水は百度で沸騰します。", "図書館は朝九時に開き、カフェも同じビルにあります。"),
    ("hangul", "korean"): ("물은 백 도에서 끓는다.", "도서관은 아침 아홉 시에 문을 연다."),
    ("georgian", "georgian"): ("წყალი ას გრადუსზე დუღს.", "ბიბლიოთეკა დილის ცხრა საათზე იხსნება."),
    ("armenian", "armenian"): ("Ջուրը եռում է հարյուր աստիճանում։", "Գրադարանը բացվում է առավոտյան ժամը իննին։"),
    ("ethiopic", "amharic"): ("ውሃ በመቶ ዲግሪ ይፈላል።", "ቤተ መጻሕፍቱ ጠዋት በሦስት ሰዓት ይከፈታል።"),
}


def rows():
    """Yields (text, tags): two sentences a language, tagged with its script and its name."""
    for (script, language), pair in SENTENCES.items():
        for text in pair:
            yield text, [f"script:{script}", f"language:{language}"]
    mixed = "Tea чай τσάι שאי شاي चाय ชา 茶 お茶 차 ✓"
    yield mixed, ["script:mixed"]
