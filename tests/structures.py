"""Files as programs for notes write them, and the passages in them: texts, each with what is above it."""

BASE64 = "iVBORw0KGgo" + "AbC1" * 80
WRAPPED = f"{BASE64[:76]}\n" * 4 + "AbC1=\n"

Shown = list[tuple[str, str]]

MARKDOWN: dict[str, tuple[str, Shown]] = {
    "code in the label of a link by reference": (
        "See [`foo`] and [the docs][`bar`].\n\n[`foo`]: https://x.example/f\n[`bar`]: https://x.example/b\n",
        [("See `foo` and the docs.", "")],
    ),
    "signs with a backslash in an address": (
        "See [it](https://x.example/a\\_b) and `foo`, `bar`.\n",
        [("See it and `foo`, `bar`.", "")],
    ),
    "soft hyphens": (
        "# Do\u00adnau\n\nDie Do\u00adnau. Wo\u00ad\nher? Ende.\u00ad\n",
        [("Die Donau. Woher? Ende.", "Donau")],
    ),
    "a fence in a longer one": (
        "# B\n\n````md\n```sh\n# b\n```\n# c\n````\n\nEnd.\n",
        [("```sh # b ``` # c End.", "B")],
    ),
    "a fence in one of other signs": (
        "~~~~\n~~~\n# b\n```\n~~~~~\n\n# B\nEnd.\n",
        [("~~~ # b ```", ""), ("End.", "B")],
    ),
    "code of Jekyll and Hugo": (
        "{% highlight sh linenos %}\n# a\n<!-- b -->\n{% endhighlight %}\n{{< highlight go >}}\n# c\n"
        "{{< / highlight >}}\n\nEnd.\n",
        [("# a <!-- b --> # c End.", "")],
    ),
    "a fence in an item, and in a quotation": (
        "- ```sh\n  # b\n  ```\n> ~~~\n> # c\n> ~~~\n\n# B\nEnd.\n",
        [("# b > # c", ""), ("End.", "B")],
    ),
    "code on one line is not a fence": ("```ls```\n# B\nEnd.\n", [("```ls```", ""), ("End.", "B")]),
    "TOML of Hugo": (
        '+++\ntitle = "Boiler"\ntags = [\n  "house",\n]\ndraft = false\n[taxonomies]\nkeywords = ["pump"]\n+++\n'
        "Press it.\n",
        [("Press it.", "Boiler, house, pump")],
    ),
    "JSON of Hugo": ('{\n  "title": "Attic",\n  "tags": ["house"]\n}\n\nThe lamp.\n', [("The lamp.", "Attic, house")]),
    "JSON and TOML between dashes": ('---json\n{"title": "Fence"}\n---\nGreen.\n', [("Green.", "Fence")]),
    "rules are not front matter": ("---\na = 5\n\n---\n\nstd::vector.\n", [("a = 5 std::vector.", "")]),
    "a name of C++ is not a property": ("std::vector\nEnd.\n", [("std::vector End.", "")]),
    "YAML over lines": (
        "---\ntitle: >-\n  The cellar\n...\nThe key.\n",
        [("The key.", "The cellar")],
    ),
    "JSON that is a text": ('{\n  "a": 1\n}\n\nThe end.\n', [('{ "a": 1 } The end.', "")]),
    "the title of Pandoc": (
        "% The boiler\n% Jane\n\n\\newpage\n\n::: {.note}\nPress it.\n:::\n",
        [("Press it.", "The boiler")],
    ),
    "Logseq": (
        "title:: Boiler\ntags:: house, [[pump]]\n\n- TODO Call\n  id:: 65a1\n  :LOGBOOK:\n  CLOCK: [2024-01-01]\n"
        "  :END:\n  card-ease:: 2.5\n- #+BEGIN_QUERY\n  {:find a}\n  #+END_QUERY\n"
        "  SCHEDULED: <2024-03-12 Tue>\n- Pay\n",
        [("- TODO Call - Pay", "Boiler, house, pump")],
    ),
    "Joplin": ("Fence\n\nGreen.\n\nid: " + "0a" * 16 + "\nis_todo: 0\ntype_: 1", [("Fence Green.", "")]),
    "Obsidian": (
        "> [!tip] Ovens\n> Hot. ^abc-1\n\n%%\n## Drawing\n```json\n{}\n```\n%%\n\nA %%hidden%% word, 100%% and 5%%.\n"
        "![[map.png]]\n^the-map\n",
        [("Ovens Hot. A word, 100%% and 5%%. map.png", "")],
    ),
    "comments": (
        "One.\n\n<!-- a\n\nb -->\n\n[//]: # (c)\nTwo <!-- d -->.\n{% comment %}e{% endcomment %}\n"
        "Three.<!--> {/* f */}\n",
        [("One. Two . Three.", "")],
    ),
    "comments in code stay": (
        "`<!-- a -->` and ``%% ` b %%``\n\n```\n<!-- c -->\n%% d %%\n```\n\\<!-- e\n",
        [("`<!-- a -->` and ``%% ` b %%`` <!-- c --> %% d %% <!-- e", "")],
    ),
    "links and pictures": (
        "- [B](#b)\n\n# [A *b*](a.md)\nSee [the [old] map](<a b.png> 'c') and [`ls`](a(b).html), "
        "[![the car](a.png =3x)](b), [one][1], [Two] and [x].\n\n"
        "[1]: https://a.example 'One'\n[two]: b.md#c\n[^1]: Note.\n\nIt^[the *old*\none] and `^[it]`.\n",
        [("See the [old] map and `ls`, the car, one, Two and [x]. Note. It (the old one) and `^[it]`.", "A b")],
    ),
    "links to pages": (
        "[[A]] [[a/B#C|the d]] [[E#F]] [[#G]] [[H#^i]] ![[j.png|300]] ![[K]] `[[L]]` [[ -f m ]]\n\n"
        "| N | O |\n|---|---|\n| [[P\\|q]] | r |\n",
        [("A the d E > F G H j.png K `[[L]]` [[ -f m ]]", ""), ("N: q · O: r", "")],
    ),
    "citations": (
        "Cod dries [@anna2001, p. 3; @ben] and [-@cod]. [@anna](a.md) said so.\n",
        [("Cod dries and. @anna said so.", "")],
    ),
    "attributes and shortcodes": (
        '# B {#a .b}\n\n[c](d){:target=_blank} ![e](f){: width=3} ![g](h){#i width=60%} [j]({{< ref "k.md" >}}).\n'
        '{{< figure src=l >}}{{< figure src="i.png" caption="The hall" >}} {{% m %}}n{{% /m %}} '
        "{{query (task NOW)}} ((65e2f1aa-1234-4bcd-9e0f-aabbccddeeff))\n"
        'o{p} {{q}} {#r} `{{% s %}}`\n\n## T { #t }\n### 1\\. W {#1.-w}\n!!! note\n\nU\n\n!!! tip "V"\n',
        [("c e g j. The hall n o{p} {{q}} {#r} `{{% s %}}`", "B"), ('U "V"', "B › T › 1. W")],
    ),
    "emphasis": (
        "**a `b` c** *d* ***e*** __f__ _g_ ~~h~~ ==i j== **k**l これは==重要==です **m:** n\n\n"
        "2 * 3 * 4, 2**3, snake_case_name, a == b, a==b and c==d, ~/n, `**o**`\n\n```\n**p** [q](r) &lt;\n```\n",
        [
            (
                "a `b` c d e f g h i j kl これは重要です m: n 2 * 3 * 4, 2**3, snake_case_name, a == b, a==b and c==d, "
                "~/n, `**o**` **p** [q](r) &lt;",
                "",
            )
        ],
    ),
    "tags, entities and escapes": (
        "<aside>\nA<br>b &lt;p&gt;&nbsp;&amp; c &copy=1 <kbd>D</kbd>.\n</aside>\n\n<details open><summary>E</summary>\n"
        "<img src=f\nalt='the g'></details>\n<style>\n.h {}\n</style>\n\n"
        "ssh <user>@i, List<String>, if a <b and c> d, `<br>`, 1\\. \\*j\\* k\\_l <https://a.b>.[^1] M\\\nn\n",
        [
            (
                "A b <p>\xa0& c &copy=1 D. E the g ssh <user>@i, List<String>, if a <b and c> d, `<br>`, "
                "1. *j* k_l https://a.b. M n",
                "",
            )
        ],
    ),
    "tasks": (
        "- [x] Pay [the rent](a)\n  * [ ] Call Ann\n1. [/] Paint\n> - [>] Copy\n"
        "- ☑ Sweep\n☐ Mow\n\n- [x](a) is\n- [y] and\n\n[x] too.\n",
        [("- Pay the rent * Call Ann 1. Paint - Copy - Sweep ☐ Mow - x is - [y] and [x] too.", "")],
    ),
    "comments without an end stay": ("One <!-- two.\n\n%% three\n", [("One <!-- two. %% three", "")]),
    "pictures": (
        f"![the map](data:image/png;base64,{BASE64})\n![][a] stays.\n\n[a]: <data:image/png;base64,{BASE64}>\n"
        f"<img src='data:image/svg+xml;utf8,%3Csvg' alt='the car'>\n\n"
        f"```\n<img src=data:image/png;base64,{BASE64}>\n```\n",
        [("the map stays. the car", "")],
    ),
    "queries of Obsidian": (
        "One.\n\n```dataview\nTABLE a FROM #b\n```\n- ~~~tasks\n  not done\n  ~~~\nTwo.\n\n```sql\nSELECT c;\n```\n",
        [("One. Two. SELECT c;", "")],
    ),
    "pictures that programs name": (
        "![IMG_2041.heic](a%20b/IMG_2041.heic) ![image](https://c.example/d) ![[Pasted image 20240513101112.png]] "
        "![Screenshot 2024-05-13 at 10.11.12 AM.png](e) ![20240513_101112.jpg](f) One: ![the image](g), "
        "![Image of a hall](h) ![[hall.png]] [[image.png]] [image](i).\n",
        [("One: the image, Image of a hall hall.png image.png image.", "")],
    ),
    "headings of Japanese texts": (
        "社内メモ\n■会議室の予約\n　鍵は受付の引き出しです。\n【備品】\n・トナーは三階です。\n\n"
        "■日時：六月\n■場所：三階\n\n■牛乳\n■卵\n\n■ Milk\nfrom the farm\n",
        [
            ("社内メモ", ""),
            ("鍵は受付の引き出しです。", "会議室の予約"),
            ("・トナーは三階です。 ■日時：六月 ■場所：三階 ■牛乳 ■卵 ■ Milk from the farm", "【備品】"),
        ],
    ),
    "sections with the same heading": (
        "### Call\nAt nine.\n\n### Call\nAt ten.\n",
        [("At nine.", "Call"), ("At ten.", "Call")],
    ),
    "furigana": (
        "<ruby>漢字<rp>(</rp><rt>かんじ</rt><rp>)</rp></ruby>と{東京|とう|きょう}と｜WiFi《ワイファイ》と[十]{じゅう}時《じ》。`{a|か}`\n",
        [("漢字と東京とWiFiと十時。`{a|か}`", "")],
    ),
    "words cut at the end of lines": (
        "> The termi-\n> nation of dam-\n> ages,\nan Anglo-\nSaxon Ein-\nund Aus-\ngang, self-help, self-\nhelp and "
        "Woh\u00ad\nNung in 10-\n12.\n\n```\ndam-\nages\n```\nTo be calcu-\nlated:\n- a\n",
        [
            (
                "The termination of damages, an Anglo-Saxon Ein- und Ausgang, self-help, self-help and WohNung in "
                "10-12. dam- ages",
                "",
            ),
            ("- a", "To be calculated"),
        ],
    ),
}

