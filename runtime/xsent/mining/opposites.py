"""Words that exclude each other, in the nine languages: before and after, open and closed, days, months.

Each row below is a group of such words. Its columns are what excludes each other, with the words of all languages for
it. An asterisk stands for any ending, a point for the end of a clause, "_" for a space. Japanese may be anywhere in a text.
"""

import re
import unicodedata

_GROUPS = """
before vor bevor vorher avant antes prima voor voordat до перед прежде 前に 以前 | after nach nachdem nachher danach après después dopo depois na nadat после 後に の後 以降
more mehr plus más più mais meer больше более 以上 | fewer less weniger moins menos meno minder меньше менее 以下 未満
unlocked aufgeschlossen* entsperrt* déverrouillé* desbloquead* sbloccat* destrancad* ontgrendeld* разблокирован* | locked abgeschlossen* gesperrt* verrouillé* bloquead* bloccat* trancad* vergrendeld* заперт* заблокирован* 施錠
auf. open opened opens offen offene* geöffnet* ouvert* ouvre* abiert* abre* apert* apre aprono geopend* открыт* открыва* 開い 開け 開き | zu. dicht. closed closes shut geschlossen* schließt fermé* ferme fermons ferment cerrad* cierra* chius* chiud* fechad* fecha gesloten sluit закрыт* закрыва* 閉まっ 閉め 閉じ
increase* increasing rise rises rose risen rising gestiegen* steigt steigen stieg augment* aument* gestegen stijgt stijgen steeg вырос* растёт растет увелич* повыс* 増え 増加 上が 上昇 | decrease* decreasing fall falls fell fallen falling gesunken* sinkt sinken sank baisse* baissé* diminu* disminu* bajó bajaron gedaald* daalt dalen daalde снизи* упал* падает уменьш* 減っ 減少 下が 下落
left links linke* gauche izquierd* sinistr* esquerd* linker* налево слева лев* | right rechts rechte* droite derecha derecho destra direita rechter* направо справа правый правая
first erste* premier* première* primer primer* primo eerste перв* 最初 | last letzte* dernier* dernière* últim* ultim* laatste последн* 最後
always immer toujours siempre sempre altijd всегда いつも | sometimes manchmal parfois veces volte vezes soms иногда 時々
best beste* meilleur* melhor mejor miglior* лучш* 最高 | worst schlechteste* pire pior peor peggior* slechtste худш* 最悪
above oberhalb über dessus encima sopra acima boven над | below unterhalb unter dessous debajo sotto abaixo onder под
upstairs oben obere* haut arriba boven наверх* | downstairs unten untere* bas abajo giù beneden внизу вниз
inside drinnen innen dedans dentro binnen внутри | outside draußen außen dehors fuera fuori fora buiten снаружи
on. an. aan. allumé* encendid* acces* ligad* enabled enable* aktiviert* activé* activad* activ* attivat* ativad* ingeschakeld включ* 有効 | off. aus. uit. éteint* apagad* spent* desligad* disabled disable* deaktiviert* désactivé* desactivad* disattivat* desativad* uitgeschakeld* выключ* отключ* 無効
yesterday gestern hier ayer ieri ontem gisteren вчера 昨日 | today heute aujourd'hui hoy oggi hoje vandaag сегодня 今日 | tomorrow morgen demain mañana domani amanhã завтра 明日
morning morgens vormittag* matin matinée mattin* manhã ochtend утр* 午前 | evening abend* soir soirée sera serata noite avond вечер* 夕方 | afternoon nachmittag* après-midi tarde pomeriggio middag 午後
minimum mindestens minimal* minimale au_moins al_menos almeno pelo_menos minstens минимум 少なくとも at_least | maximum höchstens maximal* au_plus al_massimo hoogstens максимум at_most como_máximo no_máximo せいぜい
early früh tôt temprano presto cedo vroeg рано 早く | late spät tard tarde tardi laat поздно 遅く
hot heiß* chaud* caliente* cald* quente* heet горяч* жарк* 熱い 暑い | cold kalt* froid* fría frío fredd* frio fria koud* холодн* 冷たい 寒い
big large groß* grand* grande* großer groot grote большой большая большие 大き | small little klein* petit* pequeñ* piccol* pequen* маленьк* 小さ
new neu* nouveau nouvelle* nuev* nuov* novo nova nieuw* новый новая 新し | old alt alte* vieux vieille* viej* vecchi* velho velha oud oude* старый старая 古い
north norden nördlich* nord norte noord* север* | south süden südlich* sud zuid* юг юж* | east osten östlich* l'est leste oost* восток* восточн* | west westen westlich* ouest oeste ovest запад*
win wins won gewonnen gewinnt gewann gagné gagne ganó ganaron vinto vince ganhou gewonnen выигра* 勝っ 勝ち | lose loses lost verloren verliert verlor perdu perd perdió perso perdeu проигра* 負け
buy buys bought kauf* gekauft achet* compr* acquist* koop* gekocht купи* покупа* 買っ | sell sells sold verkauf* vendu* vend vendo vende* vendió venduto verkoop* verkocht прода* 売っ
accept* angenommen accepté* aceptad* accettat* aceit* geaccepteerd принят* | reject* refus* declin* abgelehnt* rechazad* rifiutat* recus* afgewezen отклон* отказ*
import* ввоз* импорт* 輸入 | export* вывоз* экспорт* 輸出
success* succeed* erfolgreich réussi* éxito riuscit* sucesso gelukt geslaagd успешн* удал* 成功 | fail* gescheitert fehlgeschlagen échoué* falló fallid* fallit* falhou mislukt* неудач* 失敗
alive lebend* lebt vivant* vivo viva vivi levend* жив живой | dead tot tote* mort morte* muert* mort* dood мёртв* мертв* умер*
full voll volle* plein* llen* pieno piena cheio cheia vol volle полн* | empty leer* vide* vací* vuot* vazi* leeg lege пуст*
monday mondays montag* lundi lunes lunedì segunda-feira maandag* понедельник* 月曜 | tuesday* dienstag* mardi martes martedì terça-feira dinsdag* вторник* 火曜 | wednesday* mittwoch* mercredi miércoles mercoledì quarta-feira woensdag* сред* 水曜 | thursday* donnerstag* jeudi jueves giovedì quinta-feira donderdag* четверг* 木曜 | friday* freitag* vendredi viernes venerdì sexta-feira vrijdag* пятниц* 金曜 | saturday* samstag* sonnabend* samedi sábado sabato zaterdag* суббот* 土曜 | sunday* sonntag* dimanche domingo domenica zondag* воскресень* 日曜
spring frühling* printemps primavera voorjaar lente весн* | summer sommer* été verano estate verão zomer* лето летом | autumn herbst* automne otoño autunno outono herfst* осень осенью | winter* hiver invierno inverno зима зимой
"""

