"""Greetings and sign-offs of mails, in the nine languages of the built-in model."""

import re

_LONGEST_SENT = 100  # characters of "Sent from my phone"
_MOST_OPENINGS = 3  # "Hello Anna! Good morning,"

_TITLES = (
    "all|everyone|everybody|there|team|both|again|folks|guys|sirs?|madam|or|and|to|"
    "und|alle|zusammen|allerseits|miteinander|an|et|à|tous|toutes|tout|le|monde|madame|monsieur|mesdames|messieurs|"
    "y|a|todos|todas|equipo|señor(?:es|a|as)?|amig[oa]s?|e|tutti|tutte|signor[aei]?|collegh[ie]|ragazzi|dott(?:or)?|"
    "pessoal|senhor(?:es|a|as)?|en|allemaal|iedereen|heer|mevrouw|meneer|collega's|de|van|der|von|и|всем|коллеги|друзья"
)
# Whom a mail may be to, in small letters.
_ROLES = (
    "colleagues?|friends?|customers?|clients?|neighbou?rs?|parents|members|doctor|professor|teacher|editors?|students?|"
    "docteure?|professeure?|maître|direct(?:eur|rice)|collègues?|confrères?|ami(?:es?|s)?|clientes?|voisins?|adhérents|"
    "doctor[ae]s?|profesor[ae]?s?|licenciad[oa]|director[ae]?s?|diario|compañer[oa]s|colegas?|clientes|vecin[oa]s|"
    "padres|"
    "familias?|dottor(?:e|essa|i)|professor(?:e|essa|i)|avvocat[oa]|ingegnere|diret(?:tore|trice)|maestr[oa]|"
    "amic[oaih]e?|"
    "client[ei]|genitori|soci|condomini|doutor[ae]?s?|professor[ae]?s|diretor[ae]?s?|alun[oa]s|vizinh[oa]s|pais|"
    "sóci[oa]s|"
    "dokter|meester|juf|klant(?:en)?|buren|ouders?|leden|vriend(?:en|in)?|opa|oma|mama|papa|mam|pap|"
    "господин|госпожа|господа|коллега|друг|подруга|доктор|профессор|клиенты?|пассажиры|родители|жильцы|жители|соседи|"
    "покупатели|читатели|ученики|мама|папа|бабушка|дедушка|maman|mamie|papy|abuel[oa]s?|mamá|papá|tí[oa]s?|nonn[oai]|"
    "avó|avô"
)
# Names and titles: words with a capital letter, or of this list; with a period, such as "Dr.".
_NAMES = rf"(?:\s(?:(?-i:[A-ZÀ-ÞЁА-Я])[\w'’.-]{{0,30}}|(?:{_TITLES}|{_ROLES})(?![\w]))){{0,5}}"
_SOMEBODY = _NAMES.replace("{0,5}", "{1,5}")
_SIGNER = f"(?:{_NAMES.replace('{0,5}', '{0,8}')},?){{0,2}}"
_HELLOS = (
    "hello|hi|hey|good (?:morning|afternoon|evening|day)|greetings|to whom it may concern|"
    "bonjour|bonsoir|salut|coucou|(?:mesdames,? (?:et )?)?messieurs|madame,? (?:ou )?monsieur|"
    "hallo|moin(?: moin)?|servus|grüß (?:gott|dich|euch)|grüezi|guten (?:tag|morgen|abend)|sehr geehrte[rs]?|"
    "hola|buen(?:os|as) (?:días|tardes|noches)|buen día|muy buenas|muy señor(?:es|a)? mí[oa]s?|(?:estimad|"
    "apreciad)[oa]s?|ciao|salve|buongiorno|buonasera|"
    "gentil(?:e|i|issim[oaie])|egregi[oa]?|spettabile|spett[.](?:le|li)|carissim[oaie]|olá|oi|bom dia|boa (?:tarde|"
    "noite)|prezad[oa]s?|(?:ex|il)m[oa]s?[.]|"
    "hoi|goede(?:morgen|middag|navond|ndag)|geachte|здравствуйте|здравствуй|привет|добрый (?:день|вечер)|доброе утро|"
    "доброго (?:дня|утра|вечера|времени суток)|"
    "уважаем(?:ый|ая|ые|ое)"
)
# Words that are greetings only before a name.
_DEARS = "dear|ch[eè]re?s?|liebe[rs]?|querid[oa]s?|car(?:[oa]s?|[ie])|дорог(?:ой|ая|ие)"
_ADDRESSED = "beste|lieve|dag|werte[rs]?|madame|monsieur|господин|госпожа|господа"  # and at the end of their line
# Dutch, but "Beste Qualität, kleiner Preis" is not a greeting.
_DUTCH = (
    r"(?:beste|lieve|dag|hoi|ha)" + _SOMEBODY + r"\s?[,:!]\s+(?=(?:[^\s.!?]+\s){0,6}"
    r"(?:de|het|een|ik|je|jij|jullie|u|we|wij|is|niet|mijn|onze|kun|kunt|kan|heb|hebt|hebben|hierbij|bedankt|wil|"
    r"graag|zou)\b)"
)
_JAPANESE_HELLOS = (
    "(?:いつも)?(?:大変)?お世話になって(?:い|お)?ります|お世話になり(?:ます|ました)|ご無沙汰して(?:い|お)?ります|"
    "お疲れ(?:様|さま)(?:です|でございます)|(?:はじ|初)めまして|"
    "こんにち[はわ]|こんばん[はわ]|おはようございます|拝啓|前略|"
    "(?:初|はじ)めて(?:ご連絡|メール)[^。\n]{0,9}ます|突然の(?:ご連絡|メール)[^。\n]{0,4}(?:失礼|申し訳)[^。\n]{0,12}"
)
_OPENING = re.compile(
    rf"\s*(?:(?:(?:{_HELLOS})(?:,{_SOMEBODY}(?=\s?[!.:])|{_NAMES})|(?:{_DEARS}){_SOMEBODY})"
    r"\s?(?:[,;:!.…]+(?=\s|$)|[ \t]*(?=\n)|[-–—](?=\s))"
    rf"|{_DUTCH}|(?:{_ADDRESSED}){_SOMEBODY}\s?[,:!.]?[ \t]*(?=\n)|(?:{_JAPANESE_HELLOS})(?:[。、！!]+|(?=\s|$))"
    r"|(?:\S{1,20}(?:様|さん|殿|御中|各位|先生)|各位)[、,]?[ \t]*(?=\n))\s*",
    re.I,
)