ORG = """:PROPERTIES:
:ID: 20e1
:ROAM_ALIASES: "My house" Haus
:END:
#+title: Cottage
#+filetags: :flat:garden:
#+STARTUP: overview

The cot-
tage[fn:a: built
late] leaks [cite/t:see @secret p. 3; @secret].[fn:1] @@comment:secret@@
# secret
* Tasks [1/3]
** TODO [#A] Call the plumber :phone:urgent:
DEADLINE: <2024-03-12 Tue> SCHEDULED: <2024-03-10 Sun +1w>
:LOGBOOK:
CLOCK: [2024-01-01 Mon 10:00]--[2024-01-01 Mon 11:00] =>  1:00
:END:
- State "WAIT" from "TODO" [2024-03-09 Sat]
** COMMENT secret
secret
*** secret
** Roof :leak:
CLOSED: [2024-03-09 Sat 10:12]
- [X] It leaks.
#+BEGIN_COMMENT
secret
#+END_COMMENT
#+begin_src sh
# ls
# -l
,* ls
#+end_src
#+BEGIN_QUOTE
Mend [[https://a.example][the roof]], see [[roof.png]]. *Now /or/* never: =a *b*=, ~/c and 2 * 3 * 4. <<end>>
-----
#+END_QUOTE
|------+-----|
| Room | Key |
|------+-----|
| <l5> | <r> |
| Hall | 15  |
#+TBLFM: $1=2
:open:
======
#+BEGIN_SRC
******** Deep
End.
"""
ORG_SHOWN: Shown = [
    ("The cottage (built late) leaks.", ""),
    ("- TODO Call the plumber, phone, urgent", "Tasks"),
    (
        "- It leaks. # ls # -l * ls Mend the roof, see roof.png. Now or never: `a *b*`, ~/c and 2 * 3 * 4.",
        "Tasks › Roof, leak",
    ),
    ("Room: Hall · Key: 15", "Tasks › Roof, leak"),
    (":open:", "Tasks › Roof, leak"),
    ("End.", "Tasks › Roof, leak › Deep"),
]
ORG_NAMES = "My house, Haus, Cottage, flat, garden"