_JAPANESE = re.compile("[\u3041-\u30ff\u4e00-\u9fff]")
_WORD = re.compile("([^\\W\\d_]+(?:['-][^\\W\\d_]+)*)( *(?:[^\\w\\s]|$))?")
_SHORTEST = 3  # letters before an asterisk

Pole = tuple[int, int]  # numbers of a group and of a column


def _listed() -> dict[str, set[Pole]]:
    """The columns of every word, as it is listed."""
    found: dict[str, set[Pole]] = {}
    for group, row in enumerate(_GROUPS.strip().splitlines()):
        for column, words in enumerate(row.split("|")):
            for word in words.casefold().split():
                found.setdefault(word, set()).add((group, column))
    return found


_LISTED = _listed()
_PARTS = {word: poles for word, poles in _LISTED.items() if _JAPANESE.search(word)}
_PART = re.compile("|".join(sorted(_PARTS, key=len, reverse=True)))


def opposed(first: str, second: str) -> bool:
    """Whether the texts have words that exclude each other, each one that the other lacks."""
    one, other = _poles(first), _poles(second)
    return bool({group for group, _ in one - other} & {group for group, _ in other - one})


def _poles(text: str) -> set[Pole]:
    folded = unicodedata.normalize("NFKC", text).casefold().replace("’", "'")
    found = set[Pole]()
    previous = ""
    for word, end in _WORD.findall(folded):
        keys = [word, f"{previous}_{word}", f"{word}." if end else ""]
        if "'" in word:  # l'hiver
            keys.append(word.rpartition("'")[2])
        keys += (f"{word[:letters]}*" for letters in range(_SHORTEST, min(len(word), 20) + 1))
        found.update(*(_LISTED[key] for key in keys if key in _LISTED))
        previous = word
    return found.union(*(_PARTS[part] for part in _PART.findall(folded)))
