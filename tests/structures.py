"""Files as programs for notes write them, and the passages in them: texts, each with what is above it."""

BASE64 = "iVBORw0KGgo" + "AbC1" * 80
WRAPPED = f"{BASE64[:76]}\n" * 4 + "AbC1=\n"

Shown = list[tuple[str, str]]

MARKDOWN: dict[str, tuple[str, Shown]] = {
    "a fence in a longer one": (
        "# B\n\n````md\n```sh\n# b\n```\n# c\n````\n\nEnd.\n",
        [("```sh # b ``` # c End.", "B")],
    ),
    "a fence in one of other signs": (
        "~~~~\n~~~\n# b\n```\n~~~~~\n\n# B\nEnd.\n",
        [("~~~ # b ```", ""), ("End.", "B")],
    ),
    "a fence in an item, and in a quotation": (
        "- ```sh\n  # b\n  ```\n> ~~~\n> # c\n> ~~~\n\n# B\nEnd.\n",
        [("# b > # c", ""), ("End.", "B")],
    ),
    "code on one line is no fence": ("```ls```\n# B\nEnd.\n", [("```ls```", ""), ("End.", "B")]),
    "TOML of Hugo": (
        '+++\ntitle = "Boiler"\ntags = [\n  "house",\n]\ndraft = false\n[taxonomies]\nkeywords = ["pump"]\n+++\n'
        "Press it.\n",
        [("Press it.", "Boiler, house, pump")],
    ),
    "JSON of Hugo": ('{\n  "title": "Attic",\n  "tags": ["house"]\n}\n\nThe lamp.\n', [("The lamp.", "Attic, house")]),
    "JSON and TOML between dashes": ('---json\n{"title": "Fence"}\n---\nGreen.\n', [("Green.", "Fence")]),
    "rules are no front matter": ("---\na = 5\n\n---\n\nstd::vector.\n", [("a = 5 std::vector.", "")]),
    "a name of C++ is no property": ("std::vector\nEnd.\n", [("std::vector End.", "")]),
    "YAML over lines": (
        "---\ntitle: >-\n  The cellar\n...\nThe key.\n",
        [("The key.", "The cellar")],
    ),
    "JSON that is a text": ('{\n  "a": 1\n}\n\nThe end.\n', [('{ "a": 1 } The end.', "")]),
    "the title of Pandoc": ("% The boiler\n% Jane\n\n::: {.note}\nPress it.\n:::\n", [("Press it.", "The boiler")]),
    "Logseq": (
        "title:: Boiler\ntags:: house, [[pump]]\n\n- TODO Call\n  id:: 65a1\n  :LOGBOOK:\n  CLOCK: [2024-01-01]\n"
        "  :END:\n  SCHEDULED: <2024-03-12 Tue>\n- Pay\n",
        [("- TODO Call - Pay", "Boiler, house, pump")],
    ),
    "Joplin": ("Fence\n\nGreen.\n\nid: " + "0a" * 16 + "\nis_todo: 0\ntype_: 1", [("Fence Green.", "")]),
    "Obsidian": (
        "> [!tip] Ovens\n> Hot. ^abc-1\n\n%%\n## Drawing\n```json\n{}\n```\n%%\n\nA %%hidden%% word, 100%% and 5%%.\n",
        [("Ovens Hot. A word, 100%% and 5%%.", "")],
    ),
    "comments": (
        "One.\n\n<!-- a\n\nb -->\n\n[//]: # (c)\nTwo <!-- d -->.\n{% comment %}e{% endcomment %}\n"
        "Three.<!--> {/* f */}\n",
        [("One. Two . Three.", "")],
    ),
    "comments in code stay": (
        "`<!-- a -->` and ``%% ` b %%``\n\n```\n<!-- c -->\n%% d %%\n```\n\\<!-- e\n",
        [("`<!-- a -->` and ``%% ` b %%`` <!-- c --> %% d %% \\<!-- e", "")],
    ),
    "comments without an end stay": ("One <!-- two.\n\n%% three\n", [("One <!-- two. %% three", "")]),
    "pictures": (
        f"![the map](data:image/png;base64,{BASE64})\n![][a] stays.\n\n[a]: <data:image/png;base64,{BASE64}>\n"
        f"<img src='data:image/svg+xml;utf8,%3Csvg' alt='the car'>\n\n"
        f"```\n<img src=data:image/png;base64,{BASE64}>\n```\n",
        [("the map stays. the car", "")],
    ),
    "furigana": (
        "<ruby>漢字<rp>(</rp><rt>かんじ</rt><rp>)</rp></ruby>と{東京|とう|きょう}と｜WiFi《ワイファイ》と[十]{じゅう}時《じ》。`{a|か}`\n",
        [("漢字と東京とWiFiと十時。`{a|か}`", "")],
    ),
    "words cut at the end of lines": (
        "> The termi-\n> nation of dam-\n> ages,\nan Anglo-\nSaxon Ein-\nund Aus-\ngang, self-help, self-\nhelp and "
        "Woh\u00ad\nNung in 10-\n12.\n\n```\ndam-\nages\n```\n",
        [
            (
                "The termination of damages, an Anglo-Saxon Ein- und Ausgang, self-help, self-help and WohNung in "
                "10-12. dam- ages",
                "",
            )
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
tage.[fn:1] @@comment:secret@@
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
It leaks.
#+BEGIN_COMMENT
secret
#+END_COMMENT
#+begin_src sh
# ls
# -l
,* ls
#+end_src
#+BEGIN_QUOTE
Mend [[https://a.example][the roof]], see [[roof.png]].
-----
#+END_QUOTE
|------+-----|
| Room | Key |
|------+-----|
| Hall | 15  |
#+TBLFM: $1=2
:open:
======
#+BEGIN_SRC
******** Deep
End.
"""
ORG_SHOWN: Shown = [
    ("The cottage.", ""),
    ("- TODO Call the plumber, phone, urgent", "Tasks"),
    ("It leaks. # ls # -l * ls Mend the roof, see roof.png.", "Tasks › Roof, leak"),
    ("Room: Hall · Key: 15", "Tasks › Roof, leak"),
    (":open: ======", "Tasks › Roof, leak"),
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

Read :ref:`the part <part>` and `Python <https://a.example>`_ of |xsent|.

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

=====  =====
Room   Code
=====  =====
Attic  `a|b`
=====  =====

Start
-----
.. [1] A foot-
   note.
"""
RST_SHOWN: Shown = [
    ("Read the part and Python of xsent. Careful. It is hot.", "Manual"),
    ("# ls", "Manual › Install › Run this"),
    ("Then start. # pip ------ The red pump", "Manual › Install"),
    ("Room: Hall · Key: 15", "Manual › Install › Keys"),
    ("Room: Attic · Code: `a|b`", "Manual › Install › Keys"),
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
    "A red car": f"<p>A <img alt='red car' src='data:image/png;base64,{BASE64}'> <i hidden><img alt=b src='data:'></i>",
}