RST = """.. _secret:
.. secret

   secret

:orphan:

######
Manual
######

:Author: secret
:Address: secret
   secret
:Abstract: For all.

Read :ref:`the part <part>` and `Python <https://a.example>`_ of |xsent|,
`its guide`_ and guide_ [1]_: *not* **2** \\* 3 or ``**a``.

.. note:: Careful.

   It is hot.

.. toctree::
   :maxdepth: 2

   secret

Install
-------
Run this::

    # ls

Then start.

.. code-block:: sh
   :linenos:

   # pip
   ------

.. tab-set::

   .. tab-item:: Linux
      :sync: secret

      It runs.

.. py:function:: ls()

   It lists.

.. |xsent| replace:: secret
.. image:: secret.png
   :alt: The red pump

Keys
^^^^
+------+-----+
| Room | Key |
+======+=====+
| Hall | 15  |
+------+-----+
| Cel- | 16  |
| lar  |     |
+------+-----+
| Both       |
+------+-----+

=====  =====
Room   Code
=====  =====
Attic  `a|b`
=====  =====

   .. list-table:: Lamps
      :header-rows: 1

      * - Lamp
        - Watts
      * - Green
          hall
        - 15
      * - Blue

          - dim
          * - warm
        -

Start
-----
.. [1] A foot-
   note.
"""
RST_SHOWN: Shown = [
    (
        "For all. Read the part and Python of xsent, its guide and guide: not 2 * 3 or `**a`. Careful. It is hot.",
        "Manual",
    ),
    ("# ls", "Manual › Install › Run this"),
    ("Then start. # pip ------ Linux It runs. ls() It lists. The red pump", "Manual › Install"),
    ("Room: Hall · Key: 15", "Manual › Install › Keys"),
    ("Room: Cellar · Key: 16", "Manual › Install › Keys"),
    ("Room: Both", "Manual › Install › Keys"),
    ("Room: Attic · Code: `a|b`", "Manual › Install › Keys"),
    ("Lamps", "Manual › Install › Keys"),
    ("Lamp: Green hall · Watts: 15", "Manual › Install › Keys"),
    ("Lamp: Blue - dim * - warm", "Manual › Install › Keys"),
    ("A footnote.", "Manual › Start"),
]