# They end a line, also without punctuation before them.
_WISHES = (
    "(?:with )?(?:kind(?:est)?|best|warm(?:est)?|many) (?:regards|wishes)|(?:avec )?(?:mes |nos )?"
    "(?:meilleures|sincères) salutations|salutations (?:distinguées|cordiales)|cordiales salutations|"
    "(?:mit )?(?:freundliche[nm]?|beste[nm]?|herzliche[nm]?|liebe[nm]?|viele[n]?|schöne[nm]?) (?:gr(?:ü|ue)(?:ß|ss)en?|"
    "gru(?:ß|ss))(?: aus(?: de[mnr])?(?: [a-zäöü]+en)?| und bis bald)?|(?:cordiali|distinti|migliori|tanti) saluti|"
    "(?:com os )?(?:melhores|cordiais) cumprimentos|"
    "(?:met )?(?:vriendelijke|hartelijke) groet(?:en)?|с (?:уважением|наилучшими пожеланиями)"
)
# They end a sentence's line.
_REGARDS = (
    "regards|(?:yours |very )?(?:sincerely|faithfully|truly|respectfully)(?: yours)?|all the best|best|cheers|"
    "take care|"
    "(?:many )?thanks(?: (?:so much|a lot|again|in advance|and (?:kind |best )?regards))?|"
    "thank you(?: (?:so much|very much|in advance))?|"
    "(?:i )?look(?:ing)? forward to (?:hearing from you|your (?:reply|answer|response))(?: soon)?|"
    "(?:bien |très )?(?:cordialement|amicalement)|(?:bien )?à (?:vous|toi)|sincèrement|respectueusement|"
    "(?:veuillez (?:agréer|recevoir|croire)|je vous prie (?:d['’]agréer|de recevoir))[^.!?\n]{0,120}|"
    "cordialement vôtre|amitiés|je reste à votre disposition|merci(?: beaucoup| d['’]avance| par avance)?|"
    "(?:je vous souhaite une )?(?:bonne|excellente) (?:fin de )?(?:journée|soirée)|bises|bisous|à bientôt|cdlt|cdt|"
    "(?:schöne[nr]? )?(?:grüße|grüsse|gru(?:ß|ss))|mfg|hochachtungsvoll|herzlichst|es grüßt (?:sie|dich|"
    "euch)(?: herzlich)?|danke(?: schön| sehr| im voraus)?|"
    "(?:vielen|besten|herzlichen) dank(?: im voraus)?|bis bald|schönen (?:tag|abend)(?: noch)?|schönes wochenende|"
    "(?:reciba )?(?:un )?(?:cordial|atento|afectuoso) saludo|(?:sin otro particular,? )?les? saludan? atentamente|"
    "un beso|besos|"
    "quedo a su disposición|(?:un )?saludos?(?: cordiales)?|atentamente|"
    "(?:muchas )?gracias(?: de antemano| por adelantado)?|un abrazo|abrazos|quedo a la espera(?: de su respuesta)?|"
    "un (?:caro )?saluto|baci|(?:resto|rimango) a (?:sua |vostra )?disposizione[^.!?\n]{0,60}|saluti|cordialmente|"
    "(?:mille )?grazie(?: mille| in anticipo)?|a presto|buona (?:giornata|serata)|un abbraccio|"
    "in attesa di un (?:suo |vostro )?(?:cortese )?riscontro|"
    "cumprimentos|atenciosamente|att|grat[oa]|beij(?:inh)?os|fico à (?:sua |vossa )?disposição[^.!?\n]{0,60}|"
    "(?:muito )?obrigad[oa](?: desde já)?|desde já agradeço|(?:um )?abraços?|saudações|"
    "groet(?:en|jes)?|hoogachtend|mvg|m[.]v[.]g|(?:veel )?liefs|(?:alvast )?bedankt|(?:bij voorbaat|hartelijk) dank|"
    "fijne (?:dag|avond)|"
    "(?:большое |заранее )?спасибо(?: большое| заранее)?|(?:заранее )?благодарю(?: вас| за внимание)?|"
    "всего (?:доброго|хорошего|наилучшего)|с (?:наилучшими|любовью)|целую|обнимаю|удачи|жду (?:вашего )?ответа|"
    "искренне ваша?|хорошего дня|до свидания|(?-i:LG|VG|BR|KR)"
)
_JAPANESE_REGARDS = (
    "(?:以上、?)?(?:何卒|どうぞ|今後とも|引き続き|、){0,4}(?:宜|よろ)しくお(?:願|ねが)い[^。！!\n]{0,9}|敬具|草々|"
    "(?:どうも)?ありがとうござい(?:ます|ました)|(?:それでは、?|では、?)?失礼(?:いた|致)?します|以上(?:です|、[^。\n]{0,9}お願い[^。\n]{0,9})?|かしこ|"
    "取り急ぎ[^。\n]{0,20}まで|(?:それでは|では)、?また|お返事お待ちして(?:い|お)ります"
)
_DEVICE = (
    "(?:sent|gesendet|envoyé|enviad[oa]|inviat[oa]|verzonden|verstuurd|отправлено) "
    "(?:from|with|via|von|vom|aus|mit|de(?:puis)?|desde|d[aoe]l?|[aà] partir d[eo]|vanaf|vanuit|met|с|из)|"
    "(?:get|obten(?:ir|ez)|télécharge[rz]|obtener|descargar|ottieni|scarica|(?:obter|baixar|transferir) o|download|"
    "holen sie sich|получить|скачать) outlook (?:for|für|pour|para|per|voor|для)|outlook voor|von meinem|"
    "diese nachricht wurde von|простите за краткость,"
)
_SENT = (
    rf"(?:{_DEVICE})(?: \S{{1,30}}){{1,8}}|(?:Yahoo!メール(?:アプリ| for iPhone)?|iPhone|iPad|Android(?:端末|"
    "スマートフォン)?|スマートフォン|スマホ) ?から(?:送信|K-9 Mailで送信しました。簡単なメールで失礼します)|"
    "(?:iOS 用 Outlook|Outlook for (?:iOS|Android)) ?を入手"
)
_MY = "my|meinem|mon|mi|meu|mio|mijn|моего"
_DEVICES = (
    r"iPhone|iPad|Android|Samsung|Galaxy|Huawei|Xiaomi|Pixel|BlackBerry|Windows|Outlook|Gmail|Yahoo|Proton\w*|"
    r"Thunderbird|GMX|"
    r"Mail|Handy|Tablet|\w*phone|m[oó]vil|telem[oó]vel|celular|cellulare|mobile|portable|telefoon|mobiel|"
    r"мобильно(?:й|го)|почты|телефона|смартфона"
)
_BREVITY = "brevity|kürze|brièveté|brevedad|brevità|brevidade|beknoptheid"
_SENT_LINE = re.compile(
    rf"(?=\S+ \S+ (?:{_MY})\b|.*\b(?:{_DEVICES})\b|.*から)(?:{_SENT})(?:[ ,][^\n]{{0,40}}(?:{_BREVITY}))?[\s.。]*", re.I
)
_SIGNED = re.compile(
    rf"(?:(?:^|(?<=[.!?…,;:)。！？、])\s*+)(?:(?:{_WISHES}|{_REGARDS})(?!\w)[,.!…]*+{_SIGNER}|{_JAPANESE_REGARDS}|{_SENT})"
    rf"|(?<=\s)(?-i:(?=[A-ZÀ-ÞЁА-Я]))(?:{_WISHES})(?!\w)[,.!…]*+{_SIGNER})[\s,.!。！]*+$",
    re.I,
)
# A word in the lines below a sign-off: of a name, a place, a number or an address.
_SIGNATURE = re.compile(
    r"\W?[A-ZÀ-ÞЁА-Я].*|\S*[\d.@]\S*|\S+[:：]|[\W_]+|(?:de|da|di|du|la|le|von|van|der|den|zu|and|of|und|et|e|y),?"
)
_MOST_SIGNATURE = 16  # words in one of these lines