AOZORA = """走れメロス

-------------------------------------------------------
【テキスト中に現れる記号について】

《》：ルビ
-------------------------------------------------------

［＃５字下げ］一［＃「一」は中見出し］
メロスは邪智暴虐《じゃちぼうぎゃく》の王を、｜シラクス《町》で見た。《史記》も。
"""
AOZORA_SHOWN: Shown = [("走れメロス 一 メロスは邪智暴虐の王を、シラクスで見た。《史記》も。", "")]

PAGES: dict[str, str] = {  # their text, and they
    "会議は短槍です。": "<ruby>会議<rp>(</rp><rt>か</rt><rp>)</rp></ruby>は<ruby>短<rt>たん<rb>槍<rt>そ</ruby>です。",
    "The termination of dams, payable.": "<p>The termi-\nnation of da&shy;<br>ms, <del>pay</del>able.<!-- secret -->",
    "Bufo A toad. ¶": "<a class=top-skip-link>x</a><p>Bufo<span class=mw-editsection>[edit]</span>"
    "<a class=headerlink>¶</a><i class=sr-only>x</i><sup class=reference>[1]</sup><a id=fnref1>2</a> "
    "A <a class='reference internal'>toad</a>. ¶<video>x</video>",
    "A red car": f"<p>A <img alt='red car' src='data:image/png;base64,{BASE64}'> <i hidden><img alt=b src='data:'></i>",
}

# Files of several messages, and how many they are.
CHATS = {
    "Teams, without years": (
        "[14.05. 09:12] Ott, Eva\nWhere is the key?\n\n[5/14 9:15 AM] Ben\nIn the shed.\n\n[14.05. 09:16] Eva\nAh!\n",
        3,
    ),
    "WhatsApp, iOS": (
        "\u200e[12.03.24, 18:05:11] Anna: \u200eNachrichten sind Ende-zu-Ende-verschlüsselt.\n"
        "[12.03.24, 18:05:30] Anna: Hallo ihr\nkommt ihr morgen?\nIch bringe Kuchen\n"
        "[12.03.24, 18:06:01] Ben: Ja klar. Um 15 Uhr?\n\u200e[12.03.24, 18:07:00] Ben: \u200eBild weggelassen\n"
        "[12.03.24, 18:09:12] ~\u202fCarla: Der Schlüssel liegt unter der Matte",
        3,
    ),
    "WhatsApp, Android": (
        "12/03/2024, 18:05 - Anna: ciao a tutti\n12/03/2024, 18:06 - Marco ha aggiunto Luca\n"
        "12/03/2024, 18:07 - Luca: eccomi\nsono arrivato\n3/12/24, 6:05\u202fPM - +39 333 123: ok",
        4,
    ),
    "WhatsApp, United States": (
        "[3/12/24, 6:05:11\u202fPM] Anna: hi\n[3/12/24, 6:06:11\u202fPM] Bob: see you at 5",
        2,
    ),
    "Telegram": (
        "Anna, [12.03.2024 18:05]\nпривет, как дела\nпойдём в кино?\n\nBen, [12.03.2024 18:06]\nда",
        2,
    ),
    "Telegram, one line": (
        "[12.03.2024 18:05] Anna: olá\n[12.03.2024 18:06] Rui: vamos à praia",
        2,
    ),
    "IRC": (
        "18:05 <anna> hi there\n18:06 <ben> the build is broken\n18:06 -!- carl has quit\n18:07 <anna> fixing",
        4,
    ),
    "IRC in brackets": (
        "[18:05] <anna> hi there\n[18:06] <ben> the build is broken",
        2,
    ),
    "Slack": (
        "Anna Schmidt  6:05 PM\nthe deploy is done\ncheck please\nBen Ott  6:07 PM\nlooks good",
        2,
    ),
    "Discord": (
        "Anna — 12/03/2024 18:05\nhallo zusammen\nBen — 12/03/2024 18:06\nhoi",
        2,
    ),
    "Signal": (
        "[2024-03-12 18:05] Anna: bonjour\n[2024-03-12 18:06] Me: salut, on mange quoi",
        2,
    ),
    "LINE": (
        "2024/03/12(火)\n18:05\t花子\tこんにちは\n18:06\t太郎\t明日は休みです\n",
        3,
    ),
    "WhatsApp, Japan": (
        "2024/03/12 18:05 - 花子: 鍵は机の上\n2024/03/12 18:06 - 太郎: 了解",
        2,
    ),
    "ISO 8601": (
        "2024-03-12T18:05:11Z anna: one\n2024-03-12T18:06:11.123Z ben: two",
        2,
    ),
    "Teams": (
        "[12/03/2024 18:05] Anna Schmidt\nhello team\n[12/03/2024 18:06] Ben\nhi",
        2,
    ),
    "a transcript": (
        "0:05\nhello and welcome\n0:12\ntoday we bake bread\n1:02:03\nbye",
        3,
    ),
    "iMessage": (
        "12 Mar 2024 at 18:05:11\nAnna\nhello\n\n12 Mar 2024 at 18:06:00\nMe\nhi",
        2,
    ),
    "prose": (
        "Der Zug fuhr um\n18:05 Uhr ab und wir sahen\nam 12.03.2024 den Film. Das Haus\nist 3 Jahre alt.",
        1,
    ),
    "more prose": (
        "Notes for <b>the</b> day: a 10:30 and\nan 11:30 slot are open.\nWe meet at 12:30\nin the hall.",
        1,
    ),
    "12.03.24 um 18:05 - Anna: hallo du": (
        "12.03.24 um 18:05 - Anna: hallo du\n12.03.24 um 18:06 - Ben: hi",
        2,
    ),
    "12/03/2024 à 18:05 - Anne : bonjour": (
        "12/03/2024 à 18:05 - Anne : bonjour\n12/03/2024 à 18:06 - Paul : salut\nça va ?",
        2,
    ),
    "12/3/24, 6:05 p. m. - Ana: hola": (
        "12/3/24, 6:05 p. m. - Ana: hola\n12/3/24, 6:06 p. m. - Luis: qué tal",
        2,
    ),
    "[12/3/24 18:05:11] Ana: hola": (
        "[12/3/24 18:05:11] Ana: hola\n[12/3/24 18:06:11] Luis: adiós",
        2,
    ),
    "12/03/2024 às 18:05 - Ana: oi": (
        "12/03/2024 às 18:05 - Ana: oi\n12/03/2024 às 18:06 - Rui: tudo",
        2,
    ),
    "[12-03-2024 18:05:11] Jan: hoi": (
        "[12-03-2024 18:05:11] Jan: hoi\n[12-03-2024 18:06:11] Piet: doei",
        2,
    ),
    "[12.03.2024, 18:05:11] Анна: привет": (
        "[12.03.2024, 18:05:11] Анна: привет\n[12.03.2024, 18:06:11] Пётр: пока",
        2,
    ),
    "[2024/03/12 18:05:11] 花子: おはよう": (
        "[2024/03/12 18:05:11] 花子: おはよう\n[2024/03/12 18:06:11] 太郎: うん",
        2,
    ),
    "18:05:11     anna | hi there": (
        "18:05:11     anna | hi there\n18:06:00      ben | hello",
        2,
    ),
    "18:05 < anna> hi there": (
        "18:05 < anna> hi there\n18:06 <@ben> hello",
        2,
    ),
    "18:05:11 From Anna to Everyone: hi": (
        "18:05:11 From Anna to Everyone: hi\n18:06:11 From Ben to Everyone: hello",
        2,
    ),
    "18:05:11\t From Anna : hi": (
        "18:05:11\t From Anna : hi\n18:06:11\t From Ben : hello",
        2,
    ),
    "2024-03-12 18:05:11 - From Anna: hi": (
        "2024-03-12 18:05:11 - From Anna: hi\n2024-03-12 18:06:11 - To Anna: hello",
        2,
    ),
    "[00:12.34]Hello darkness": (
        "[00:12.34]Hello darkness\n[00:15.00]my old friend",
        2,
    ),
    "0:00:01.000,0:00:04.000": (
        "0:00:01.000,0:00:04.000\nhello there\n\n0:00:05.000,0:00:07.000\nbye now",
        2,
    ),
    "午後6:05 花子 こんにちは": (
        "午後6:05 花子 こんにちは\n午後6:06 太郎 はい",
        2,
    ),
    "2024.03.12 火曜日": (
        "2024.03.12 火曜日\n18:05 花子 こんにちは\n18:06 太郎 明日は休み",
        3,
    ),
    "[Montag 18:05] Anna": (
        "[Montag 18:05] Anna\nhallo\n[Montag 18:06] Ben\nhi",
        2,
    ),
    "Anna Schmidt  [18:05]": (
        "Anna Schmidt  [18:05]\nhallo\nBen Ott  [18:06]\nhi",
        2,
    ),
    "Mar 12, 2024 6:05 PM - Anna: hi": (
        "Mar 12, 2024 6:05 PM - Anna: hi\nMar 12, 2024 6:06 PM - Ben: hello",
        2,
    ),
    "no message": (
        "- It joins two groups above the limit\n(0.05), so there are few, and leaves at noon\n(12:05), or later",
        1,
    ),
    "(18:05:11) anna: hi": (
        "(18:05:11) anna: hi\n(18:06:11) ben: hello",
        2,
    ),
    "\u200e12.3.2024 klo 18.05 - Anna: moi": (
        "\u200e12.3.2024 klo 18.05 - Anna: moi\n\u200e12.3.2024 klo 18.06 - Ben: hei",
        2,
    ),
}