def strip_greetings(text: str) -> str:
    """A text without greetings at its start, and without sign-offs, names and "Sent from my phone" that end a line."""
    start = 0
    for _ in range(_MOST_OPENINGS):
        if not (opening := _OPENING.match(text, start)):
            break
        start = opening.end()
    kept = list[str]()
    signed = False  # below a sign-off
    for line in text[start:].split("\n"):
        if signed and is_signature(line):
            continue
        if found := _SIGNED.search(line):
            line = line[: found.start()]
        signed = bool(found)
        if line.strip() or not signed:
            kept.append(line)
    return "\n".join(kept).strip()


def is_sent_from(line: str) -> bool:
    """Whether a line is only "Sent from my phone" or the like."""
    return len(line) <= _LONGEST_SENT and bool(_SENT_LINE.fullmatch(line.strip()))


def ends_in_sign_off(line: str) -> bool:
    """Whether a line ends in a sign-off, such as "Kind regards, Anna"."""
    return bool(_SIGNED.search(line))


def is_signature(line: str, small: int = 0) -> bool:
    """Whether a line below a sign-off may be part of the signature; `small` other words may be in it, such as "rue"."""
    words = line.split()
    return len(words) <= _MOST_SIGNATURE and sum(not _SIGNATURE.fullmatch(word) for word in words) <= small
